package thread

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// held is a call of this thread that changes the workspace, or wants to, where
// other threads of the session do too. Whether it may is the session's word; it
// is a fact here before the call begins, and given back by the fact that ends
// the call, in the same decision.
type held struct {
	belay.Hold
	Granted bool `json:"granted,omitempty"`
}

// changes reports whether a call changes the workspace, and whether all of it
// may be meant.
func changes(spec belay.ToolSpec, c *Call) (changes, whole bool) {
	t := touches(spec, c.paths())
	return t.write && !t.none && !spec.ReadOnly && spec.Handled == "", len(t.files) == 0
}

// share begins to ask before changing something, and tells the session what
// runs already. A thread that runs nothing has no rules to know.
func (h *handler) share() {
	if h.Shared {
		return
	}
	ids := h.threadIDs()
	join := belay.HoldWorkspace{Thread: ids.Thread, Joined: true}
	h.record(core.Fact{IDs: ids, Data: event.ThreadUpdated{Hold: &event.HoldChange{Op: event.HoldShared}}})
	for _, c := range h.Turn.calls() {
		if c.Phase == CallOver || c.Attempt == 0 || !c.Changes {
			continue
		}
		held := belay.Hold{Call: c.ID, Whole: true} // without the rules it isn't known
		if spec, ok := h.rules.Tool(c.Name); ok {
			var writes bool
			if writes, held.Whole = changes(spec, c); !writes {
				continue
			}
		}
		join.Calls = append(join.Calls, held)
		h.record(h.holdFact(event.HoldGranted, held))
	}
	h.reportUsage() // before the session grants anything
	h.send(core.Send{To: ids.Session.Stream(), Command: join})
}

func (h *handler) grantHold(c belay.GrantWorkspace) {
	i := h.hold(c.Call)
	if i < 0 || h.Holds[i].Granted {
		return
	}
	f := h.holdFact(event.HoldGranted, h.Holds[i].Hold)
	f.Data.(event.ThreadUpdated).Hold.Others = c.Others
	h.record(f)
}

func (p *programState) hold(call belay.CallID) int {
	return slices.IndexFunc(p.Holds, func(h held) bool { return h.Call == call })
}

func (s *State) holdFact(op string, h belay.Hold) core.Fact {
	return s.threadFact(event.ThreadUpdated{Hold: &event.HoldChange{Op: op, Call: h.Call, Whole: h.Whole}})
}

func (ps *programState) applyHold(p event.HoldChange) {
	i := ps.hold(p.Call)
	switch {
	case p.Op == event.HoldShared:
		ps.Shared = true
	case p.Op == event.HoldReleased && i >= 0:
		ps.Holds = slices.Delete(ps.Holds, i, i+1)
	case p.Op == event.HoldGranted && i >= 0:
		if ps.Holds[i].Granted = true; p.Others != nil {
			ps.Others = *p.Others
		}
	case p.Op != event.HoldReleased && i < 0:
		ps.Holds = append(ps.Holds, held{belay.Hold{Call: p.Call, Whole: p.Whole}, p.Op == event.HoldGranted})
	}
}

// waitsForHold reports whether a call has to wait for the session's word, and
// asks for it once. A call whose boundary has limits of the session asks too: what
// the others used comes with the word.
func (d *decision) waitsForHold(spec belay.ToolSpec, c *Call) bool {
	writes, whole := changes(spec, c)
	if !writes {
		writes, whole = c.Bound != nil && hasProcess(spec) && c.Bound.Is.Limits.OfSession(), false
	}
	if !d.Shared || !writes {
		return false
	}
	i := d.hold(c.ID)
	if i < 0 {
		h := belay.Hold{Call: c.ID, Whole: whole}
		d.record(d.holdFact(event.HoldAsked, h))
		d.send(core.Send{To: d.Session.Stream(), Command: belay.HoldWorkspace{Thread: d.Thread, Calls: []belay.Hold{h}}})
	}
	return i < 0 || !d.Holds[i].Granted
}

// givesBack returns the holds of calls that are over.
func (d *decision) givesBack() {
	for _, h := range d.Holds {
		if c := d.Turn.call(h.Call); c != nil && c.Phase != CallOver && c.Phase != CallRan && c.Again == nil {
			continue
		}
		d.record(d.holdFact(event.HoldReleased, h.Hold))
		d.send(core.Send{To: d.Session.Stream(), Command: belay.ReleaseWorkspace{Thread: d.Thread, Call: h.Call}})
	}
}

package thread

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/grant"
)

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
	join := belay.AskGrants{Thread: ids.Thread, Joined: true}
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

func (h *handler) takeHold(c belay.GiveGrant) {
	g := h.Holds.Find("", string(c.Call))
	if g == nil || g.Given {
		return
	}
	f := h.holdFact(event.HoldGranted, belay.Hold{Call: c.Call, Whole: g.Whole})
	f.Data.(event.ThreadUpdated).Hold.Others = c.Others
	h.record(f)
}

func (s *State) holdFact(op string, h belay.Hold) core.Fact {
	return s.threadFact(event.ThreadUpdated{Hold: &event.HoldChange{Op: op, Call: h.Call, Whole: h.Whole}})
}

// applyHold folds a change of the holds that calls have or ask for. Whether they
// get them is the session's word; it is a fact here before the call begins.
func (ps *programState) applyHold(p event.HoldChange) {
	g := grant.Grant[belay.ThreadID]{ID: string(p.Call), Whole: p.Whole}
	switch p.Op {
	case event.HoldShared:
		ps.Shared = true
	case event.HoldAsked:
		ps.Holds.Ask(g)
	case event.HoldGranted:
		if ps.Holds.Give(g); p.Others != nil {
			ps.Others = *p.Others
		}
	case event.HoldReleased:
		ps.Holds.Return("", g.ID)
	}
}

// wantsHold is what a call has to be granted by the session before it begins, and whether
// it isn't yet. A call whose boundary has limits of the session asks too: what the others
// used comes with the word.
func (d *decision) wantsHold(spec belay.ToolSpec, c *Call) (h belay.Hold, waits bool) {
	writes, whole := changes(spec, c)
	if !writes {
		writes, whole = c.Bound != nil && hasProcess(spec) && c.Bound.Is.Limits.OfSession(), false
	}
	g := d.Holds.Find("", string(c.ID))
	return belay.Hold{Call: c.ID, Whole: whole}, d.Shared && writes && (g == nil || !g.Given)
}

// waitsForHold reports whether a call has to wait for the session's word, and asks for it
// once.
func (d *decision) waitsForHold(spec belay.ToolSpec, c *Call) bool {
	h, waits := d.wantsHold(spec, c)
	if waits && d.Holds.Find("", string(c.ID)) == nil {
		d.record(d.holdFact(event.HoldAsked, h))
		d.send(core.Send{To: d.Session.Stream(), Command: belay.AskGrants{Thread: d.Thread, Calls: []belay.Hold{h}}})
	}
	return waits
}

// givesBack returns the holds of calls that are over, or wait for a person. A server that
// waits for an answer is in the middle of its work, and keeps its hold.
func (d *decision) givesBack() {
	for _, g := range d.Holds {
		h := belay.Hold{Call: belay.CallID(g.ID), Whole: g.Whole}
		if c := d.Turn.call(h.Call); c != nil && c.Phase != CallOver && (c.Phase != CallRan || c.heldByServer()) && c.Again == nil {
			continue
		}
		d.record(d.holdFact(event.HoldReleased, h))
		d.send(core.Send{To: d.Session.Stream(), Command: belay.ReturnGrant{Thread: d.Thread, Call: h.Call}})
	}
}

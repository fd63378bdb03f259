package thread

import (
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// Edited is an answer that allows a call with other arguments. Call is the call
// as it runs then: its arguments checked, its paths looked up. Whoever handles a
// RespondAction makes it; it is never kept.
type Edited struct {
	belay.RespondAction
	Call   event.ModelCall
	Stands *belay.ApprovalContext // as it is when the answer comes
}

// Open is a question that waits, and the call it is about; none is about the turn
// itself.
type Open struct {
	*Ask
	Call *Call
}

// Opens are the open questions of the running turn. Other packages must not change them.
func (s *State) Opens() (all []Open) {
	if s.Turn == nil {
		return nil
	}
	if a := s.Turn.Ask; a != nil && a.Open {
		all = append(all, Open{a, nil})
	}
	for _, c := range s.Turn.calls() {
		if c.Ask != nil && c.Ask.Open && c.Phase != CallOver {
			all = append(all, Open{c.Ask, c})
		}
	}
	return all
}

// OpenAsk is one of them; its Ask is nil if it doesn't wait.
func (s *State) OpenAsk(id belay.ActionID) Open {
	for _, o := range s.Opens() {
		if o.Action == id {
			return o
		}
	}
	return Open{}
}

// Version names a question as it is: it changes when what is asked for does.
func (o Open) Version() string {
	said := string(o.Action) + "\n" + o.Kind + "\n" + o.Until.UTC().Format(time.RFC3339Nano)
	if o.Call != nil {
		said += "\n" + o.Call.Name + "\n" + string(o.Call.ArgsHash) + "\n" + string(o.Within)
	}
	return belay.DigestOf([]byte(said)).Short()
}

// Alike names what a question asks for, whoever asks: the same call, in the same folder
// and boundary. Empty: no other question is like it.
func (s *State) Alike(o Open) belay.Digest {
	if o.Call == nil || o.Kind != "permission" && o.Kind != "question" {
		return ""
	}
	folder := s.Workspace
	if o.Call.Stands != nil {
		folder += "\n" + o.Call.Stands.Folder
	}
	stopped := ""
	if o.Wider != nil && o.Call.Stopped != nil {
		stopped = o.Call.Stopped.Op + " " + o.Call.Stopped.Target
	}
	return belay.DigestOf([]byte(strings.Join([]string{o.Kind, o.Call.Name, string(o.Call.ArgsHash), folder, string(o.Within), stopped}, "\n")))
}

// edits changes a call before it is allowed, and returns it as it runs then. It is judged again, so an edit gets past nothing that is denied.
//
// An edited call is allowed once: what else a grant would cover is said of the
// arguments that were asked about, and the gate hasn't spoken of others yet.
func (h *handler) edits(ask *Ask, call *Call, c belay.RespondAction, edit *Edited) (*Call, error) {
	if edit == nil && len(c.Args) == 0 {
		return call, nil
	}
	bad := func(format string, args ...any) (*Call, error) {
		return nil, belay.Errorf(belay.CodeBadCommand, format, args...)
	}
	switch {
	case c.Decision != "allow":
		return bad("only a call that is allowed gets other arguments")
	case ask.Kind != "permission" || call == nil:
		return bad("a %s has no arguments to change", ask.Kind)
	case ask.Wider != nil:
		return bad("the call has begun already: its boundary can be answered, its arguments can't be changed")
	case c.Scope != "" && c.Scope != "once":
		return bad("a call that was changed is allowed once, not with scope %s", event.CutText(c.Scope, maxWord))
	case edit == nil:
		return bad("nobody has read the changed arguments")
	case edit.Call.ArgsHash == call.ArgsHash:
		return call, nil
	}
	runs, to := *call, &edit.Call
	runs.ArgsHash = to.ArgsHash
	h.record(core.Fact{IDs: h.callIDs(call), Data: event.ToolArgs{Name: call.Name, By: h.order.Principal, Args: to.Args, ArgsRef: to.ArgsRef, ArgsHash: to.ArgsHash, Before: call.ArgsHash,
		Path: to.Path, Paths: to.Paths, Links: to.Links, Stands: edit.Stands}})
	return &runs, nil
}

// asksFor ends a question about a call that somebody changed who may ask for it and not
// allow it: what is asked for now is theirs, and judged as that.
func (h *handler) asksFor(ask *Ask, was, runs *Call, c belay.RespondAction) error {
	if runs == was {
		return belay.Errorf(belay.CodeForbidden, "the call stays as it was, and allowing it is another person's duty").At(string(c.Action)).WithHint("change its arguments, or let an approver answer")
	}
	h.resolve(ask, runs, "cancelled", h.order.Principal, "", c.Message)
	return nil
}

// edited folds that a call runs with other arguments. Whatever was found out
// about those before is found out again.
func (c *Call) edited(p event.ToolArgs) {
	c.Args, c.ArgsRef, c.ArgsHash = p.Args, p.ArgsRef, p.ArgsHash
	c.Path, c.Paths, c.Links = p.Path, p.Paths, p.Links
	c.Phase, c.Verdict, c.Reason, c.Hint, c.Tags, c.Checks = CallProposed, "", "", "", nil, nil
	c.Bound, c.Least, c.Stands = nil, "", p.Stands
}

// bounded folds the boundary that a yes gives: the answer is for that one.
func (a *Ask) bounded(name string, is *belay.Boundary) {
	a.Boundary, a.Within = name, within(nil)
	if is != nil {
		a.Within = within(&policy.Bound{Name: name, Is: *is})
	}
}

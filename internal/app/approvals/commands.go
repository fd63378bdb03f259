// Package approvals has the use cases around what agents ask people and what people
// allow.
package approvals

import (
	"context"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.Define("respond_action", auth.Reply, true, "Answer what an agent asks: allow, deny, or answer. A question about a budget is an operator's to answer, all others are an approver's.", Respond),
		app.Define("resolve_permission", auth.Answer, true, "Answer a question of the gate: allow or deny.", resolvePermission),
		app.DefineLook("list_grants", auth.Read, "List what people allowed in a session and that counts yet.", listGrants),
		app.Define("revoke_grant", auth.Answer, true, "Take back what a person allowed; it counts from the next call that is judged.", Revoke),
	}
}

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineRead(app.Read{Name: "listActions", Path: "/v1/actions", Tag: "approvals", Doc: "List the questions that wait for a person, or those that were decided, the newest first. The same question of several agents is one.",
			Query: []read.Param{{Name: "sessionId", Doc: "Only those of this session."},
				{Name: "state", Doc: "open (also when left out): those that wait; decided: those that don't any more.", OneOf: []string{"open", "decided"}},
				{Name: "before", Doc: "Of those that were decided, the ones before a position: next of the answer before.", Whole: true},
				{Name: "limit", Doc: "How many at most; 100 when left out. Of a session, all that wait are listed.", Whole: true}}}, listActions),
		app.DefineRead(app.Read{Name: "previewAction", Path: "/v1/actions/{id}/preview", Tag: "approvals", Doc: "Show what an approval of a question would do: the change of files as they are now, what a command runs and where, or its text.",
			ID: "The question."}, previewAction),
	}
}

// ActionsShown are questions.
type ActionsShown struct {
	app.Fresh
	Actions []app.Action   `json:"actions"`           // that wait, the oldest first; of more than the limit, those with the nearest deadlines
	Waiting int            `json:"waiting,omitempty"` // how many wait
	Decided []view.Decided `json:"decided,omitempty"` // that were decided, the newest first
	Next    store.Position `json:"next,omitempty"`    // before=NEXT has more of these; 0: there are none
}

func listActions(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*ActionsShown, error) {
	id := belay.SessionID(q.Values.Get("sessionId"))
	if err := input.ID("query sessionId", string(id)); err != nil {
		return nil, err
	}
	if id != "" { // an unknown session must be an error, not an empty list of questions
		s, err := c.Session(ctx, id)
		if err == nil && s.Session == "" {
			err = app.NoSession(id)
		}
		if err != nil {
			return nil, input.At("query sessionId", err)
		}
	}
	before, limit, err := read.Part(q)
	if err != nil {
		return nil, err
	}
	out := &ActionsShown{Fresh: f, Actions: []app.Action{}}
	if q.Values.Get("state") != "decided" {
		out.Actions, out.Waiting, err = c.Questions(ctx, id, limit)
	} else if out.Stale, err = c.Reads.Summed(ctx, f); err == nil {
		out.Decided, out.Next, err = view.DecidedActions(ctx, c.Store, before, func(d *view.Decided) bool { return id == "" || d.Session == id }, limit)
	}
	return out, err
}

package app

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

// Action is an open question as who answers it must see it: whole.
type Action struct {
	ID       belay.ActionID         `json:"actionId"`
	Version  string                 `json:"version"` // changes when the request does
	Kind     string                 `json:"kind"`    // permission, question, form, continue, budget
	Session  belay.SessionID        `json:"sessionId"`
	Thread   belay.ThreadID         `json:"threadId"`
	Turn     belay.TurnID           `json:"turnId,omitempty"`
	Call     belay.CallID           `json:"callId,omitempty"`
	Tool     string                 `json:"tool,omitempty"`
	Args     json.RawMessage        `json:"args,omitempty"`     // of the call, exactly
	ArgsRef  *belay.Ref             `json:"argsRef,omitempty"`  // content that has them, when they are long
	ArgsHash belay.Digest           `json:"argsHash,omitempty"` // what an answer is bound to
	Shown    string                 `json:"shown,omitempty"`    // the call, whole, on one line: what doesn't show itself is written out
	Again    *event.Again           `json:"again,omitempty"`    // why it is asked once more after it was allowed
	Budget   *event.BudgetAsked     `json:"budget,omitempty"`   // that there isn't enough of, and what an approval raises it by
	Form     *event.FormAsked       `json:"form,omitempty"`     // what an MCP server wants to know
	Boundary string                 `json:"boundary,omitempty"` // that its programs run in, if it is allowed
	Stands   *belay.ApprovalContext `json:"stands,omitempty"`   // what an answer is bound to besides: the folder, the variables, the programs
	Tags     []string               `json:"tags,omitempty"`     // risks that the gate saw
	Taint    []string               `json:"taint,omitempty"`    // what the conversation has from outside
	Lineage  []belay.Ancestor       `json:"lineage,omitempty"`  // of a sub-agent's: from the main thread to the one that asks
	Alike    []belay.ActionID       `json:"alike,omitempty"`    // of other agents of the session: the same call, folder and boundary
	Prompt   string                 `json:"prompt,omitempty"`
	Asked    time.Time              `json:"asked,omitzero"`
	Until    time.Time              `json:"until"` // then it is denied

	like belay.Digest
}

// Answers is the scope that an answer to a question needs, and the role that has it.
func Answers(a Action) (auth.Scope, auth.Role) {
	if a.Budget != nil {
		return auth.Work, auth.Operator
	}
	return auth.Answer, auth.Approver
}

// OpenAction is a question of a thread that waits, or nil.
func OpenAction(th *thread.State, id belay.ActionID) *Action {
	for _, a := range OpenActions(th) {
		if a.ID == id {
			return &a
		}
	}
	return nil
}

// OpenActions are the questions of a thread that wait.
func OpenActions(th *thread.State) []Action {
	var out []Action
	for _, o := range th.Opens() {
		a := Action{ID: o.Action, Version: o.Version(), Kind: o.Kind, Session: th.Session, Thread: th.Thread, Turn: th.Turn.Turn, Until: o.Until, Again: o.Again, Budget: o.Budget, Lineage: th.Lineage, like: th.Alike(o)}
		if c := o.Call; c != nil {
			a.Boundary, a.Stands = o.Boundary, c.Stands
			a.Call, a.Tool, a.Args, a.ArgsRef, a.ArgsHash, a.Tags = c.ID, c.Name, c.Args, c.ArgsRef, c.ArgsHash, c.Tags
			if o.Kind == "form" && c.Input != nil {
				a.Form = &c.Input.FormAsked
			}
			for _, t := range th.Taint {
				a.Taint = append(a.Taint, t.Kind+" "+t.Origin)
			}
		}
		out = append(out, a)
	}
	return out
}

// ShowWhole puts the call as a person must see it: nothing of it is left out.
func (r *Runtime) ShowWhole(ctx context.Context, a *Action) error {
	if a.Tool == "" || a.Form != nil {
		return nil
	}
	args := []byte(a.Args)
	if a.ArgsRef != nil {
		var err error
		if args, err = r.Store.Get(ctx, a.ArgsRef.Digest); err != nil {
			return err
		}
	}
	a.Shown = story.Call(a.Tool, args)
	return nil
}

// Questions are the open questions as a person is shown them, oldest first, of one session
// if it is named, else those that wait for the nearest deadlines, at most so many: alike ones
// of several agents are one. waiting is how many there are.
func (r *Runtime) Questions(ctx context.Context, only belay.SessionID, most int) (out []Action, waiting int, err error) {
	var all []Action
	if only != "" {
		all, err = r.Actions(ctx, only)
		waiting = len(all)
	} else {
		all, waiting, err = r.nextActions(ctx, most)
	}
	out = []Action{}
	for _, a := range all {
		if i := slices.IndexFunc(out, func(o Action) bool { return o.isLike(&a) }); i >= 0 {
			out[i].Alike = append(out[i].Alike, a.ID)
			continue
		}
		out = append(out, a)
	}
	return out, waiting, err
}

func (a *Action) isLike(o *Action) bool {
	return a.like != "" && a.like == o.like && a.Session == o.Session && a.Thread != o.Thread
}

// LikeIt are the open questions of other agents that are like one.
func (r *Runtime) LikeIt(ctx context.Context, a *Action) (like []Action, err error) {
	all, err := r.Actions(ctx, a.Session)
	for _, o := range all {
		if o.isLike(a) {
			like = append(like, o)
		}
	}
	return like, err
}

// Actions are the open questions of a session, oldest first.
func (r *Runtime) Actions(ctx context.Context, id belay.SessionID) ([]Action, error) {
	if err := r.Reads.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	rows, err := view.SessionsByID(ctx, r.Store, []belay.SessionID{id})
	if err != nil || len(rows) == 0 {
		return []Action{}, err
	}
	return r.openOf(ctx, rows[0].Actions)
}

// nextActions are the open questions of all sessions that wait for the nearest deadlines,
// oldest first, at most so many, and how many wait.
func (r *Runtime) nextActions(ctx context.Context, most int) ([]Action, int, error) {
	if err := r.Reads.Views.Catchup(ctx); err != nil {
		return nil, 0, err
	}
	places, waiting, err := view.OpenActions(ctx, r.Store, most)
	if err != nil {
		return nil, 0, err
	}
	var rows []view.Action
	for _, at := range places {
		rows = append(rows, *at.Open)
	}
	slices.SortStableFunc(rows, func(a, b view.Action) int { return a.Asked.Compare(b.Asked) })
	all, err := r.openOf(ctx, rows)
	return all, waiting, err
}

// openOf are the questions of rows that wait yet, whole.
func (r *Runtime) openOf(ctx context.Context, rows []view.Action) ([]Action, error) {
	out := []Action{}
	threads := map[belay.ThreadID]*thread.State{}
	for _, o := range rows {
		th := threads[o.Thread]
		if th == nil {
			var err error
			if th, err = r.Thread(ctx, o.Thread); err != nil {
				return nil, err
			}
			threads[o.Thread] = th
		}
		if a := OpenAction(th, o.ID); a != nil {
			a.Prompt, a.Asked = o.Prompt, o.Asked
			if err := r.ShowWhole(ctx, a); err != nil {
				return nil, err
			}
			out = append(out, *a)
		}
	}
	return out, nil
}

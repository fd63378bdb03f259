package tasks

import (
	"cmp"
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
)

// SetGoal is what set_goal takes.
type SetGoal struct {
	Session belay.SessionID `json:"sessionId,omitempty" jsonschema:"the session; a new one is made for an id that is new, or none"`
	Task    belay.TaskID    `json:"taskId,omitempty" jsonschema:"the caller's id of the goal's task: told twice, it is one goal"`
	Text    string          `json:"text" jsonschema:"what is to be reached"`

	Acceptance []app.CheckInput `json:"acceptance,omitempty" jsonschema:"what must hold before it counts as met, at most 16"`

	Workspace string `json:"workspace,omitempty" jsonschema:"folder of a new session; the server's own when it is left out"`
}

// Goal makes a task of the main agent whose attempts follow one another until one meets
// it, and starts it.
func Goal(ctx context.Context, r *app.Call, in *SetGoal) (*app.Result, error) {
	create, start := *r, *r
	create.Command, start.Command = "create_task", "start_task"
	if err := input.Text("text", in.Text, app.MaxText); err != nil {
		return nil, err
	}
	made, err := Create(ctx, &create, &CreateTask{Session: in.Session, Task: in.Task, Objective: in.Text, Acceptance: in.Acceptance, Workspace: in.Workspace, goal: true})
	if err != nil {
		return nil, err
	}
	return Start(ctx, &start, &StartTask{Session: made.Session, Task: made.Task})
}

// missed are the outcomes after which a goal's next attempt follows.
var missed = slices.DeleteFunc(slices.Clone(belay.Outcomes), func(o belay.Outcome) bool { return o == belay.Completed || o == belay.Cancelled })

// ClearGoal is what clear_goal takes.
type ClearGoal struct {
	Session belay.SessionID `json:"sessionId"`
	Reason  string          `json:"reason,omitempty"`
}

// Clear cancels the goal of a session.
func Clear(ctx context.Context, r *app.Call, in *ClearGoal) (*app.Result, error) {
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	g := s.Plan.Goal()
	if g == nil {
		return nil, input.At("sessionId", belay.Errorf(belay.CodeBadState, "the session has no goal").WithHint("set_goal sets one"))
	}
	return Cancel(ctx, r, &CancelTask{Session: in.Session, Task: g.Task, Reason: cmp.Or(in.Reason, "the goal was cleared")})
}

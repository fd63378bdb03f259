package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/tool"
)

// AppendTaskProgress is what append_task_progress takes.
type AppendTaskProgress struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Phase   string          `json:"phase,omitempty" jsonschema:"planning, working, verifying, delivering, waiting"`
	Summary string          `json:"summary,omitempty" jsonschema:"what is done, or comes next"`
	Done    int             `json:"done,omitempty" jsonschema:"of total, of one unit"`
	Total   int             `json:"total,omitempty"`
}

var phases = []string{"", "planning", "working", "verifying", "delivering", "waiting"}

// Progress records how far a task is.
func Progress(ctx context.Context, r *app.Call, in *AppendTaskProgress) (*app.Result, error) {
	if err := input.Text("summary", in.Summary, app.MaxReason); err != nil {
		return nil, err
	}
	switch {
	case !slices.Contains(phases, in.Phase):
		return nil, input.At("phase", belay.Errorf(belay.CodeBadCommand, "%q is no phase", input.Shown(in.Phase)).WithHint("use %s", strings.Join(phases[1:], ", ")))
	case in.Done < 0 || in.Total < 0 || in.Total > 0 && in.Done > in.Total:
		return nil, input.At("done", belay.Errorf(belay.CodeBadCommand, "%d of %d can't be done", in.Done, in.Total))
	case in.Phase == "" && strings.TrimSpace(in.Summary) == "" && in.Total == 0 && in.Done == 0:
		return nil, input.At("summary", belay.Errorf(belay.CodeBadCommand, "nothing is said of the task").WithHint("name a phase, a summary, or counts"))
	}
	return toTask(ctx, r, in.Session, in.Task, belay.NoteProgress{Phase: in.Phase, Summary: r.Clean(strings.TrimSpace(in.Summary)), Done: in.Done, Total: in.Total})
}

// CompleteTask is what complete_task takes.
type CompleteTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Summary string          `json:"summary,omitempty" jsonschema:"what was done"`
	Waive   []string        `json:"waive,omitempty" jsonschema:"ids of checks that it needn't pass"`
	Reason  string          `json:"reason,omitempty" jsonschema:"why not"`
	Turn    belay.TurnID    `json:"turnId,omitempty" jsonschema:"the caller's id of the turn that runs the checks"`
}

// Complete ends a task well. What it must pass is checked first.
func Complete(ctx context.Context, r *app.Call, in *CompleteTask) (*app.Result, error) {
	in.Reason = strings.TrimSpace(in.Reason)
	if err := cmp.Or(input.Text("summary", in.Summary, app.MaxSaid), input.Text("reason", in.Reason, app.MaxReason), input.ID("turnId", string(in.Turn))); err != nil {
		return nil, err
	}
	if len(in.Waive) > 0 && in.Reason == "" {
		return nil, input.At("reason", belay.Errorf(belay.CodeBadCommand, "a check is waived without a reason").WithHint("say why it needn't pass"))
	}
	t, err := r.Task(ctx, in.Session, in.Task)
	if err != nil {
		return nil, err
	}
	c := belay.CompleteTask{Summary: belay.Content{Text: r.Clean(strings.TrimSpace(in.Summary))}}
	if c.Gates, err = gatesOf(ctx, r, t); err != nil {
		return nil, err
	}
	var ids []string
	left := slices.DeleteFunc(append(slices.Clone(t.Acceptance), c.Gates...), func(k belay.Check) bool {
		ids = append(ids, k.ID)
		return slices.Contains(in.Waive, k.ID)
	})
	for _, id := range in.Waive {
		if !slices.Contains(ids, id) {
			return nil, input.At("waive", belay.Errorf(belay.CodeNotFound, "the task has no check %s", input.Shown(id)).WithHint("%s", match.Hint(id, ids, "get_task lists its checks")))
		}
		c.Waive = append(c.Waive, belay.Waiver{Check: id, Reason: r.Clean(in.Reason)})
	}
	if len(left) == 0 {
		return toTask(ctx, r, in.Session, in.Task, c)
	}
	return verify(ctx, r, in, t, c, left)
}

// gatesOf are the checks that the file of its agent demanded of the last attempt of a task,
// besides those of the task.
func gatesOf(ctx context.Context, r *app.Call, t *task.State) ([]belay.Check, error) {
	if t.Thread == "" {
		return nil, nil
	}
	var ref *belay.Ref
	for e, err := range r.Store.Read(ctx, t.Thread.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		if p, ok := e.Data.(event.TurnStarted); ok && e.IDs.Task == t.Task && p.Agent != nil && p.Kind != belay.TurnSystem {
			ref = &p.Rules
		}
	}
	if ref == nil {
		return nil, nil
	}
	rules, err := r.RulesOf(ctx, *ref)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(rules.Gates), func(k belay.Check) bool {
		return slices.ContainsFunc(t.Acceptance, func(own belay.Check) bool { return own.ID == k.ID })
	}), nil
}

// verify lets a turn that asks no model call the completion, so that it runs the checks that
// are left.
func verify(ctx context.Context, r *app.Call, in *CompleteTask, t *task.State, c belay.CompleteTask, left []belay.Check) (*app.Result, error) {
	if err := t.Closable(); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	c.Task, c.Turn = in.Task, in.Turn
	if c.Turn == "" {
		c.Turn = belay.TurnID(belay.NewID(belay.PrefixTurn))
		if r.Key != "" {
			c.Turn = belay.TurnID(r.Keyed(belay.PrefixTurn))
		}
	}
	if c.Thread = t.Thread; c.Thread == "" || t.Subagent != "" {
		if c.Thread, err = threadFor(ctx, r, s, ""); err != nil {
			return nil, err
		}
	}
	if c.Rules, err = r.Workspaces.CompletionRules(ctx, r.By.String(), s.Workspace, s.Settings); err != nil {
		return nil, err
	}
	if err := verifiable(ctx, r, c.Rules, left); err != nil {
		return nil, err
	}
	args, err := json.Marshal(struct {
		Summary string `json:"summary"`
	}{cmp.Or(c.Summary.Text, "completed by "+r.By.String())})
	if err != nil {
		return nil, err
	}
	text, err := scripted.DirectCall{Tool: tool.CompleteName, Args: string(args)}.Text()
	if err != nil {
		return nil, err
	}
	c.Text, err = content(ctx, r, text, s.Settings)
	if err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), c)
	if err == nil {
		told.Task = in.Task
	}
	return app.With(told, err, c.Thread, c.Turn)
}

// PauseTask is what pause_task takes.
type PauseTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Now     bool            `json:"now,omitempty" jsonschema:"what is in flight is cancelled; else it finishes"`
	Reason  string          `json:"reason,omitempty"`
}

// Pause keeps a task, its parts and the agents that work on them from beginning anything.
func Pause(ctx context.Context, r *app.Call, in *PauseTask) (*app.Result, error) {
	return pause(ctx, r, in, event.Paused)
}

// ResumeTask is what resume_task takes.
type ResumeTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Reason  string          `json:"reason,omitempty"`
}

// Resume ends a pause.
func Resume(ctx context.Context, r *app.Call, in *ResumeTask) (*app.Result, error) {
	return pause(ctx, r, &PauseTask{Session: in.Session, Task: in.Task, Reason: in.Reason}, event.Resumed)
}

func pause(ctx context.Context, r *app.Call, in *PauseTask, op string) (*app.Result, error) {
	if err := input.Text("reason", in.Reason, app.MaxReason); err != nil {
		return nil, err
	}
	t, err := r.Task(ctx, in.Session, in.Task)
	if err != nil {
		return nil, err
	}
	if t.Ended() {
		return nil, belay.Errorf(belay.CodeBadState, "task %s is %s", t.Task, t.Status).WithHint("list_tasks lists those that haven't ended")
	}
	if op == event.Resumed && !t.Paused {
		return nil, belay.Errorf(belay.CodeBadState, "task %s isn't paused: it is %s", t.Task, t.Status).WithHint("pause_task pauses it")
	}
	c := belay.PauseTask{Op: op, Now: in.Now, Reason: r.Clean(in.Reason), Task: in.Task}
	if t.Runs() {
		c.Thread = t.Thread
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), c)
	if err != nil {
		return nil, err
	}
	told.Task = in.Task
	if c.Thread == "" || op != event.Paused {
		return told, nil
	}
	s, err := r.Known(ctx, in.Session)
	if err == nil {
		told.Programs, err = r.Background(ctx, s, c.Thread)
	}
	return told, err
}

// FailTask is what fail_task takes.
type FailTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Reason  string          `json:"reason"`
}

// Fail ends a task without success.
func Fail(ctx context.Context, r *app.Call, in *FailTask) (*app.Result, error) {
	in.Reason = strings.TrimSpace(in.Reason)
	empty := error(nil)
	if in.Reason == "" {
		empty = input.At("reason", belay.Errorf(belay.CodeBadCommand, "the reason is empty"))
	}
	if err := cmp.Or(input.Text("reason", in.Reason, app.MaxReason), empty); err != nil {
		return nil, err
	}
	return toTask(ctx, r, in.Session, in.Task, belay.FailTask{Reason: r.Clean(in.Reason)})
}

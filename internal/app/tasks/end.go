package tasks

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
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
}

// Complete ends a task well.
func Complete(ctx context.Context, r *app.Call, in *CompleteTask) (*app.Result, error) {
	if err := input.Text("summary", in.Summary, app.MaxSaid); err != nil {
		return nil, err
	}
	return toTask(ctx, r, in.Session, in.Task, belay.CompleteTask{Summary: belay.Content{Text: r.Clean(strings.TrimSpace(in.Summary))}})
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

package tasks

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/view"
)

// ListTasks is what list_tasks takes.
type ListTasks struct {
	Session belay.SessionID `json:"sessionId"`
	app.AsOf
}

// TasksShown are the tasks of a session.
type TasksShown struct {
	app.Fresh
	Session belay.SessionID `json:"sessionId"`
	Tasks   []view.Task     `json:"tasks"` // newest last
}

// List lists the tasks of a session.
func List(ctx context.Context, r *app.Call, f app.Fresh, in *ListTasks) (*TasksShown, error) {
	if _, err := r.Known(ctx, in.Session); err != nil {
		return nil, err
	}
	s, err := r.Row(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	return &TasksShown{f, in.Session, append([]view.Task{}, s.Tasks...)}, nil
}

// GetTask is what get_task takes.
type GetTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	app.AsOf
}

// TaskShown is a task, its edges and its attempts.
type TaskShown struct {
	app.Fresh
	Session   belay.SessionID `json:"sessionId"`
	Task      belay.TaskID    `json:"taskId"`
	Parent    belay.TaskID    `json:"parentTaskId,omitempty"`
	Thread    belay.ThreadID  `json:"threadId"`
	Title     string          `json:"title,omitempty"`
	Objective belay.Content   `json:"objective,omitzero"`
	Owner     string          `json:"owner,omitempty"`
	Priority  int             `json:"priority,omitempty"`
	Status    string          `json:"status"`
	Reason    string          `json:"statusReason,omitempty"`
	Edges     []session.Edge  `json:"edges,omitempty"`
	Blockers  []belay.TaskID  `json:"blockers,omitempty"` // that it waits for
	Attempts  []task.Attempt  `json:"attempts"`
}

// Get shows a task.
func Get(ctx context.Context, r *app.Call, f app.Fresh, in *GetTask) (*TaskShown, error) {
	t, err := r.Task(ctx, in.Session, in.Task)
	if err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	out := &TaskShown{Fresh: f, Session: in.Session, Task: in.Task, Parent: t.Parent, Thread: t.Thread, Title: t.Title, Objective: t.Objective, Owner: t.Owner,
		Priority: t.Priority, Status: t.Status, Attempts: append([]task.Attempt{}, t.Attempts...)}
	if p := s.Plan.Find(in.Task); p != nil {
		out.Edges, out.Reason, out.Blockers = p.Edges, p.Reason, s.Plan.Blockers(p)
	}
	return out, nil
}

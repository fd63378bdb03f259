package tasks

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/view"
)

// ListTasks is what list_tasks takes.
type ListTasks struct {
	Session belay.SessionID `json:"sessionId"`
	All     bool            `json:"all,omitempty" jsonschema:"archived ones too: they ended more than 7 days ago"`
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
	shown := append([]view.Task{}, s.Tasks...)
	if !in.All {
		shown = slices.DeleteFunc(shown, func(t view.Task) bool { return t.Archived })
	}
	return &TasksShown{f, in.Session, shown}, nil
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
	Assignee  string          `json:"assignee,omitempty"` // the agent that does it
	Priority  int             `json:"priority,omitempty"`
	Status    string          `json:"status"`
	Reason    string          `json:"statusReason,omitempty"`
	Edges     []session.Edge  `json:"edges,omitempty"`
	Blockers  []belay.TaskID  `json:"blockers,omitempty"` // that it waits for
	Attempts  []task.Attempt  `json:"attempts"`

	Constraints belay.Constraints `json:"constraints,omitzero"`
	Retry       belay.Retry       `json:"retry,omitzero"`
	Subagent    belay.SubagentID  `json:"subagentId,omitempty"` // that did the newest attempt

	Counts TaskCounts `json:"counts,omitzero"` // how far it is, as far as that can be counted

	Acceptance []belay.Check    `json:"acceptance,omitempty"`
	Checks     []view.TaskCheck `json:"checks,omitempty"` // what is known of those

	Report *event.FailureReport `json:"report,omitempty"` // of what agents tried in vain

	Output *belay.Content `json:"output,omitempty"` // of a team that has completed: JSON
}

// TaskCounts is how far a task is: of each, what has ended well of all.
type TaskCounts struct {
	Plan     TaskCount `json:"plan,omitzero"`     // items of the plan of the agent that works on it
	Children TaskCount `json:"children,omitzero"` // tasks that are parts of it, and agents that were started for it
	Checks   TaskCount `json:"checks,omitzero"`
}

// TaskCount counts one thing.
type TaskCount struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

func (c *TaskCount) count(done bool) {
	if c.Total++; done {
		c.Done++
	}
}

// counts counts how far a task is. Nothing of it is guessed.
func counts(id belay.TaskID, on belay.ThreadID, row view.Session, s *session.State) (c TaskCounts) {
	for _, t := range row.Tasks {
		if t.ID == id {
			for _, k := range t.Checks {
				c.Checks.count(k.Status == event.CheckPassed || k.Status == event.CheckWaived)
			}
		} else if t.Parent == id && t.Planned {
			c.Children.count(t.Status == "completed")
		}
	}
	for _, child := range s.Family {
		if child.ParentTask == id {
			c.Children.count(child.Outcome == belay.Completed)
		}
	}
	for _, th := range row.Threads {
		if th.ID != on {
			continue
		}
		for _, item := range th.Plan {
			if item.Status != "cancelled" {
				c.Plan.count(item.Status == "completed")
			}
		}
	}
	return c
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
		Priority: t.Priority, Status: t.Shown(), Attempts: append([]task.Attempt{}, t.Attempts...)}
	out.Acceptance, out.Assignee, out.Constraints, out.Retry, out.Subagent, out.Report = t.Acceptance, t.Assignee, t.Constraints, t.Retry, t.Subagent, t.Report
	row, err := r.Row(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	for _, shown := range row.Tasks {
		if shown.ID == in.Task {
			out.Checks = shown.Checks
		}
	}
	out.Counts = counts(in.Task, t.Thread, row, s)
	if p := s.Plan.Find(in.Task); p != nil {
		out.Edges, out.Reason, out.Blockers = p.Edges, p.Reason, s.Plan.Blockers(p)
		if p.CompleteAt > 0 && p.Status == "completed" {
			out.Output = p.Text
		}
	}
	return out, nil
}

package sessions

import (
	"cmp"
	"context"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/view"
	"slices"
)

// RunShown is a run: an attempt of a task.
type RunShown struct {
	app.Fresh
	Run     belay.RunID     `json:"runId"`
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId"`
	Task    belay.TaskID    `json:"taskId"`
	Turn    belay.TurnID    `json:"turnId"`
	Status  string          `json:"status"`            // queued, running, waiting, waiting_resource, ended
	Outcome belay.Outcome   `json:"outcome,omitempty"` // once it has ended
	Reason  string          `json:"reason,omitempty"`
	Summary string          `json:"summary,omitempty"`
}

func getRun(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*RunShown, error) {
	at, err := view.RunByID(ctx, c.Store, belay.RunID(q.ID))
	if belay.CodeOf(err) == belay.CodeNotFound {
		err = belay.Errorf(belay.CodeNotFound, "there is no run %s", q.ID).WithHint("the answer of submit_turn and of POST /v1/runs names it; list_tasks lists a session's")
	}
	if err != nil {
		return nil, input.At("path id", err)
	}
	row, err := view.SessionByID(ctx, c.Store, string(at.Session))
	if err != nil {
		return nil, err
	}
	tk, err := c.Task(ctx, at.Session, at.Task)
	if err != nil {
		return nil, err
	}
	return runShown(f, &row, at, tk), nil
}

// runShown puts together what is known of a run.
func runShown(f app.Fresh, s *view.Session, at view.RunAt, tk *task.State) *RunShown {
	out := &RunShown{Fresh: f, Run: at.ID, Session: at.Session, Thread: at.Thread, Task: at.Task, Turn: at.Turn, Status: view.Queued}
	if i := slices.IndexFunc(tk.Attempts, func(a task.Attempt) bool { return a.Run == at.ID }); i >= 0 && tk.Attempts[i].Outcome != "" {
		out.Status, out.Outcome = view.Ended, tk.Attempts[i].Outcome
	}
	for _, th := range s.Threads {
		if t := th.Turn; t != nil && t.ID == at.Turn {
			out.Status, out.Outcome, out.Reason, out.Summary = t.Status, cmp.Or(out.Outcome, t.Outcome), t.Reason, t.Summary // the task learns of it a moment later
		}
	}
	return out
}

package snapshot

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// TaskSummary counts the session's tasks.
type TaskSummary struct {
	Total    int            `json:"total"`
	Shown    int            `json:"shown"`
	ByStatus map[string]int `json:"byStatus"`
}

// Task is an objective and how far it is.
type Task struct {
	TaskID    belay.TaskID    `json:"taskId"`
	ParentID  belay.TaskID    `json:"parentTaskId,omitempty"`
	SessionID belay.SessionID `json:"sessionId"`
	ThreadID  belay.ThreadID  `json:"threadId,omitempty"`
	Objective string          `json:"objective,omitempty"` // its beginning
	Kind      string          `json:"taskKind,omitempty"`
	Status    string          `json:"status"`
	Reason    string          `json:"statusReason,omitempty"`
	Run       belay.RunID     `json:"currentRunId,omitempty"`
	Attempts  []*Attempt      `json:"attempts"`
	CreatedAt time.Time       `json:"createdAt,omitzero"`
	UpdatedAt time.Time       `json:"updatedAt,omitzero"`
	StartedAt time.Time       `json:"startedAt,omitzero"`
	EndedAt   time.Time       `json:"endedAt,omitzero"`
}

// Attempt is a run of a task. Its status has no word for lost and timed out, so
// the outcome stands beside it.
type Attempt struct {
	RunID     belay.RunID   `json:"runId"`
	Status    string        `json:"status"`
	Number    int           `json:"attemptCount"`
	TurnID    belay.TurnID  `json:"turnId,omitempty"`
	StartedAt time.Time     `json:"startedAt,omitzero"`
	EndedAt   time.Time     `json:"endedAt,omitzero"`
	Summary   string        `json:"completionSummary,omitempty"`
	Error     *AttemptError `json:"lastError,omitempty"`
}

// AttemptError is why an attempt ended without success.
type AttemptError struct {
	Outcome belay.Outcome `json:"outcome"`
	Message string        `json:"message,omitempty"`
}

// task folds a fact of a task's stream.
func (f *Fold) task(e event.Envelope) {
	if e.IDs.Task == "" {
		return // a refused command
	}
	t := f.taskOf(e)
	t.UpdatedAt = e.Time
	switch p := e.Data.(type) {
	case event.TaskCreated:
		t.ParentID, t.ThreadID, t.Objective, t.Kind, t.CreatedAt = e.IDs.ParentTask, p.Thread, cut(p.Objective.Text), p.Kind, e.Time
	case event.TaskStarted:
		t.Status, t.StartedAt = "running", e.Time
	case event.TaskRetrying:
		t.Status, t.Reason, t.EndedAt = "retrying", cut(p.Reason), time.Time{}
	case event.TaskCancelRequested:
		t.Status, t.Reason = "cancelling", cut(p.Reason)
	case event.TaskAttemptStarted:
		t.Status, t.Run = "running", e.IDs.Run
		t.Attempts = append(t.Attempts, &Attempt{RunID: e.IDs.Run, Status: "running", Number: p.Number, TurnID: p.Turn, StartedAt: e.Time})
	case event.TaskAttemptCompleted:
		a := t.attempt(e.IDs.Run)
		a.Status, a.EndedAt, a.Summary = "completed", e.Time, cut(p.Summary.Text)
	case event.TaskAttemptFailed:
		a := t.attempt(e.IDs.Run)
		a.Status, a.EndedAt, a.Error = ended(p.Outcome), e.Time, &AttemptError{p.Outcome, cut(p.Reason)}
	case event.TaskOver:
		t.Status, t.Reason, t.EndedAt = event.TaskStatus(p), cut(p.End().Reason), e.Time
	}
}

// taskOf finds a task, or takes it up; the oldest one makes room.
func (f *Fold) taskOf(e event.Envelope) *Task {
	t := f.tasks[e.IDs.Task]
	if t == nil {
		t = &Task{TaskID: e.IDs.Task, SessionID: f.s.SessionID, Status: "accepted", Attempts: []*Attempt{}}
		f.tasks[e.IDs.Task] = t
		f.s.Tasks = append(f.s.Tasks, t)
		if len(f.s.Tasks) > maxTasks {
			old := f.s.Tasks[0]
			f.dropped[old.Status]++
			delete(f.tasks, old.TaskID)
			f.s.Tasks = f.s.Tasks[1:]
		}
	}
	return t
}

func (t *Task) attempt(id belay.RunID) *Attempt {
	for _, a := range t.Attempts {
		if a.RunID == id {
			return a
		}
	}
	return &Attempt{RunID: id}
}

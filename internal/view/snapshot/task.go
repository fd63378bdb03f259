package snapshot

import (
	"cmp"
	"slices"
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

// TaskGraph are the edges between tasks, and from tasks to what else they have to do
// with.
type TaskGraph struct {
	Edges []TaskEdge `json:"edges"`
}

// TaskEdge is an edge from a task.
type TaskEdge struct {
	From belay.TaskID `json:"from"`
	*Relationship
}

func graphOf(tasks []*Task) TaskGraph {
	g := TaskGraph{Edges: []TaskEdge{}}
	for _, t := range tasks {
		for _, r := range t.Relationships {
			g.Edges = append(g.Edges, TaskEdge{t.TaskID, r})
		}
	}
	return g
}

// Task is an objective and how far it is.
type Task struct {
	TaskID    belay.TaskID    `json:"taskId"`
	ParentID  belay.TaskID    `json:"parentTaskId,omitempty"`
	SessionID belay.SessionID `json:"sessionId"`
	ThreadID  belay.ThreadID  `json:"threadId,omitempty"`
	Title     string          `json:"title,omitempty"`
	Objective string          `json:"objective,omitempty"` // its beginning
	Kind      string          `json:"taskKind,omitempty"`
	Priority  string          `json:"priority,omitempty"`
	Owner     *Who            `json:"owner,omitempty"`
	Requested *Who            `json:"requestedBy,omitempty"`
	Status    string          `json:"status"`
	Reason    string          `json:"statusReason,omitempty"`
	Run       belay.RunID     `json:"currentRunId,omitempty"`
	Attempts  []*Attempt      `json:"attempts"`
	CreatedAt time.Time       `json:"createdAt,omitzero"`
	UpdatedAt time.Time       `json:"updatedAt,omitzero"`
	StartedAt time.Time       `json:"startedAt,omitzero"`
	EndedAt   time.Time       `json:"endedAt,omitzero"`
	Progress  *Progress       `json:"progress,omitempty"` // that was told last

	Relationships []*Relationship `json:"relationships,omitempty"` // at most 64
}

// Progress is how far a task is.
type Progress struct {
	Phase   string `json:"phase,omitempty"`
	Summary string `json:"summary,omitempty"`
	Done    int    `json:"done,omitempty"`
	Total   int    `json:"total,omitempty"`
}

// Who names a person or an agent.
type Who struct {
	ID string `json:"id"`
}

func who(name string) *Who {
	if name == "" {
		return nil
	}
	return &Who{cut(name)}
}

// Relationship is an edge from a task to something that it has to do with.
type Relationship struct {
	Kind      belay.Relation `json:"kind"`
	Target    string         `json:"targetId"`
	Status    string         `json:"status"` // of a blocker: open, met; of all others active
	OnFailed  string         `json:"onFailed,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	CreatedAt time.Time      `json:"createdAt,omitzero"`
	UpdatedAt time.Time      `json:"updatedAt,omitzero"`
}

// maxEdges is how many edges of a task are kept.
const maxEdges = 64

// relate folds a change of an edge.
func (t *Task) relate(e event.Envelope, p event.TaskDependencyUpdated) {
	target := cmp.Or(string(p.Target), p.To)
	i := slices.IndexFunc(t.Relationships, func(r *Relationship) bool { return r.Kind == p.Relation && r.Target == target })
	if p.Op == event.EdgeRemoved && i >= 0 {
		t.Relationships = slices.Delete(t.Relationships, i, i+1)
		return
	}
	if i < 0 {
		if p.Op != event.EdgeAdded || len(t.Relationships) >= maxEdges {
			return
		}
		i = len(t.Relationships)
		t.Relationships = append(t.Relationships, &Relationship{Kind: p.Relation, Target: target, Status: "active", CreatedAt: e.Time})
		if p.Relation == belay.RelationBlockedBy {
			t.Relationships[i].Status = "open"
		}
	}
	r := t.Relationships[i]
	r.UpdatedAt, r.Reason = e.Time, cut(p.Because)
	switch p.Op {
	case event.EdgeMet:
		r.Status = "met"
	case event.EdgeAdded:
		r.OnFailed = p.OnFailed
	}
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
		t.Title, t.Owner, t.Requested = cut(p.Title), who(p.Owner), who(p.By)
		t.Priority = priority(p.Priority)
	case event.TaskAccepted:
		t.Status, t.Reason = "accepted", ""
	case event.TaskUpdated:
		t.updated(p)
	case event.TaskProgress:
		t.Progress = &Progress{p.Phase, cut(p.Summary.Text), p.Done, p.Total}
	case event.TaskQueued:
		t.Status, t.Reason, t.ThreadID = "queued", cut(p.Reason), cmp.Or(p.Thread, t.ThreadID)
	case event.TaskStarted:
		t.Status, t.Reason, t.StartedAt = "running", "", e.Time
	case event.TaskPaused:
		t.Status, t.Reason = event.Paused, cut(p.Reason)
	case event.TaskResumed:
		t.Status, t.Reason = p.Status, ""
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

func (t *Task) updated(p event.TaskUpdated) {
	t.Title = cmp.Or(cut(p.Title), t.Title)
	if p.Objective != nil {
		t.Objective = cut(p.Objective.Text)
	}
	if p.Owner != "" {
		t.Owner = who(p.Owner)
	}
	if p.Priority != nil {
		t.Priority = priority(*p.Priority)
	}
}

// priority is the word for one; empty: it is the usual one.
func priority(n int) string {
	switch {
	case n < 0:
		return "low"
	case n > 0:
		return "high"
	}
	return ""
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

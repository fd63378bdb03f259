package event

import "github.com/belay-run/belay"

// TaskCreated gives a task its objective.
type TaskCreated struct {
	fact
	Objective belay.Content  `json:"objective"`
	Kind      string         `json:"kind"` // agent, flow, node
	Thread    belay.ThreadID `json:"assignedThread,omitempty"`
	By        string         `json:"by,omitempty"`
}

// TaskStarted says that the first attempt begins.
type TaskStarted struct {
	fact
}

// TaskRetrying says that another attempt follows, and why.
type TaskRetrying struct {
	fact
	Reason string `json:"reason,omitempty"`
}

// TaskCancelRequested is the wish to stop, before anything has stopped.
type TaskCancelRequested struct {
	fact
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// TaskEnd is what the ends of a task share.
type TaskEnd struct {
	Outcome belay.Outcome `json:"outcome"`
	Summary belay.Content `json:"summary,omitzero"`
	Reason  string        `json:"reason,omitempty"`
}

// The ends of a task.
type (
	TaskCompleted struct {
		fact
		TaskEnd
	}
	TaskFailed struct {
		fact
		TaskEnd
	}
	TaskCancelled struct {
		fact
		TaskEnd
	}
	TaskTimedOut struct {
		fact
		TaskEnd
	}
	TaskLost struct {
		fact
		TaskEnd
	}
	TaskBlocked struct {
		fact
		TaskEnd
	}
)

// TaskAttemptStarted begins a run of the task on a thread.
type TaskAttemptStarted struct {
	fact
	Number  int            `json:"number"` // from 1
	Thread  belay.ThreadID `json:"assignedThread"`
	Turn    belay.TurnID   `json:"turn"`
	Purpose string         `json:"purpose,omitempty"`
	Worker  string         `json:"worker,omitempty"`
}

// TaskAttemptCompleted ends a run well.
type TaskAttemptCompleted struct {
	fact
	Summary belay.Content `json:"summary,omitzero"`
}

// TaskAttemptFailed ends a run in any other way.
type TaskAttemptFailed struct {
	fact
	Outcome belay.Outcome `json:"outcome"`
	Reason  string        `json:"reason"`
}

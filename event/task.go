package event

import (
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// TaskCreated gives a task its objective.
type TaskCreated struct {
	fact
	Template  *belay.TemplateRef `json:"template,omitempty"` // what the objective was made from
	Objective belay.Content      `json:"objective"`
	Kind      string             `json:"kind"` // agent, goal, flow, node
	Thread    belay.ThreadID     `json:"assignedThread,omitempty"`
	By        string             `json:"by,omitempty"`
	Title     string             `json:"title,omitempty"`
	Owner     string             `json:"owner,omitempty"`
	Priority  int                `json:"priority,omitempty"`
	Planned   bool               `json:"planned,omitempty"` // the session starts it, and is told how it ends
	Assignee  string             `json:"assignee,omitempty"`

	Constraints belay.Constraints `json:"constraints,omitzero"` // what its attempts keep within

	Acceptance []belay.Check `json:"acceptance,omitempty"` // what must hold before it counts as done
	Retry      belay.Retry   `json:"retry,omitzero"`       // when it is tried again by itself
	Rules      *belay.Ref    `json:"rules,omitempty"`      // of the attempts that follow by themselves

	Node      string `json:"node,omitempty"`      // for kind node: the flow's node
	Iteration int    `json:"iteration,omitempty"` // of that node, from 1
}

// TaskGoal is the kind of a task whose attempts follow one another until one completes.
const TaskGoal = "goal"

// TaskStarted says that the first attempt begins.
type TaskStarted struct {
	fact
	Note string `json:"note,omitempty"` // to the agent: what it has to do without
}

// TaskRetrying says that another attempt follows, and why.
type TaskRetrying struct {
	fact
	Reason string `json:"reason,omitempty"`

	Turn belay.TurnID `json:"turn,omitempty"` // of an attempt that follows by itself
	At   time.Time    `json:"at,omitzero"`    // when it begins

	Agent string     `json:"agent,omitempty"` // that does it, in place of the one before
	Rules *belay.Ref `json:"rules,omitempty"` // of that one
}

// TaskCancelRequested is a request to stop the task; nothing has stopped yet.
type TaskCancelRequested struct {
	fact
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	Grace  bool   `json:"grace,omitempty"` // after one more step
}

// TaskEnd is what the ends of a task share.
type TaskEnd struct {
	Outcome belay.Outcome  `json:"outcome"`
	Summary belay.Content  `json:"summary,omitzero"`
	Output  *belay.Content `json:"output,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	By      string         `json:"by,omitempty"` // who ended it; empty: its attempt did

	Report *FailureReport `json:"report,omitempty"` // of what an agent didn't bring to a good end
}

// FailureReport is what is left of a task that agents tried in vain.
type FailureReport struct {
	Agent  string  `json:"agent"` // that tried it last, with its version
	Class  string  `json:"class"` // work, model, limit, gate, runtime
	Code   string  `json:"code"`
	Reason string  `json:"reason"`
	Tried  []Tried `json:"tried"` // the attempts, the last ones of many
	Next   string  `json:"next"`  // what a person can do
}

// Tried is an attempt of a failed task.
type Tried struct {
	Run     belay.RunID   `json:"run"`
	Agent   string        `json:"agent"`
	Outcome belay.Outcome `json:"outcome"`
	Code    string        `json:"code,omitempty"`
	Reason  string        `json:"reason,omitempty"`
}

// End returns what the fact shares with the other ends.
func (e TaskEnd) End() TaskEnd { return e }

// TaskOver is any of the ends of a task.
type TaskOver interface {
	Payload
	End() TaskEnd
}

// TaskStatus is the standard's word for how a task stands after its end.
func TaskStatus(p TaskOver) string { return strings.TrimPrefix(TypeOf(p), "task.") }

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
	Purpose string         `json:"purpose,omitempty"` // compensate, verify; empty is the objective
	By      string         `json:"by,omitempty"`      // whose word is verified
	Input   int            `json:"input,omitempty"`   // a text that was sent to who does the task, from 1
	Worker  string         `json:"worker,omitempty"`
}

// PurposeVerify is an attempt that only checks what the task must pass.
const PurposeVerify = "verify"

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
	Code    string        `json:"code,omitempty"`
	Agent   string        `json:"agent,omitempty"` // whose attempt it was, with its version
	Idle    bool          `json:"idle,omitempty"`  // of a goal: it changed nothing
}

// TaskAccepted says that the session takes responsibility for the task.
type TaskAccepted struct {
	fact
	By string `json:"by,omitempty"`
}

// TaskQueued says that the task waits for its turn.
type TaskQueued struct {
	fact
	Position int    `json:"position,omitempty"`
	Reason   string `json:"reason,omitempty"` // capacity, dependency, order, or why the memory doesn't suffice

	Thread   belay.ThreadID `json:"assignedThread,omitempty"` // of a planned task
	Turn     belay.TurnID   `json:"turn,omitempty"`           // of the first attempt, which waits
	Rules    *belay.Ref     `json:"rules,omitempty"`
	Priority int            `json:"priority,omitempty"`

	Input  int            `json:"input,omitempty"` // as in task.attempt.started
	Text   *belay.Content `json:"text,omitempty"`  // of its turn; none: the objective
	Taint  []string       `json:"taint,omitempty"`
	Limits *belay.Limits  `json:"limits,omitempty"`
}

// TaskUpdated changes what a task is, not how far it is.
type TaskUpdated struct {
	fact
	Title     string         `json:"title,omitempty"`
	Objective *belay.Content `json:"objective,omitempty"`
	Owner     string         `json:"owner,omitempty"`
	Priority  *int           `json:"priority,omitempty"`
	Assignee  *string        `json:"assignee,omitempty"`
	By        string         `json:"by,omitempty"`

	Constraints *belay.Constraints `json:"constraints,omitempty"` // in place of all that there were
	Retry       *belay.Retry       `json:"retry,omitempty"`

	Acceptance *[]belay.Check `json:"acceptance,omitempty"` // instead of all that there were
}

// TaskProgress says how far a task is.
type TaskProgress struct {
	fact
	By         string        `json:"by,omitempty"`
	Phase      string        `json:"phase,omitempty"` // planning, working, verifying, delivering, waiting
	Summary    belay.Content `json:"summary,omitzero"`
	Done       int           `json:"done,omitempty"`
	Total      int           `json:"total,omitempty"`
	Outputs    []belay.Ref   `json:"outputs,omitempty"`
	Delivery   string        `json:"delivery,omitempty"` // pending, delivered, queued, failed, parent_missing
	Checkpoint *Checkpoint   `json:"checkpoint,omitempty"`
	Check      *CheckResult  `json:"check,omitempty"` // of phase verifying
}

// Words of TaskProgress.Delivery.
const (
	DeliveryPending = "pending"        // who wants the result works, and will be told
	Delivered       = "delivered"      // who wanted it has it
	ParentMissing   = "parent_missing" // the turn that wanted it has ended; the next one is told
)

// Checkpoint is the state of a flow run between two of its steps.
type Checkpoint struct {
	Channels map[string]belay.Ref `json:"channels,omitempty"` // by name
	Versions map[string]int64     `json:"versions,omitempty"` // of those channels
}

// TaskWaiting says what has to come before the task continues.
type TaskWaiting struct {
	fact
	Status     string    `json:"status"` // waiting_input, waiting_permission, waiting_resource
	WaitingFor string    `json:"waitingFor,omitempty"`
	Until      time.Time `json:"until,omitzero"`
	Reason     string    `json:"reason,omitempty"`
}

// TaskPaused stops a task on purpose; it can be resumed.
type TaskPaused struct {
	fact
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// TaskResumed ends a pause or a wait.
type TaskResumed struct {
	fact
	Status string `json:"status,omitempty"` // how the task stands again
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// TaskArchived takes an ended task out of the lists. Its history stays.
type TaskArchived struct {
	fact
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// TaskDelegated says who does the task, or a part of it, for this one.
type TaskDelegated struct {
	fact
	To     string         `json:"to"` // subagent, job, worker, peer
	Task   belay.TaskID   `json:"task,omitempty"`
	Thread belay.ThreadID `json:"thread,omitempty"`
	Peer   *PeerTask      `json:"peer,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// TaskDependencyUpdated changes an edge between a task and something else.
type TaskDependencyUpdated struct {
	fact
	Relation belay.Relation `json:"relation"`         // parent, blocked_by, source_task, source_attempt, spawned_subagent, assigned_thread, produced_artifact, consumed_artifact, evidence
	Op       string         `json:"op"`               // added, removed, met, taken
	Target   belay.TaskID   `json:"target,omitempty"` // of a relation between tasks
	To       string         `json:"to,omitempty"`     // an id, of any other
	OnFailed string         `json:"onFailed,omitempty"`
	Edge     string         `json:"edge,omitempty"` // of the flow: FROM->TO
	Because  string         `json:"because,omitempty"`
}

// Ops of a TaskDependencyUpdated.
const (
	EdgeAdded   = "added"
	EdgeRemoved = "removed"
	EdgeMet     = "met"
)

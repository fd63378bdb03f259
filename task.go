package belay

import "slices"

// TaskPlan is what a planned task is, besides its objective.
type TaskPlan struct {
	Title    string `json:"title,omitempty"`
	Priority int    `json:"priority,omitempty"` // among those that can start; higher is first
	Owner    string `json:"owner,omitempty"`    // who answers for it
}

// Blocker is a task that has to end before another one starts.
type Blocker struct {
	Task     TaskID `json:"taskId"`
	OnFailed string `json:"onFailed,omitempty"` // if it doesn't end well: skip, run; empty: the other one is blocked
}

// What becomes of a task whose blocker doesn't end well.
const (
	OnFailedBlock = ""
	OnFailedSkip  = "skip"
	OnFailedRun   = "run"
)

// Relation is what a task has to do with something else.
type Relation string

// The relations, as the standard has them.
const (
	RelationParent    Relation = "parent"
	RelationChild     Relation = "child"
	RelationBlocks    Relation = "blocks"
	RelationBlockedBy Relation = "blocked_by"
	RelationSource    Relation = "source_task"
	RelationAttempt   Relation = "source_attempt"
	RelationSubagent  Relation = "spawned_subagent"
	RelationThread    Relation = "assigned_thread"
	RelationProduced  Relation = "produced_artifact"
	RelationConsumed  Relation = "consumed_artifact"
	RelationEvidence  Relation = "evidence"
)

// taskRelations are those between tasks, and those the other way round.
var taskRelations = []Relation{RelationParent, RelationBlockedBy, RelationSource, RelationChild, RelationBlocks}

// Relations are all of them.
func Relations() []Relation {
	return append(slices.Clone(taskRelations), RelationAttempt, RelationSubagent, RelationThread, RelationProduced, RelationConsumed, RelationEvidence)
}

// Tasks reports whether the relation is one between tasks.
func (r Relation) Tasks() bool { return slices.Contains(taskRelations, r) }

type (
	// PlanTask makes a session take in a task that doesn't start yet. The same task
	// again changes nothing.
	PlanTask struct {
		cmd
		Task      TaskID    `json:"taskId"`
		Objective Content   `json:"objective"`
		Plan      TaskPlan  `json:"plan,omitzero"`
		Parent    TaskID    `json:"parent,omitempty"`
		BlockedBy []Blocker `json:"blockedBy,omitempty"`
	}

	// UpdateTask changes what a task is. What is left out stays.
	UpdateTask struct {
		cmd
		Objective *Content `json:"objective,omitempty"`
		Title     string   `json:"title,omitempty"`
		Owner     string   `json:"owner,omitempty"`
		Priority  *int     `json:"priority,omitempty"`
	}

	// NoteProgress says how far a task is.
	NoteProgress struct {
		cmd
		Phase   string `json:"phase,omitempty"` // planning, working, verifying, delivering, waiting
		Summary string `json:"summary,omitempty"`
		Done    int    `json:"done,omitempty"`
		Total   int    `json:"total,omitempty"`
	}

	// CompleteTask ends a task well of which no attempt runs.
	CompleteTask struct {
		cmd
		Summary Content `json:"summary"`
	}

	// FailTask ends such a task without success.
	FailTask struct {
		cmd
		Reason string `json:"reason"`
	}

	// BeginTask makes a session start a planned task on a thread, a new one if need be,
	// as soon as no other task blocks it.
	BeginTask struct {
		cmd
		Task   TaskID   `json:"taskId"`
		Thread ThreadID `json:"thread"`
		Turn   TurnID   `json:"turn"`
		Rules  Ref      `json:"rules"`            // of the turn, a blob
		Quotas []Quota  `json:"quotas,omitempty"` // as in SubmitWork
	}

	// LinkTasks adds an edge between a task of a session and something else, or removes
	// it.
	LinkTasks struct {
		cmd
		Task     TaskID   `json:"taskId"`
		Relation Relation `json:"relation"`
		Target   string   `json:"target"` // an id
		OnFailed string   `json:"onFailed,omitempty"`
		Reason   string   `json:"reason,omitempty"`
		Remove   bool     `json:"remove,omitempty"`
	}

	// MarkTask tells a session how a task stands that it planned. The task sends it.
	MarkTask struct {
		cmd
		Task   TaskID `json:"taskId"`
		Status string `json:"status"` // of the standard
		Reason string `json:"reason,omitempty"`

		Priority *int `json:"priority,omitempty"` // that it has from now on
	}

	// BlockTask tells a task that it can't start: another one that it waits for didn't
	// end well.
	BlockTask struct {
		cmd
		Reason string `json:"reason"`
	}
)

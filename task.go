package belay

import (
	"encoding/json"
	"slices"
	"time"
)

// TaskPlan is what a planned task is, besides its objective.
type TaskPlan struct {
	Title    string `json:"title,omitempty"`
	Priority int    `json:"priority,omitempty"` // among those that can start; higher is first
	Owner    string `json:"owner,omitempty"`    // who answers for it
	Assignee string `json:"assignee,omitempty"` // the agent that does it; empty: the session's main one

	Constraints Constraints `json:"constraints,omitzero"`

	Acceptance []Check `json:"acceptance,omitempty"`
	Retry      Retry   `json:"retry,omitzero"`
	Input      *Ref    `json:"input,omitempty"`    // what its input is made of when it starts: a Binding
	Optional   bool    `json:"optional,omitempty"` // the task that it is a part of does without it
	Goal       bool    `json:"goal,omitempty"`     // its attempts follow one another until one completes
	// CompleteAt makes it a task of parts, which ends when they have: well, if this share
	// of them did; 0: it has work of its own.
	CompleteAt float64 `json:"completeAt,omitempty"`
}

// Constraints are what the attempts of a task keep within, besides what its session may.
type Constraints struct {
	Tools  []string `json:"tools,omitempty"` // of the session's; none: all of them
	Limits Limits   `json:"limits,omitzero"` // of each attempt
}

// Binding is what the input of a task is made of, when the tasks before it have ended.
type Binding struct {
	Text    string            `json:"text"`              // the objective; the input follows it
	Values  map[string]string `json:"values"`            // expressions, by the fields of the input
	Team    json.RawMessage   `json:"team,omitempty"`    // the input of the whole
	Members map[string]TaskID `json:"members,omitempty"` // that the expressions may name
	Rules   Ref               `json:"rules"`             // whose schema the input must fit

	Output json.RawMessage `json:"output,omitempty"` // of a whole: the schema that the object must fit, which is its output
}

// Retry says when a task is tried again by itself.
type Retry struct {
	Max     int       `json:"max,omitempty"`     // attempts more than the first
	On      []Outcome `json:"on,omitempty"`      // of the attempt before; empty: RetriedOutcomes
	Backoff Duration  `json:"backoff,omitempty"` // before the first of them; each waits twice as long as the one before

	Fallback []Substitute `json:"fallback,omitempty"` // agents that try it after that, each once
}

// Substitute is an agent that tries a task after another one failed.
type Substitute struct {
	Agent string `json:"agent"`
	Rules Ref    `json:"rules"` // of its turn, a blob
}

// MaxFallback bounds the agents that try a task after another one.
const MaxFallback = 4

// MaxRetries bounds the attempts that follow the first by themselves.
const MaxRetries = 10

// RetriedOutcomes are the outcomes after which a task may be tried again by itself: a
// person wanted none of them.
var RetriedOutcomes = []Outcome{Failed, NoCompletion, TimedOut, Lost}

// After reports whether another attempt follows an outcome, and after how long; done are
// those that followed so far.
func (r Retry) After(o Outcome, done int) (time.Duration, bool) {
	if done >= r.Max || !r.follows(o) {
		return 0, false
	}
	return time.Duration(r.Backoff) << min(done, MaxRetries), true
}

// Next is the agent that tries it after an outcome when the attempts of the first one are
// used up; done are those that did so far. nil: none does.
func (r Retry) Next(o Outcome, done int) *Substitute {
	if done >= len(r.Fallback) || !r.follows(o) {
		return nil
	}
	return &r.Fallback[done]
}

func (r Retry) follows(o Outcome) bool {
	if len(r.On) == 0 {
		return slices.Contains(RetriedOutcomes, o)
	}
	return slices.Contains(r.On, o)
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

// Waiver is the word of a person that a task needn't pass a check.
type Waiver struct {
	Check  string `json:"check"` // its id
	Reason string `json:"reason"`
}

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
		Assignee  *string  `json:"assignee,omitempty"` // empty: the session's main agent

		Constraints *Constraints `json:"constraints,omitempty"` // in place of all that there were
		Retry       *Retry       `json:"retry,omitempty"`       // in place of what there was

		Acceptance *[]Check `json:"acceptance,omitempty"` // instead of all that there were
	}

	// NoteProgress says how far a task is.
	NoteProgress struct {
		cmd
		Phase   string `json:"phase,omitempty"` // planning, working, verifying, delivering, waiting
		Summary string `json:"summary,omitempty"`
		Done    int    `json:"done,omitempty"`
		Total   int    `json:"total,omitempty"`

		Delivery string `json:"delivery,omitempty"` // of a sub-agent's result, which its parent tells: pending, delivered, parent_missing
	}

	// CompleteTask ends a task well of which no attempt runs. What it must pass is
	// checked first, in a turn that asks no model; sessions bring it to the thread.
	CompleteTask struct {
		cmd
		Summary Content  `json:"summary"`
		Output  *Content `json:"output,omitempty"`
		Waive   []Waiver `json:"waive,omitempty"`
		Gates   []Check  `json:"gates,omitempty"` // that the file of its agent demands besides

		Task   TaskID   `json:"taskId,omitempty"` // with a turn
		Thread ThreadID `json:"thread,omitempty"`
		Turn   TurnID   `json:"turn,omitempty"` // that checks; empty: nothing is left to check
		Text   Content  `json:"text,omitzero"`  // of the turn
		Rules  Ref      `json:"rules,omitzero"`
		By     string   `json:"by,omitempty"` // whose word it is; sessions say it
	}

	// PauseTask keeps a task, its parts and the agents that work on them from beginning
	// anything more, or ends that. Sessions bring it to the tasks.
	PauseTask struct {
		cmd
		Op     string `json:"op"`            // paused, resumed
		Now    bool   `json:"now,omitempty"` // what is in flight is cancelled
		Reason string `json:"reason,omitempty"`

		Task   TaskID   `json:"taskId,omitempty"`
		Thread ThreadID `json:"thread,omitempty"` // on which an attempt runs
		By     string   `json:"by,omitempty"`     // sessions say it
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
		Task   TaskID     `json:"taskId"`
		Thread ThreadID   `json:"thread"`
		Turn   TurnID     `json:"turn"`
		Rules  Ref        `json:"rules"`            // of the turn, a blob
		Agent  *Assigned  `json:"agent,omitempty"`  // that does it, a child of the thread; nil: the thread's own does
		Memory MemoryNeed `json:"memory,omitzero"`  // of the agent
		Quotas []Quota    `json:"quotas,omitempty"` // as in SubmitWork

		Refused *Error   `json:"refused,omitempty"` // why it can't be started: the session records that
		Text    *Content `json:"text,omitempty"`    // in place of its objective; nil: that stays
	}

	// Assigned is the sub-agent that does a planned task. It is opened when the task starts.
	Assigned struct {
		Subagent  SubagentID `json:"subagentId"`
		Name      string     `json:"name,omitempty"` // what it is called by
		Agent     string     `json:"agent"`
		Text      Content    `json:"text"`                // the objective, shortened
		Workspace string     `json:"workspace,omitempty"` // in a worktree; empty: its parent's
		Worktree  *Worktree  `json:"worktree,omitempty"`  // of its own
		Taint     []string   `json:"taint,omitempty"`     // of its parent's conversation
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

		Priority *int     `json:"priority,omitempty"` // that it has from now on
		Taint    []string `json:"taint,omitempty"`    // of the conversation in which it ended
	}

	// BlockTask tells a task that it can't start: another one that it waits for didn't
	// end well.
	BlockTask struct {
		cmd
		Reason string `json:"reason"`
	}
)

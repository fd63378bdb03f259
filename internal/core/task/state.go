package task

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// State is a task.
type State struct {
	Stream    belay.StreamID  `json:"stream"`
	Session   belay.SessionID `json:"session"`
	Task      belay.TaskID    `json:"task"`
	Thread    belay.ThreadID  `json:"thread"`
	Objective belay.Content   `json:"objective,omitzero"`
	Status    string          `json:"status"` // of the standard: accepted, running, completed, …
	Seq       int64           `json:"seq"`
	Attempts  []Attempt       `json:"attempts,omitempty"`
	Count     int             `json:"count"` // attempts ever
	Cancel    bool            `json:"cancel,omitempty"`
	Grace     bool            `json:"grace,omitempty"` // it is cancelled after one more step
	Rules     belay.Ref       `json:"rules,omitzero"`

	Subagent belay.SubagentID  `json:"subagent,omitempty"` // that does it
	Parent   belay.TaskID      `json:"parent,omitempty"`
	Planned  *event.TaskQueued `json:"planned,omitempty"` // an attempt that waits to be started
	Inputs   int               `json:"inputs,omitempty"`  // texts that were sent to the sub-agent

	Plan   bool `json:"plan,omitempty"`   // the session starts it, and is told how it ends
	Paused bool `json:"paused,omitempty"` // it begins nothing

	Terms
	Tries

	Report *event.FailureReport `json:"report,omitempty"` // of its end
}

// Terms are what a task is to be.
type Terms struct {
	Title       string            `json:"title,omitempty"`
	Owner       string            `json:"owner,omitempty"`
	Assignee    string            `json:"assignee,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	Constraints belay.Constraints `json:"constraints,omitzero"`
	Acceptance  []belay.Check     `json:"acceptance,omitempty"` // what must hold before it counts as done
	Goal        bool              `json:"goal,omitempty"`
	Retry       belay.Retry       `json:"retry,omitzero"`
}

// Tries are what attempts so far leave to the next one.
type Tries struct {
	Idle    int                 `json:"idle,omitempty"`    // attempts in a row that changed nothing
	Retried int                 `json:"retried,omitempty"` // attempts that followed by themselves
	Again   *event.TaskRetrying `json:"again,omitempty"`   // the next of them, which hasn't begun
	Fell    int                 `json:"fell,omitempty"`    // agents that tried it after the first one
	Note    string              `json:"note,omitempty"`    // to the agent: what it has to do without
}

// Attempt is one run.
type Attempt struct {
	Run     belay.RunID   `json:"run"`
	Turn    belay.TurnID  `json:"turn"`
	Outcome belay.Outcome `json:"outcome,omitempty"` // empty while it runs
	By      string        `json:"by,omitempty"`      // whose word it only verifies
	Before  string        `json:"before,omitempty"`  // how the task stood then
	Agent   string        `json:"agent,omitempty"`   // whose attempt it was that failed
	Code    string        `json:"code,omitempty"`
	Reason  string        `json:"reason,omitempty"`
}

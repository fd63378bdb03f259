package event

import (
	"time"

	"github.com/belay-run/belay"
)

// TurnSubmitted is an accepted input: from here on it ends or waits.
type TurnSubmitted struct {
	fact
	Kind  belay.TurnKind `json:"kind"`
	Text  belay.Content  `json:"text,omitzero"`
	By    string         `json:"by,omitempty"`
	Rules belay.Ref      `json:"rules"`

	Queue belay.QueueMode `json:"queue,omitempty"` // how it was queued, unless it waits
	Place int64           `json:"place,omitempty"` // place in the session's order of accepted turns

	Priority int                `json:"priority,omitempty"` // when threads wait for budget; higher is first
	Budget   *belay.BudgetGrant `json:"budget,omitempty"`   // that the session gave with it
	Limits   *belay.Limits      `json:"limits,omitempty"`   // besides those of its rules
	Rest     bool               `json:"rest,omitempty"`     // of those, what a sub-agent hasn't spent of money and tokens

	Note string `json:"note,omitempty"` // to the model, with the first request

	Checks []belay.Check `json:"checks,omitempty"` // that must pass before it completes
	Rounds int           `json:"rounds,omitempty"` // of checks that may fail; 0 is the default
	Again  bool          `json:"again,omitempty"`  // it isn't the first attempt of its task
}

// TurnStarted names the rules the turn is decided under and its limits.
type TurnStarted struct {
	fact
	Kind       belay.TurnKind   `json:"kind"`
	Rules      belay.Ref        `json:"rules"`
	Completion belay.Completion `json:"completion"`
	Limits     belay.Limits     `json:"limits,omitzero"`
	Agent      *AgentUsed       `json:"agent,omitempty"` // whose turn it is, if a file or its kind describes it
}

// AgentUsed is the agent of a turn, as it was when the turn began.
type AgentUsed struct {
	Name    string       `json:"name"`
	Version string       `json:"version,omitempty"`
	Digest  belay.Digest `json:"digest,omitempty"` // of its file

	Template string `json:"template,omitempty"` // of its domain, by which its tasks are told: ORIGIN:NAME@VERSION
}

// Title is the agent with its version.
func (a AgentUsed) Title() string {
	if a.Version == "" {
		return a.Name
	}
	return a.Name + "@" + a.Version
}

// TurnCompleted ends a turn well.
type TurnCompleted struct {
	fact
	Summary   belay.Content  `json:"summary,omitzero"`
	Artifacts []string       `json:"artifacts,omitempty"`
	NextSteps string         `json:"nextSteps,omitempty"`
	Output    *belay.Content `json:"output,omitempty"`
	Stats     TurnStats      `json:"stats,omitzero"`
}

// TurnFailed ends a turn in any other way; the field outcome says how.
type TurnFailed struct {
	fact
	Outcome    belay.Outcome `json:"outcome"`
	Reason     string        `json:"reason"`
	Code       string        `json:"code,omitempty"`       // stable name of the cause
	PartialRef *belay.Ref    `json:"partialRef,omitempty"` // text the model had produced
	Partial    string        `json:"partial,omitempty"`    // the same where it is short
	Stats      TurnStats     `json:"stats,omitzero"`
}

// TurnStats is what a turn used. Of an agent's turn it says also whose it was and how it
// went, so that the runs of agents are counted from their ends alone.
type TurnStats struct {
	Steps    int         `json:"steps,omitempty"`
	Calls    int         `json:"calls,omitempty"`
	Denied   int         `json:"denied,omitempty"`   // of the calls
	ActiveMS int64       `json:"activeMs,omitempty"` // milliseconds of driven time
	Usage    belay.Usage `json:"usage,omitzero"`
	Cost     CostSum     `json:"cost,omitzero"`
	Below    AgentsUse   `json:"below,omitzero"` // of usage and cost: by agents that it paid for

	Agent    string        `json:"agent,omitempty"` // whose turn it was; the fields below are of such turns
	Version  string        `json:"version,omitempty"`
	Outcome  belay.Outcome `json:"outcome,omitempty"`
	Retries  int           `json:"retries,omitempty"`  // 1: it wasn't the first attempt of its task
	GateReds int           `json:"gateReds,omitempty"` // checks that didn't pass
}

// AgentsUse is what the agents took that a turn started, with those below them. Their own
// turns say the same of themselves.
type AgentsUse struct {
	Usage    belay.Usage `json:"usage,omitzero"`
	MicroUSD int64       `json:"microUsd,omitempty"` // millionths of a US dollar
}

// Own is what the turn itself used: sums of turns are sums of that.
func (s TurnStats) Own() TurnStats {
	u, v := &s.Usage, s.Below.Usage
	for _, n := range []struct {
		of    *int64
		below int64
	}{{&u.Input, v.Input}, {&u.Output, v.Output}, {&u.Cached, v.Cached}, {&u.CacheWrite, v.CacheWrite}, {&u.Reasoning, v.Reasoning}} {
		*n.of = max(0, *n.of-n.below)
	}
	u.Reported = u.Reported && (!v.Reported || u.Total() > 0)
	s.Cost.MicroUSD = max(0, s.Cost.MicroUSD-s.Below.MicroUSD)
	s.Below = AgentsUse{}
	return s
}

// RunStatus reports that a turn waits, resumes or was taken over by another
// process.
type RunStatus struct {
	fact
	Status     string    `json:"status"`               // waiting_permission, waiting_input, running, …
	Phase      string    `json:"phase,omitempty"`      // takeover; of cancelling: rollback, grace
	WaitingFor string    `json:"waitingFor,omitempty"` // an action id, a timer
	Until      time.Time `json:"until,omitzero"`
	Epoch      int64     `json:"epoch,omitempty"`
	PriorEpoch int64     `json:"priorEpoch,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	By         string    `json:"by,omitempty"` // the principal who asked for it
}

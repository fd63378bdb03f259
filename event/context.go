package event

import (
	"time"

	"github.com/belay-run/belay"
)

// ContextResolved lists what a model is given besides the conversation, and
// what was left out.
type ContextResolved struct {
	fact
	Items   []ContextItem     `json:"items,omitempty"`
	Omitted []ContextOmission `json:"omitted,omitempty"`
	Tokens  int64             `json:"tokens,omitempty"` // estimate of all items
	Taint   []string          `json:"taint,omitempty"`  // untrusted origins now in the conversation, as kind:origin; secret: a secret was read
}

// ContextItem is one piece of context.
type ContextItem struct {
	Kind   string     `json:"kind"` // memory, file, rules, knowledge, policy, instruction
	Name   string     `json:"name"`
	Ref    *belay.Ref `json:"ref,omitempty"`
	Scope  string     `json:"scope,omitempty"`
	Origin string     `json:"origin,omitempty"`
	Tokens int64      `json:"tokens,omitempty"`
}

// ContextOmission is a wanted piece of context that is missing, and why.
type ContextOmission struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Reason string `json:"reason"` // budget, missing, denied, stale
}

// ContextCompactionStarted says that a conversation is about to be shortened.
type ContextCompactionStarted struct {
	fact
	Trigger string         `json:"trigger"` // threshold, overflow, manual
	From    int64          `json:"from"`    // first sequence of the range
	To      int64          `json:"to"`      // last sequence of the range
	Turns   []belay.TurnID `json:"turns,omitempty"`
	Tokens  int64          `json:"tokens,omitempty"`
}

// ContextCompactionCompleted puts a summary in the place of a range. What is
// unresolved is carried over by name.
type ContextCompactionCompleted struct {
	fact
	Trigger      string           `json:"trigger"`
	From         int64            `json:"from"`
	To           int64            `json:"to"`
	Summary      belay.Content    `json:"summary"`
	TokensBefore int64            `json:"tokensBefore,omitempty"`
	TokensAfter  int64            `json:"tokensAfter,omitempty"`
	Actions      []belay.ActionID `json:"actions,omitempty"`   // open questions that stay open
	Incidents    []string         `json:"incidents,omitempty"` // open incidents that stay open
	Artifacts    []string         `json:"artifacts,omitempty"`
	Evidence     []string         `json:"evidence,omitempty"`
}

// ContextCompactionFailed leaves the conversation as it was.
type ContextCompactionFailed struct {
	fact
	Trigger string    `json:"trigger"`
	Problem Problem   `json:"problem"`
	RetryAt time.Time `json:"retryAt,omitzero"`
}

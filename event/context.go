package event

import (
	"strconv"
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

	Text        belay.Content `json:"text,omitzero"`         // what stands in the conversation of the items; the others are in the instructions
	Environment []string      `json:"environment,omitempty"` // what Text says of where the turn works, as name: value; later turns have only what changed
	Look        int           `json:"look,omitempty"`        // of the turn, from 1: what was looked up for it

	Instructions *belay.Content `json:"instructions,omitempty"` // what the instructions hold of the items, until the conversation begins anew
}

// ContextItem is one piece of context.
type ContextItem struct {
	Kind   string     `json:"kind"` // memory, file, rules, knowledge, policy, instruction, pin, recall, environment
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
	Reason string `json:"reason"` // budget, missing, denied, depth, repeated, stale, relevance
}

// ContextCompactionStarted announces an attempt to shorten a conversation for the
// model. The request to a model that it may make is named CompactionKey.
type ContextCompactionStarted struct {
	fact
	Trigger  string         `json:"trigger"`            // threshold, overflow, manual
	Strategy string         `json:"strategy,omitempty"` // hybrid, prune, summarise, truncate
	From     int64          `json:"from"`               // the boundary that the conversation stands on; 1: none
	To       int64          `json:"to"`                 // last sequence of the range
	Turns    []belay.TurnID `json:"turns,omitempty"`    // the running turn
	Tokens   int64          `json:"tokens,omitempty"`   // of the conversation; 0: not known
	Target   int64          `json:"target,omitempty"`   // tokens that a conversation may have which only had old results left out
	Keep     int64          `json:"keep,omitempty"`     // of the newest tokens, that stay word for word
	Pins     int64          `json:"pins,omitempty"`     // tokens that pins may have
	Chunk    int64          `json:"chunk,omitempty"`    // tokens that the summarising model is given at once; 0: the conversation as it is
	Provider string         `json:"provider,omitempty"` // of the model that summarises
	Model    string         `json:"model,omitempty"`
	Output   int64          `json:"output,omitempty"` // tokens of a summary, at most
	Rules    belay.Ref      `json:"rules,omitzero"`
	Focus    string         `json:"focus,omitempty"` // what a person wants to be kept
	By       string         `json:"by,omitempty"`
}

// What begins a compaction.
const (
	TriggerThreshold = "threshold" // so much of the model's context is full
	TriggerOverflow  = "overflow"  // a request was too long
	TriggerManual    = "manual"    // a person asked
)

const compactionKey = "compact/"

// CompactionKey names the request of a compaction that a fact announced.
func CompactionKey(started int64) string { return compactionKey + strconv.FormatInt(started, 10) }

// ContextCompactionCompleted is a boundary: from here on the model is shown the
// window in place of everything up to To, and then what follows To. The facts stay
// as they are.
type ContextCompactionCompleted struct {
	fact
	Trigger      string            `json:"trigger"`
	Strategy     string            `json:"strategy,omitempty"` // what was done: prune, summarise, truncate
	Started      int64             `json:"started,omitempty"`  // the fact that announced it
	From         int64             `json:"from"`
	To           int64             `json:"to"`
	Window       []belay.Ref       `json:"window,omitempty"`  // content of JSON lines, each a message as in belay.Said
	Reads        int64             `json:"reads,omitempty"`   // the conversation's facts are read from here on: texts of turns that wait
	Running      belay.TurnID      `json:"running,omitempty"` // the turn that hadn't ended at To
	Summary      belay.Content     `json:"summary,omitzero"`
	Pinned       *belay.Ref        `json:"pinned,omitempty"`  // what the next boundary carries over: a JSON list
	Hidden       *belay.Ref        `json:"hidden,omitempty"`  // what isn't shown any more, the newest of it, as text
	Items        []ContextItem     `json:"items,omitempty"`   // pins that stand in the window, as many as fit
	Omitted      []ContextOmission `json:"omitted,omitempty"` // pins that were cut
	Pruned       int               `json:"pruned,omitempty"`  // results that were left out
	Dropped      int               `json:"dropped,omitempty"` // messages that were left out
	TokensBefore int64             `json:"tokensBefore,omitempty"`
	TokensAfter  int64             `json:"tokensAfter,omitempty"`
	Images       []belay.Ref       `json:"images,omitempty"` // pictures and documents in the window
	Usage        belay.Usage       `json:"usage,omitzero"`   // of the model that summarised
	Charge       Charge            `json:"charge,omitempty"`
	Problem      *Problem          `json:"problem,omitempty"` // why there is no summary, though one was asked for
	Came         int64             `json:"came,omitempty"`    // tokens of the text that came of it
	Actions      []belay.ActionID  `json:"actions,omitempty"` // open questions that stay open
}

// ContextCompactionFailed leaves the conversation as it was.
type ContextCompactionFailed struct {
	fact
	Trigger  string      `json:"trigger"`
	Strategy string      `json:"strategy,omitempty"`
	Started  int64       `json:"started,omitempty"` // the fact that announced it
	Problem  Problem     `json:"problem"`
	RetryAt  time.Time   `json:"retryAt,omitzero"`
	Usage    belay.Usage `json:"usage,omitzero"`
	Tokens   int64       `json:"tokens,omitempty"` // of the text that came
	Charge   Charge      `json:"charge,omitempty"`
}

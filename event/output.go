package event

import (
	"time"

	"github.com/belay-run/belay"
)

// OutputSpilled reports that an output was too large for the log, and where it
// is.
type OutputSpilled struct {
	fact
	Owner string     `json:"owner"` // tool, process, model, hook
	Bytes int64      `json:"bytes"`
	Ref   *belay.Ref `json:"ref,omitempty"`
}

// OutputTruncated reports how much of a large output the model was shown.
type OutputTruncated struct {
	fact
	Bytes int64      `json:"bytes"`
	Shown int64      `json:"shown"` // bytes the model was shown
	Ref   *belay.Ref `json:"ref,omitempty"`
}

// OutputRedacted says that something was taken out of an output before it was
// kept. It never says what.
type OutputRedacted struct {
	fact
	Count int        `json:"count"`           // places
	Rules []string   `json:"rules,omitempty"` // ids of the rules that matched
	Ref   *belay.Ref `json:"ref,omitempty"`   // what is left
}

// OutputExpired records that a stored output is given up. Nothing reads it any
// more and its bytes are removed once nothing else needs them; the part that a
// model was shown stays.
type OutputExpired struct {
	fact
	Digest belay.Digest `json:"digest"`
	Bytes  int64        `json:"bytes"`
	Owner  string       `json:"owner,omitempty"` // tool, process
	Reason string       `json:"reason"`          // retention, asked
	Why    string       `json:"why,omitempty"`   // the retention limit, or a person's reason
	By     string       `json:"by,omitempty"`    // principal; empty: retention
	Since  time.Time    `json:"since,omitzero"`  // when it was last recorded
}

// Reasons for which an output expires.
const (
	ExpiredByRetention = "retention"
	ExpiredAsked       = "asked"
)

// outputTypes are the types whose facts can name outputs.
var outputTypes = map[string]bool{
	"output.spilled": true, "output.truncated": true, "output.redacted": true, "output.expired": true,
	"tool.result": true, "tool.failed": true,
	"process.output": true, "process.completed": true, "process.terminated": true,
}

// NamesOutputs reports whether facts of a type can name outputs.
func NamesOutputs(name string) bool { return outputTypes[name] }

// WithoutOutputs lists the outputs that a fact names, and returns the payload
// without them. An output is content of which the facts hold what the model was
// shown: it may expire. What is left names what has to stay.
func WithoutOutputs(p Payload) (rest Payload, outputs []belay.Ref) {
	take := func(ref **belay.Ref) {
		if *ref != nil {
			outputs = append(outputs, **ref)
			*ref = nil
		}
	}
	switch p := p.(type) {
	case OutputSpilled:
		take(&p.Ref)
		return p, outputs
	case OutputTruncated:
		take(&p.Ref)
		return p, outputs
	case OutputRedacted:
		take(&p.Ref)
		return p, outputs
	case OutputExpired:
		p.Digest = "" // it names what is gone
		return p, nil
	case ToolResult:
		take(&p.Whole)
		p.Digest = "" // of a text, to be compared and never read
		return p, outputs
	case ToolFailed:
		take(&p.Whole)
		return p, outputs
	case ProcessOutput:
		take(&p.Ref)
		return p, outputs
	case ProcessCompleted:
		take(&p.Output)
		return p, outputs
	case ProcessTerminated:
		take(&p.Output)
		return p, outputs
	}
	return p, nil
}

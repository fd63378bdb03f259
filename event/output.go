package event

import (
	"time"

	"github.com/belay-run/belay"
)

// OutputSpilled says that an output was too large for the log and where it went.
type OutputSpilled struct {
	fact
	Owner string     `json:"owner"` // tool, process, model, hook
	Bytes int64      `json:"bytes"`
	Ref   *belay.Ref `json:"ref,omitempty"`
}

// OutputTruncated says how much of a large output the model was shown.
type OutputTruncated struct {
	fact
	Bytes int64      `json:"bytes"`
	Shown int64      `json:"shown"` // bytes of it that the model reads
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

// OutputExpired says that kept content is gone on purpose.
type OutputExpired struct {
	fact
	Digest belay.Digest `json:"digest"`
	Reason string       `json:"reason"` // retention, deleted
	Since  time.Time    `json:"since,omitzero"`
}

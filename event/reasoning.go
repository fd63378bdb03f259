package event

import "github.com/belay-run/belay"

// ReasoningDelta is a checkpoint of reasoning that is still flowing.
type ReasoningDelta struct {
	fact
	Attempt int    `json:"attempt"`
	Offset  int64  `json:"offset,omitempty"` // bytes of the reasoning before this
	Text    string `json:"text"`
}

// ReasoningSummary is the provider's summary of its reasoning, appended
// together with the answer it led to.
type ReasoningSummary struct {
	fact
	Attempt int           `json:"attempt"`
	Text    belay.Content `json:"text,omitzero"`
	Tokens  int64         `json:"tokens,omitempty"` // as the provider counts them; 0 if unknown
}

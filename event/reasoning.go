package event

import "github.com/belay-run/belay"

// ReasoningDelta is a checkpoint of reasoning that is still flowing.
type ReasoningDelta struct {
	fact
	Attempt int    `json:"attempt"`
	Offset  int64  `json:"offset,omitempty"` // bytes of the reasoning before this
	Text    string `json:"text"`
}

// ReasoningSummary is what a provider tells of its reasoning. It is appended
// together with the answer that the reasoning led to.
type ReasoningSummary struct {
	fact
	Attempt int           `json:"attempt"`
	Text    belay.Content `json:"text,omitzero"`
	Tokens  int64         `json:"tokens,omitempty"` // as the provider counts them; 0: it didn't say
}

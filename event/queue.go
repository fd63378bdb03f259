package event

import "github.com/belay-run/belay"

// QueueChanged says how the row of waiting turns changed.
type QueueChanged struct {
	fact
	Op       string       `json:"op"`             // added, promoted, removed, taken
	Turn     belay.TurnID `json:"turn,omitempty"` // the turn that moved
	Position int          `json:"position,omitempty"`
	Length   int          `json:"length,omitempty"` // turns waiting afterwards
	By       string       `json:"by,omitempty"`
}

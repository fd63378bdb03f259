package event

import "github.com/belay-run/belay"

// SnapshotUpdated says that a read model was brought up to a position.
type SnapshotUpdated struct {
	fact
	View     string       `json:"view"`
	Position int64        `json:"position"`
	Digest   belay.Digest `json:"digest,omitempty"`
	Ref      *belay.Ref   `json:"ref,omitempty"`
}

// SnapshotRepaired records that a read model was rebuilt after a gap.
type SnapshotRepaired struct {
	fact
	View   string `json:"view"`
	From   int64  `json:"from"` // positions of the gap
	To     int64  `json:"to"`
	Reason string `json:"reason"` // gap, damaged, outdated
}

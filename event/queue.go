package event

import "github.com/belay-run/belay"

// QueueChanged says how the row of waiting turns changed, but for those that
// began, which turn.started says. A turn that was removed or dropped has a
// turn.failed beside this.
type QueueChanged struct {
	fact
	Op       string          `json:"op"`                 // added, promoted, reordered, removed, dropped, joined, told, policy
	Turn     belay.TurnID    `json:"turn,omitempty"`     // the turn that it is about
	Mode     belay.QueueMode `json:"mode,omitempty"`     // of a turn that was added
	Position int             `json:"position,omitempty"` // of the turn afterwards, from 1
	Length   int             `json:"length,omitempty"`   // turns waiting afterwards
	Into     belay.TurnID    `json:"into,omitempty"`     // joined: the turn that its text is part of now
	Order    []belay.TurnID  `json:"order,omitempty"`    // reordered: all that wait
	Note     string          `json:"note,omitempty"`     // dropped: what is left of it; told: what the model is told of those
	Policy   *belay.Queueing `json:"policy,omitempty"`   // policy: how the thread queues from now on
	By       string          `json:"by,omitempty"`
}

// Words of QueueChanged.Op.
const (
	QueueAdded     = "added"
	QueuePromoted  = "promoted"
	QueueReordered = "reordered"
	QueueRemoved   = "removed"
	QueueDropped   = "dropped"
	QueueJoined    = "joined"
	QueueTold      = "told"
	QueuePolicy    = "policy"
)

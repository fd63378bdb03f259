package event

import "github.com/belay-run/belay"

// QueueChanged records a change to a thread's waiting turns. A turn that
// begins has turn.started instead; one that is removed or dropped has a
// turn.failed too.
type QueueChanged struct {
	fact
	Op       string          `json:"op"`                 // added, promoted, reordered, removed, dropped, joined, told, policy
	Turn     belay.TurnID    `json:"turn,omitempty"`     // the turn that it is about
	Mode     belay.QueueMode `json:"mode,omitempty"`     // of a turn that was added
	Position int             `json:"position,omitempty"` // of the turn afterwards, from 1
	Length   int             `json:"length,omitempty"`   // turns waiting afterwards
	Into     belay.TurnID    `json:"into,omitempty"`     // joined: the turn that took its text
	Order    []belay.TurnID  `json:"order,omitempty"`    // reordered: all that wait
	Note     string          `json:"note,omitempty"`     // dropped: its summary; told: the summary given to the model
	Policy   *belay.Queueing `json:"policy,omitempty"`   // policy: the new one
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

package belay

import (
	"slices"
	"strings"
	"time"
)

// QueueMode is how a turn is treated that is submitted while another one of its
// thread runs. In an idle thread it begins at once, whatever the mode.
type QueueMode string

// Queue modes.
const (
	QueueEnqueue   QueueMode = "enqueue"   // it waits behind those that wait
	QueueSteer     QueueMode = "steer"     // its text is given to the model in the running turn, at the next boundary
	QueueCollect   QueueMode = "collect"   // it waits until it is quiet, and what came together is one turn
	QueueInterrupt QueueMode = "interrupt" // the running turn is cancelled, and it is next
	QueueRollback  QueueMode = "rollback"  // the same, and what the cancelled turn did is taken back before
	QueueReject    QueueMode = "reject"    // it is refused as busy
)

// QueueModes are all of them, the default first.
var QueueModes = []QueueMode{QueueEnqueue, QueueSteer, QueueCollect, QueueInterrupt, QueueRollback, QueueReject}

// QueueDrop chooses the turn to drop when too many wait.
type QueueDrop string

// Drop policies.
const (
	DropNew       QueueDrop = "new"       // the one that comes is refused as busy
	DropOld       QueueDrop = "old"       // the one that waits longest ends, cancelled
	DropSummarise QueueDrop = "summarise" // the same, and its first line is shown to the model before the next turn
)

// QueueDrops are all of them, the default first.
var QueueDrops = []QueueDrop{DropNew, DropOld, DropSummarise}

// Queueing is how a thread queues turns while one runs. Zero values are the
// defaults.
type Queueing struct {
	Mode  QueueMode `json:"mode,omitempty"`  // enqueue
	Cap   int       `json:"cap,omitempty"`   // turns that may wait, 1 to 100 (default 100)
	Drop  QueueDrop `json:"drop,omitempty"`  // new
	Quiet Duration  `json:"quiet,omitempty"` // of collect: quiet time before it starts, at most 1m (default 500ms)
}

// Bounds of Queueing.
const (
	MaxQueued    = 100
	DefaultQuiet = Duration(500 * time.Millisecond)
	MaxQuiet     = Duration(time.Minute)
)

// Check refuses what is no mode, no policy or out of bounds. The error's place
// is the field's name.
func (q Queueing) Check() error {
	oneOf := func(field, v string, known ...string) error {
		if v == "" || slices.Contains(known, v) {
			return nil
		}
		return Errorf(CodeBadCommand, "%q is none of %s", v, strings.Join(known, ", ")).At(field)
	}
	if err := oneOf("mode", string(q.Mode), names(QueueModes)...); err != nil {
		return err
	}
	if err := oneOf("drop", string(q.Drop), names(QueueDrops)...); err != nil {
		return err
	}
	switch {
	case q.Cap < 0 || q.Cap > MaxQueued:
		return Errorf(CodeBadCommand, "%d turns can't wait; from 1 to %d can", q.Cap, MaxQueued).At("cap")
	case q.Quiet < 0 || q.Quiet > MaxQuiet:
		return Errorf(CodeBadCommand, "%s of quiet are out of bounds; at most %s are taken", q.Quiet, MaxQuiet).At("quiet")
	}
	return nil
}

func names[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

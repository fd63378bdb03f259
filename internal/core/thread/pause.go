package thread

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// pauses notes that the thread begins nothing more, or does again.
func (h *handler) pauses(c belay.PauseThread) {
	p := event.Pause{Op: c.Op, Now: c.Now}
	if h.Pause == nil && c.Op == event.Resumed || h.Pause != nil && *h.Pause == p {
		return
	}
	h.record(h.threadFact(event.ThreadUpdated{Pause: &p, Reason: c.Reason}))
}

// pauseTurn keeps a turn of a paused thread as it is: no request leaves and no call
// begins. What is in flight finishes, unless it is to be cancelled. Nothing of the
// turn's time passes, and what comes meanwhile waits.
func pauseTurn(d *decision) bool {
	if d.Pause == nil {
		return false
	}
	st := d.Turn.Step
	if st == nil || d.Pause.Now {
		return true
	}
	if st.Phase == stepRequested {
		d.want(d.call())
	}
	for _, c := range st.Calls {
		if c.Phase == CallRunning {
			d.want(d.effect(c))
		}
	}
	return true
}

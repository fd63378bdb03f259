package thread

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// pauses notes that the thread begins nothing more, or does again.
func (h *handler) pauses(c belay.PauseThread) {
	p := event.Pause{Op: c.Op, Now: c.Now, Agent: c.Agent}
	have := h.Pause
	if c.Agent != "" {
		if h.Turn == nil { // its turn has ended, and others aren't meant
			return
		}
		if have = h.Turn.Held; have != nil && have.Agent != c.Agent {
			return
		}
	}
	if have != nil {
		p.Programs = have.Programs
	}
	if have == nil && c.Op == event.Resumed || have != nil && *have == p {
		return
	}
	if p.Programs = ""; c.Op == event.Paused {
		p.Programs = event.CutText(h.Background(), maxSaid)
	}
	h.record(h.threadFact(event.ThreadUpdated{Pause: &p, Reason: c.Reason}))
}

// applyPause folds a pause, or its end.
func (s *State) applyPause(p event.Pause, why string) {
	switch {
	case p.Agent == "" && p.Op == event.Resumed:
		s.Pause = nil
	case p.Agent == "":
		s.Pause = &p
	case s.Turn == nil:
	case p.Op == event.Resumed:
		s.Turn.Held, s.Turn.Why = nil, ""
	case p.Op == event.Admitted:
		s.Turn.admission = admission{Admitted: true}
	default:
		s.Turn.Held, s.Turn.Why = &p, why
	}
}

// Paused is why the thread begins nothing, if it is paused, or the agent of its turn is;
// nil: it isn't.
func (s *State) Paused() *event.Pause {
	if s.Pause == nil && s.Turn != nil && s.Turn.Held != nil && s.Turn.Held.Op == event.Paused {
		return s.Turn.Held
	}
	return s.Pause
}

// pauseTurn keeps a turn of a paused thread, or of a paused agent, as it is: no request
// leaves and no call begins. What is in flight finishes, unless it is to be cancelled.
// Nothing of the turn's time passes, and what comes meanwhile waits.
func pauseTurn(d *decision) bool {
	p := d.Paused()
	switch {
	case p == nil:
		return false
	case p.Until.IsZero():
	case !d.now.Before(p.Until):
		return false // it is looked again
	default:
		d.wakeAt(p.Until)
	}
	st := d.Turn.Step
	if st == nil || p.Now {
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

// admit asks, before the first request of a turn, whether its agent may work: people pause
// and stop agents that are kept as files, and one that failed too often waits. The turn has
// begun by then, so whoever pauses an agent finds each turn that was admitted before.
func admit(d *decision) bool {
	t := d.Turn
	if d.rules.AgentFile == nil || t.Admitted || t.Step != nil {
		return false
	}
	eff := core.Admit{IDs: d.turnIDs(), Agent: d.rules.Agent}
	if h := t.Held; h != nil {
		if h.Op == event.Refused {
			d.fail(belay.Cancelled, "AGENT_STOPPED", t.Why)
			return true
		}
		eff.Until = h.Until
	}
	d.want(eff)
	return true
}

package session

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Held is a call's place in the order in which threads change the workspace.
type Held struct {
	belay.Hold
	Thread  belay.ThreadID `json:"thread"`
	Granted bool           `json:"granted,omitempty"`
}

// share are the sends that make threads ask before they change things, from the
// moment on that a session has two.
func (s *State) share(thread belay.ThreadID) (sends []core.Send) {
	if len(s.Threads) == 0 {
		return nil
	}
	if len(s.Threads) == 1 {
		sends = append(sends, core.Send{To: s.Threads[0].Stream(), Command: belay.ShareWorkspace{}})
	}
	return append(sends, core.Send{To: thread.Stream(), Command: belay.ShareWorkspace{}})
}

// hold takes what threads ask for, or have already, into the order.
func (s *State) hold(c belay.HoldWorkspace) (facts []core.Fact) {
	if c.Joined && slices.Contains(s.Awaited, c.Thread) {
		facts = append(facts, s.holdFact(event.HoldShared, c.Thread, belay.Hold{}))
	}
	op := event.HoldAsked
	if c.Joined {
		op = event.HoldGranted
	}
	for _, h := range c.Calls {
		if s.held(c.Thread, h.Call) < 0 {
			facts = append(facts, s.holdFact(op, c.Thread, h))
		}
	}
	return facts
}

func (s *State) release(c belay.ReleaseWorkspace) []core.Fact {
	i := s.held(c.Thread, c.Call)
	if i < 0 {
		return nil
	}
	return []core.Fact{s.holdFact(event.HoldReleased, c.Thread, s.Holds[i].Hold)}
}

func (s *State) held(thread belay.ThreadID, call belay.CallID) int {
	return slices.IndexFunc(s.Holds, func(h Held) bool { return h.Thread == thread && h.Call == call })
}

func (s *State) holdFact(op string, thread belay.ThreadID, h belay.Hold) core.Fact {
	return core.Fact{IDs: s.ids(), Data: event.SessionUpdated{Hold: &event.HoldChange{Op: op, Thread: thread, Call: h.Call, Whole: h.Whole}}}
}

func (s *State) applyHold(p event.HoldChange) {
	i := s.held(p.Thread, p.Call)
	switch {
	case p.Op == event.HoldShared:
		s.Awaited = slices.DeleteFunc(s.Awaited, func(t belay.ThreadID) bool { return t == p.Thread })
	case p.Op == event.HoldReleased && i >= 0:
		s.Holds = slices.Delete(s.Holds, i, i+1)
	case p.Op == event.HoldGranted && i >= 0:
		s.Holds[i].Granted = true
	case p.Op != event.HoldReleased && i < 0:
		s.Holds = append(s.Holds, Held{belay.Hold{Call: p.Call, Whole: p.Whole}, p.Thread, p.Op == event.HoldGranted})
	}
}

// Next grants holds in the order in which they were asked for: changes of single
// files together, a change of the whole workspace alone. Later requests don't
// overtake one for the whole workspace.
func (d *Decider) Next(time.Time) (rd core.Ready) {
	s := &d.s
	if len(s.Awaited) > 0 { // it isn't known yet whether they still write
		return rd
	}
	some, whole := false, false // holds that are given
	for _, h := range s.Holds {
		some, whole = some || h.Granted, whole || h.Granted && h.Whole
	}
	for _, h := range s.Holds {
		switch {
		case h.Granted:
			continue
		case whole || h.Whole && some:
			return rd
		}
		some, whole = true, h.Whole
		rd.Decided = append(rd.Decided, s.holdFact(event.HoldGranted, h.Thread, h.Hold))
		rd.Sends = append(rd.Sends, core.Send{To: h.Thread.Stream(), Command: belay.GrantWorkspace{Call: h.Call, Others: s.others(h.Thread)}})
	}
	return rd
}

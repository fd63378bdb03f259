package session

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/grant"
)

// share are the sends that make threads ask before they change things, from the
// moment on that a session has two.
func (s *State) share(thread belay.ThreadID) (sends []core.Send) {
	all := s.All()
	if len(all) == 0 {
		return nil
	}
	if len(all) == 1 {
		sends = append(sends, core.Send{To: all[0].Stream(), Command: belay.ShareWorkspace{}})
	}
	return append(sends, core.Send{To: thread.Stream(), Command: belay.ShareWorkspace{}})
}

// hold takes what threads ask for, or have already, into the order.
func (s *State) hold(c belay.AskGrants) (facts []core.Fact) {
	if c.Joined && slices.Contains(s.Awaited, c.Thread) {
		facts = append(facts, s.holdFact(event.HoldShared, c.Thread, belay.Hold{}))
	}
	op := event.HoldAsked
	if c.Joined {
		op = event.HoldGranted
	}
	for _, h := range c.Calls {
		if s.Holds.Find(c.Thread, string(h.Call)) == nil {
			facts = append(facts, s.holdFact(op, c.Thread, h))
		}
	}
	return facts
}

func (s *State) release(c belay.ReturnGrant) []core.Fact {
	g := s.Holds.Find(c.Thread, string(c.Call))
	if g == nil {
		return nil
	}
	return []core.Fact{s.holdFact(event.HoldReleased, c.Thread, belay.Hold{Call: c.Call, Whole: g.Whole})}
}

func (s *State) holdFact(op string, thread belay.ThreadID, h belay.Hold) core.Fact {
	return core.Fact{IDs: s.ids(), Data: event.SessionUpdated{Hold: &event.HoldChange{Op: op, Thread: thread, Call: h.Call, Whole: h.Whole}}}
}

func (s *State) applyHold(p event.HoldChange) {
	g := grant.Grant[belay.ThreadID]{ID: string(p.Call), To: p.Thread, Whole: p.Whole}
	switch p.Op {
	case event.HoldShared:
		s.Awaited = slices.DeleteFunc(s.Awaited, func(t belay.ThreadID) bool { return t == p.Thread })
	case event.HoldAsked:
		s.Holds.Ask(g)
	case event.HoldGranted:
		s.Holds.Give(g)
	case event.HoldReleased:
		s.Holds.Return(p.Thread, g.ID)
	}
}

// grantHolds grants holds in the order in which they were asked for: changes of
// single files together, a change of the whole workspace alone. Later requests
// don't overtake one for the whole workspace. Worktrees are workspaces of their own.
func (s *State) grantHolds(rd *core.Ready) {
	if len(s.Awaited) > 0 { // it isn't known yet whether they still write
		return
	}
	held := map[belay.SubagentID]struct{ some, whole, full bool }{} // holds that are given, by worktree
	for _, h := range s.Holds {
		tree := s.Family.tree(h.To)
		is := held[tree]
		is.some, is.whole = is.some || h.Given, is.whole || h.Given && h.Whole
		held[tree] = is
	}
	for _, h := range s.Holds {
		tree := s.Family.tree(h.To)
		is := held[tree]
		if h.Given || is.full {
			continue
		}
		is.full = is.whole || h.Whole && is.some
		if !is.full {
			is.some, is.whole = true, h.Whole
		}
		if held[tree] = is; is.full {
			continue
		}
		call := belay.CallID(h.ID)
		rd.Decided = append(rd.Decided, s.holdFact(event.HoldGranted, h.To, belay.Hold{Call: call, Whole: h.Whole}))
		rd.Sends = append(rd.Sends, core.Send{To: h.To.Stream(), Command: belay.GiveGrant{Call: call, Others: s.others(h.To)}})
	}
}

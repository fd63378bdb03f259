package session

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// report records what the programs of a thread used. A thread reports its total,
// so a repeated report counts once.
func (s *State) report(thread belay.ThreadID, used belay.ProgramUse) []core.Fact {
	if i := s.usedBy(thread); i >= 0 && s.Used[i].ProgramUse == used {
		return nil
	}
	return []core.Fact{{IDs: s.ids(), Data: event.SessionUpdated{Used: &event.ThreadUse{Thread: thread, ProgramUse: used}}}}
}

func (s *State) usedBy(thread belay.ThreadID) int {
	return slices.IndexFunc(s.Used, func(u event.ThreadUse) bool { return u.Thread == thread })
}

func (s *State) applyUsed(u event.ThreadUse) {
	if i := s.usedBy(u.Thread); i >= 0 {
		s.Used[i] = u
		return
	}
	s.Used = append(s.Used, u)
}

// others is what programs of other threads took; nil is nothing.
func (s *State) others(thread belay.ThreadID) *belay.ProgramUse {
	sum := s.Past
	for _, u := range s.Used {
		if u.Thread != thread {
			sum = sum.Plus(u.ProgramUse)
		}
	}
	if sum == (belay.ProgramUse{}) {
		return nil
	}
	return &sum
}

package session

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/grant"
)

// maxEndedChildren is how many children that ended a session knows; older ones are forgotten, so
// that a session of weeks has a state of a bounded size. The log has them.
const maxEndedChildren = 64

// maxRoots is how many turns of people a session counts agents of besides those whose
// agents are open.
const maxRoots = 16

// rootTurn is a turn of a person, with how many agents it has had, and theirs.
type rootTurn struct {
	Turn   belay.TurnID `json:"turn"`
	Agents int          `json:"agents"`
}

// rootOf is the turn of a person that a turn of a thread goes back to.
func (s *State) rootOf(t belay.ThreadID, turn belay.TurnID) belay.TurnID {
	if c := s.Family.ByThread(t); c != nil {
		return c.Root
	}
	return turn
}

// had is how many agents a turn of a person has had.
func (s *State) had(root belay.TurnID) int {
	if i := slices.IndexFunc(s.Roots, func(r rootTurn) bool { return r.Turn == root }); i >= 0 {
		return s.Roots[i].Agents
	}
	return 0
}

// counts folds that a child was opened.
func (s *State) counts(root belay.TurnID) {
	i := slices.IndexFunc(s.Roots, func(r rootTurn) bool { return r.Turn == root })
	if i < 0 {
		i, s.Roots = len(s.Roots), append(s.Roots, rootTurn{Turn: root})
	}
	s.Roots[i].Agents++
}

// forget drops children that ended, but for the newest and those that something still
// needs: a worktree, open children, budget, a hold, a task, a permission.
func (s *State) forget() {
	kept := 0
	for i := len(s.Family) - 1; i >= 0; i-- {
		c := &s.Family[i]
		if c.open() || c.Leaving != nil {
			continue
		}
		if kept++; kept <= maxEndedChildren || s.needs(c) {
			continue
		}
		if u := s.usedBy(c.Thread); u >= 0 {
			s.Past = s.Past.Plus(s.Used[u].ProgramUse)
			s.Used = slices.Delete(s.Used, u, u+1)
		}
		s.Family = slices.Delete(s.Family, i, i+1)
	}
	old := len(s.Roots) - maxRoots
	s.Roots = slices.DeleteFunc(s.Roots, func(r rootTurn) bool {
		old--
		return old >= 0 && s.Family.find(func(c *Child) bool { return c.Root == r.Turn && c.open() }) == nil
	})
}

func (s *State) needs(c *Child) bool {
	held := func(to belay.ThreadID) bool { return to == c.Thread }
	has := func(b grant.Book[belay.ThreadID]) bool {
		return slices.ContainsFunc(b, func(g grant.Grant[belay.ThreadID]) bool { return held(g.To) })
	}
	team := s.Family.teamOf(c)
	return c.Worktree != nil && !c.Worktree.Removed ||
		s.Family.find(func(k *Child) bool { return k.Parent == c.Thread }) != nil ||
		team != nil && team.open() ||
		has(s.Budget.Grants) || has(s.Holds) || slices.ContainsFunc(s.Awaited, held) ||
		slices.ContainsFunc(s.Shared, func(g SharedGrant) bool { return held(g.From) }) ||
		slices.ContainsFunc(s.Plan, func(p Planned) bool { return p.Task == c.Task || p.Thread == c.Thread })
}

package session

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/grant"
)

// setQuotas records that other quotas count for the session now.
func (s *State) setQuotas(user string, all []belay.Quota) []core.Fact {
	if s.Budget.Same(user, all) {
		return nil
	}
	return []core.Fact{{IDs: s.ids(), Data: event.LimitChanged{Op: event.LimitSet, Scope: grant.ScopeQuota, Quotas: all, User: user}}}
}

// askQuota wants a slice for what a thread asks for, and reports whether there may
// be one: the session's own limit has room, and the quotas didn't say no.
func (s *State) askQuota(rd *core.Ready, g grant.Grant[belay.ThreadID], left belay.Amounts, now time.Time) (may bool) {
	l := &s.Budget
	if len(l.Shared) == 0 || l.Own().Short(g.Least.Only(l.Limit)) != "" || g.Refused {
		return false
	}
	switch said := l.Said(g.ID); {
	case said.For != nil && said.Until.IsZero():
		return false
	case now.Before(said.Until):
		rd.Effects, rd.Wake = append(rd.Effects, core.Timer{Name: "quota/" + g.ID}), said.Until
	default:
		none := belay.Amounts{}
		left = left.Max(none) // and nothing is asked of what the session has more of than it needs
		rd.Effects = append(rd.Effects, core.AskQuota{IDs: s.ids(), ID: g.ID, Try: said.Tries + 1, User: l.User, Least: g.Least.Sub(left).Max(none), Most: g.Most.Sub(left).Max(none), Quotas: l.Shared})
	}
	return true
}

// returnQuota wants the slices returned when no thread has or asks for anything.
func (s *State) returnQuota(rd *core.Ready) {
	if l := &s.Budget; len(l.Slices) > 0 && len(l.Grants) == 0 {
		rd.Effects = append(rd.Effects, core.ReturnQuota{IDs: s.ids(), User: l.User, Return: l.Return(), Quotas: l.Shared})
	}
}

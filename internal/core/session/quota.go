package session

import (
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
	return []core.Fact{s.quotaFact(event.LimitChanged{Op: event.LimitSet, Quotas: all, User: user})}
}

func (s *State) quotaFact(p event.LimitChanged) core.Fact {
	p.Scope = grant.ScopeQuota
	return core.Fact{IDs: s.ids(), Data: p}
}

// askQuota asks the quotas for what a thread needs and the session hasn't left, one slice
// after the other, and reports whether there may be one: the quotas are what is short, and
// they didn't say no.
func (s *State) askQuota(rd *core.Ready, g grant.Grant[belay.ThreadID], left belay.Amounts) (may bool) {
	l, none := &s.Budget, belay.Amounts{}
	least, most := g.Least.Sub(left).Max(none), g.Most.Sub(left).Max(none)
	short := false
	for _, q := range l.Shared {
		short = short || *least.Of(q.Kind) > 0
	}
	if !short || l.Own().Short(g.Least.Only(l.Limit)) != "" || g.Refused {
		return false
	}
	switch said := l.Said(g.ID); {
	case l.Pending() != nil: // what they say of that comes first
	case said.For != nil && said.Until.IsZero():
		return false
	default:
		rd.Decided = append(rd.Decided, s.quotaFact(event.LimitChanged{Op: event.LimitAsked, GrantID: l.NextSlice(g.ID), Least: least, Amount: most}))
	}
	return true
}

// awaitQuota wants what the quotas say of a slice that they were asked for. What they
// lent must be known, also when nobody needs it any more. What is returned comes first: until
// the quotas know of that, it isn't there for others, nor for this session.
func (s *State) awaitQuota(rd *core.Ready) {
	l := &s.Budget
	if g := l.Pending(); g != nil && l.Returning == nil {
		rd.Effects = append(rd.Effects, core.AskQuota{IDs: s.ids(), ID: g.ID, Try: l.Tries(g.ID) + 1, Needed: l.Needs(g.ID), User: l.User, Least: g.Least, Most: g.Most, Drawn: l.Drawn, Quotas: l.Shared})
	}
}

// returnQuota returns the slices when no thread has or asks for anything. What quotas that only
// warn counted needed none: a slice is asked for it then, and returned as spent, so that the
// quotas count it once, whatever happens meanwhile. Slices are closed
// first, by a fact: the quotas may lend them to others before this session hears that they
// took them, so none of its threads may get anything of them from then on.
func (s *State) returnQuota(rd *core.Ready) {
	l := &s.Budget
	if r := l.Returning; r != nil {
		rd.Effects = append(rd.Effects, core.ReturnQuota{IDs: s.ids(), User: r.User, Return: r.BudgetReturn, Quotas: r.Quotas})
	} else if r := l.Return(); len(l.Grants) > 0 {
		return
	} else if len(r.Closed) > 0 {
		for _, low := range l.Unheard() {
			rd.Decided = append(rd.Decided, core.Fact{IDs: s.ids(), Data: event.QuotaLow{Quota: grant.QuotaOf(low)}})
		}
		rd.Decided = append(rd.Decided, s.quotaFact(event.LimitChanged{Op: event.LimitReturning, Closed: r.Closed, Spent: r.Spent, Amount: r.Back}))
	} else if over := l.Overdrawn(); over != (belay.Amounts{}) && l.Pending() == nil {
		id := belay.DeriveID("grant", s.Stream, s.Seq+1+int64(len(rd.Decided)), 0)
		rd.Decided = append(rd.Decided, s.quotaFact(event.LimitChanged{Op: event.LimitAsked, GrantID: id, Amount: over}))
	}
}

package grant

import (
	"cmp"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/budget"
)

// Ledger is a session's budget: its limit, what was spent of it, and what its
// threads have of the rest or ask for. Always: limit = spent + granted + left.
type Ledger struct {
	Limit  belay.Amounts        `json:"limit,omitzero"` // a kind without one isn't limited; none: there is no budget
	Spent  belay.Amounts        `json:"spent,omitzero"` // as far as threads have told
	Grants Book[belay.ThreadID] `json:"grants,omitempty"`
	Quotas
}

// Left is what no thread has. A kind is negative when a provider took more than
// a request could cost as far as its price was known, or when the limit was lowered.
func (l *Ledger) Left() belay.Amounts {
	left, sliced := l.Own(), l.sliced()
	for _, g := range l.Grants {
		sliced = sliced.Sub(g.Amount)
	}
	for _, q := range l.Shared {
		if of := left.Of(q.Kind); *l.Limit.Of(q.Kind) == 0 {
			*of = *sliced.Of(q.Kind)
		} else {
			*of = min(*of, *sliced.Of(q.Kind))
		}
	}
	return left.Only(l.Told())
}

// Own is what no thread has of the session's own limit, whatever quotas say.
func (l *Ledger) Own() belay.Amounts {
	left := l.Limit.Sub(l.Spent)
	for _, g := range l.Grants {
		left = left.Sub(g.Amount)
	}
	return left.Only(l.Limit)
}

// Told is the limit that threads are told: a kind that only a quota limits has that
// quota's.
func (l *Ledger) Told() belay.Amounts {
	limit := l.Limit
	for _, q := range l.Shared {
		if of := limit.Of(q.Kind); *of == 0 && !q.Warn {
			*of = q.Limit
		}
	}
	return limit
}

// Limited reports whether there is a budget or a quota.
func (l *Ledger) Limited() bool { return l.Told() != belay.Amounts{} }

// Only reports whether no other thread has a part of the budget or asks for one.
func (l *Ledger) Only(thread belay.ThreadID) bool {
	return !slices.ContainsFunc(l.Grants, func(g Grant[belay.ThreadID]) bool { return g.To != thread })
}

// Waiting are the requests that weren't answered with a grant, in the order in which they
// are served.
func (l *Ledger) Waiting() []Grant[belay.ThreadID] {
	waiting := slices.DeleteFunc(slices.Clone(l.Grants), func(g Grant[belay.ThreadID]) bool { return g.Given })
	slices.SortStableFunc(waiting, func(a, b Grant[belay.ThreadID]) int { return cmp.Compare(b.Priority, a.Priority) })
	return waiting
}

// Needs reports whether a thread waits for a slice.
func (l *Ledger) Needs(slice string) bool {
	return slices.ContainsFunc(l.Grants, func(g Grant[belay.ThreadID]) bool { return !g.Given && !g.Refused && isFor(slice, g.ID) })
}

// Shares are what each of the requests gets now: by priority, what it asks for if
// there is so much, else the rest if that is of use. A thread that is alone gets all.
func (l *Ledger) Shares(waiting []Grant[belay.ThreadID]) []belay.Amounts {
	shares, left, told := make([]belay.Amounts, len(waiting)), l.Left(), l.Told()
	for _, k := range belay.BudgetKinds() {
		if *told.Of(k) == 0 {
			continue
		}
		requests := make([]budget.Request, len(waiting))
		for i, g := range waiting {
			requests[i] = budget.Request{ID: g.ID, Priority: g.Priority, Min: *g.Least.Of(k), Optimal: *g.Most.Of(k)}
			if l.Only(g.To) {
				requests[i].Optimal = *left.Of(k)
			}
		}
		for i, share := range budget.Allocate(*left.Of(k), requests) {
			*shares[i].Of(k) = share.Amount
		}
	}
	return shares
}

// Set is the limit that a command sets, and what was spent before there was one. It
// refuses a limit below what was spent, and a raise of what isn't limited.
func (l *Ledger) Set(c belay.SetBudget) (limit, before belay.Amounts, err error) {
	spent := l.Spent
	if l.Limit == (belay.Amounts{}) {
		before = c.Spent.Sub(spent).Max(belay.Amounts{}) // some of it was spent on account of quotas, and told
		spent = spent.Add(before)
	}
	if kind := c.Budget.Only(l.Limit).Short(c.Budget); c.Raise && kind != "" {
		return limit, before, belay.Errorf(belay.CodeBadState, "there is no limit to raise").At(string(kind)).WithHint("name the limit: %s", c.Budget)
	}
	limit = (budget.Limit{Amounts: c.Budget, Raise: c.Raise}).Over(l.Limit)
	if kind := limit.Short(spent.Only(c.Budget)); kind != "" && limit != l.Limit {
		return limit, before, belay.Errorf(belay.CodeBadCommand, "%s is less than what was spent, %s", limit.Only(kind.Amount(1)), spent.Only(kind.Amount(1))).At(string(kind)).WithHint("name a higher limit, or none of this kind")
	}
	return limit, before, nil
}

// Apply folds a step of the budget that the session's stream has.
func (l *Ledger) Apply(p event.LimitChanged) {
	if p.Scope == ScopeQuota {
		l.Quotas.apply(p)
		return
	}
	g := Grant[belay.ThreadID]{ID: p.GrantID, To: p.Thread, Least: p.Least, Most: p.Amount, Amount: p.Amount, Priority: p.Priority}
	switch p.Op {
	case event.LimitSet:
		l.Limit, l.Spent = p.Limit, l.Spent.Add(p.Spent)
		for i := range l.Grants { // each is answered again: a raise may be too small
			l.Grants[i].Refused = false
		}
	case event.LimitAsked:
		g.Amount = belay.Amounts{}
		l.Grants.Ask(g)
	case event.LimitGranted:
		l.Grants.Give(g)
	case event.LimitRefused:
		if have := l.Grants.Find(p.Thread, p.GrantID); have != nil {
			have.Refused = true
		}
	case event.LimitRecalled:
		for i := range l.Grants {
			if g := &l.Grants[i]; g.To == p.Thread && g.Given {
				g.Recalled = true
			}
		}
	case event.LimitReturned:
		l.Spent, l.Drawn = l.Spent.Add(p.Spent), l.Drawn.Add(p.Spent)
		l.Grants.Close(p.Thread, p.Closed, p.GrantID, p.Kept)
		l.Grants.Wait(p.Thread, p.GrantID, p.Waits)
	}
}

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

// Counted are the kinds that only quotas count which block nothing: threads tell what they
// spent of them, and ask for nothing.
func (l *Ledger) Counted() (counted belay.Amounts) {
	told := l.Told()
	for _, q := range l.Shared {
		if *told.Of(q.Kind) == 0 {
			*counted.Of(q.Kind) = 1
		}
	}
	return counted
}

// Telling is what threads are told with every grant.
func (l *Ledger) Telling() belay.BudgetGrant {
	return belay.BudgetGrant{Limit: l.Told(), Counted: l.Counted()}
}

// Limited reports whether there is a budget or a quota.
func (l *Ledger) Limited() bool { return l.Told() != belay.Amounts{} }

// Only reports whether no other thread has a part of the budget or asks for one.
func (l *Ledger) Only(thread belay.ThreadID) bool {
	return !slices.ContainsFunc(l.Grants, func(g Grant[belay.ThreadID]) bool { return g.To != thread })
}

// Waiting are the requests that weren't answered with a grant, in the order in which they
// are served: by priority, then by the age of their threads. So what little is left lets
// one thread after the other end its work, and doesn't go around among all of them.
func (l *Ledger) Waiting(age func(belay.ThreadID) int) []Grant[belay.ThreadID] {
	waiting := slices.DeleteFunc(slices.Clone(l.Grants), func(g Grant[belay.ThreadID]) bool { return g.Given })
	slices.SortStableFunc(waiting, func(a, b Grant[belay.ThreadID]) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(age(a.To), age(b.To)))
	})
	return waiting
}

// Recall is a thread that is to give back what it has.
type Recall struct {
	From  belay.ThreadID
	Waits bool // for budget itself, and gives back all that isn't in use
}

// Recalls are the threads that are to be asked now, once each, for what they have, because
// too little is left for one of them; and whether what may come back is enough. Those that
// work give back what they don't need, and may bring all of it when they end. Those that
// wait behind the one are asked for everything, the last of them first, as far as that is
// needed: it would lie there until it is their turn. Those that wait for agents or for a
// person, or whose request was refused, keep what they have.
func (l *Ledger) Recalls(to belay.ThreadID, behind []Grant[belay.ThreadID], left, least belay.Amounts) (from []Recall, enough bool) {
	asks := func(t belay.ThreadID) bool {
		return slices.ContainsFunc(l.Grants, func(g Grant[belay.ThreadID]) bool { return g.To == t && !g.Given })
	}
	comes := left
	for _, w := range slices.Backward(behind) {
		var has belay.Amounts
		keeps := true
		for _, g := range l.Grants {
			if g.To == w.To && g.Given && !g.Waits {
				has, keeps = has.Add(g.Amount), false
			}
		}
		if w.Refused || keeps || !w.Recalled && comes.Short(least) == "" {
			continue
		}
		if comes = comes.Add(has); !w.Recalled {
			from = append(from, Recall{w.To, true})
		}
	}
	for _, g := range l.Grants {
		if g.To == to || !g.Given || asks(g.To) {
			continue
		}
		if !g.Waits {
			comes = comes.Add(g.Amount)
		}
		if r := (Recall{From: g.To}); !g.Recalled && !slices.Contains(from, r) {
			from = append(from, r)
		}
	}
	return from, comes.Short(least) == ""
}

// Needs reports whether a thread waits for a slice.
func (l *Ledger) Needs(slice string) bool {
	return slices.ContainsFunc(l.Grants, func(g Grant[belay.ThreadID]) bool { return !g.Given && !g.Refused && isFor(slice, g.ID) })
}

// Share is what a request gets of what is left: what it asks for if there is so much,
// else the rest. A thread that is alone gets all. ok is false if less is left than what
// it can't do without.
func (l *Ledger) Share(g Grant[belay.ThreadID], left belay.Amounts) (amount belay.Amounts, ok bool) {
	told := l.Told()
	if amount = left.Max(belay.Amounts{}).Only(told); !l.Only(g.To) {
		amount = amount.Min(g.Least.Max(g.Most))
	}
	return amount, amount.Short(g.Least.Only(told)) == ""
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
			if g := &l.Grants[i]; g.To == p.Thread && g.Given != p.Waits {
				g.Recalled = true
			}
		}
	case event.LimitReturned:
		l.Spent, l.Drawn = l.Spent.Add(p.Spent), l.Drawn.Add(p.Spent)
		l.Grants.Close(p.Thread, p.Closed, p.GrantID, p.Kept)
		l.Grants.Wait(p.Thread, p.GrantID, p.Waits)
	}
}

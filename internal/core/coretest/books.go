package coretest

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/grant"
)

// Sums are what the facts of a store say about what was spent.
type Sums struct {
	Reserved, Charged belay.Amounts  // of all requests to models
	Ops               map[string]int // steps of budgets, as scope and op, and questions about them
}

// Books holds the facts of a store at rest against each other. Each reservation was
// charged once, with no more unless the charge says so. What came back of grants and
// what was spent is what was given. What requests and calls took is what threads told
// their sessions, and sessions the quotas; nothing is lent any more. The sessions'
// limits are there from their beginning. what names the store in errors.
func Books(t *testing.T, what any, facts []event.Envelope) Sums {
	t.Helper()
	b := books{t: t, what: what, sums: Sums{Ops: map[string]int{}}, open: map[belay.StreamID]map[string]event.Cost{}, threads: map[belay.StreamID]*purse{},
		ledgers: map[belay.SessionID]*grant.Ledger{}, used: map[belay.SessionID]belay.Amounts{}, begun: map[belay.CallID]bool{}, returned: map[belay.SessionID]belay.Amounts{}}
	for _, e := range facts {
		b.take(e)
	}
	b.atRest()
	return b.sums
}

type books struct {
	t        *testing.T
	what     any
	sums     Sums
	open     map[belay.StreamID]map[string]event.Cost // reservations that weren't charged; without an amount: that were
	threads  map[belay.StreamID]*purse
	ledgers  map[belay.SessionID]*grant.Ledger
	used     map[belay.SessionID]belay.Amounts // by requests and calls
	begun    map[belay.CallID]bool
	lent     grant.Book[belay.SessionID] // of quotas
	returned map[belay.SessionID]belay.Amounts
}

// purse is what a thread was given and told.
type purse struct {
	limit  belay.Amounts
	grants grant.Book[belay.ThreadID]
}

func (b *books) take(e event.Envelope) {
	b.t.Helper()
	switch p := e.Data.(type) {
	case event.CostEstimated:
		if b.open[e.Stream] == nil {
			b.open[e.Stream] = map[string]event.Cost{}
		}
		if _, again := b.open[e.Stream][p.For]; again {
			b.t.Errorf("%v: %s is reserved again", b.what, p.For)
		}
		b.open[e.Stream][p.For] = p.Cost
		b.sums.Reserved = b.sums.Reserved.Add(amounts(p.Cost))
	case event.CostRecorded:
		b.charge(e, p)
	case event.ToolStarted:
		if p.Boundary != "none" && !b.begun[e.IDs.Call] { // else the runtime answers it, and it costs no call
			b.begun[e.IDs.Call] = true
			b.used[e.IDs.Session] = b.used[e.IDs.Session].Add(belay.Amounts{Calls: 1})
		}
	case event.TurnSubmitted:
		if p.Budget != nil {
			b.threadStep(e, event.LimitChanged{Op: event.LimitSet, Limit: p.Budget.Limit})
			b.threadStep(e, event.LimitChanged{Op: event.LimitGranted, GrantID: p.Budget.ID, Amount: p.Budget.Amount})
		}
	case event.ActionRequired:
		if p.Budget != nil {
			b.sums.Ops["ask"]++
		}
	case event.LimitChanged:
		b.sums.Ops[string(e.Stream.Kind())+" "+p.Scope+" "+p.Op]++
		b.step(e, p)
	}
}

// charge closes a reservation.
func (b *books) charge(e event.Envelope, p event.CostRecorded) {
	b.t.Helper()
	was, is := amounts(b.open[e.Stream][p.For]), amounts(p.Cost)
	over := belay.Amounts{MicroUSD: p.Over}
	switch _, known := b.open[e.Stream][p.For]; {
	case !known:
		b.t.Errorf("%v: %s is charged without a reservation", b.what, p.For)
	case was == belay.Amounts{}:
		b.t.Errorf("%v: %s is charged again", b.what, p.For)
	case was.Add(over).Only(belay.Amounts{MicroUSD: 1}).Short(is.Only(belay.Amounts{MicroUSD: 1})) != "":
		b.t.Errorf("%v: %s takes %s of %s", b.what, p.For, is, was)
	}
	b.open[e.Stream][p.For] = event.Cost{}
	b.sums.Charged = b.sums.Charged.Add(is)
	b.used[e.IDs.Session] = b.used[e.IDs.Session].Add(is)
}

// step folds a step of a budget in the books of who took it.
func (b *books) step(e event.Envelope, p event.LimitChanged) {
	b.t.Helper()
	switch e.Stream.Kind() {
	case belay.KindSession:
		l := b.ledgers[e.IDs.Session]
		if l == nil {
			l = &grant.Ledger{}
			b.ledgers[e.IDs.Session] = l
		}
		if p.Scope == grant.ScopeQuota && p.Op == event.LimitReturning {
			settled(b, e, p, l.Slices, "", l.Told())
		}
		l.Apply(p)
	case belay.KindThread:
		b.threadStep(e, p)
	default:
		switch p.Op {
		case event.LimitGranted:
			b.lent.Give(grant.Grant[belay.SessionID]{ID: p.GrantID, To: p.Session, Amount: p.Amount})
		case event.LimitReturned:
			settled(b, e, p, b.lent, p.Session, belay.Amounts{MicroUSD: 1, Tokens: 1, Calls: 1})
			b.lent.Close(p.Session, p.Closed, p.GrantID, p.Kept)
			b.returned[p.Session] = b.returned[p.Session].Add(p.Spent)
		}
	}
}

func (b *books) threadStep(e event.Envelope, p event.LimitChanged) {
	b.t.Helper()
	u := b.threads[e.Stream]
	if u == nil {
		u = &purse{}
		b.threads[e.Stream] = u
	}
	switch p.Op {
	case event.LimitSet:
		u.limit = p.Limit
	case event.LimitGranted:
		if p.GrantID != "" {
			u.grants.Give(grant.Grant[belay.ThreadID]{ID: p.GrantID, Amount: p.Amount})
		}
	case event.LimitReturned:
		settled(b, e, p, u.grants, "", u.limit)
		u.grants.Close("", p.Closed, p.GrantID, p.Kept)
	}
}

// settled: what was given of the grants that end is what was spent, what goes back and
// what is kept; where more was spent than given nothing goes back.
func settled[T ~string](b *books, e event.Envelope, p event.LimitChanged, have grant.Book[T], to T, limit belay.Amounts) {
	b.t.Helper()
	var given belay.Amounts
	for _, id := range p.Closed {
		if g := have.Find(to, id); g != nil {
			given = given.Add(g.Amount)
		}
	}
	limit.Time = 0 // a thread that is taken over has told no end of it
	if rest := given.Sub(p.Spent).Max(belay.Amounts{}).Only(limit); rest != p.Amount.Add(p.Kept).Only(limit) {
		b.t.Errorf("%v: %s: of %s that were given %s are spent, %s returned and %s kept", b.what, e.ID(), given, p.Spent, p.Amount, p.Kept)
	}
}

// atRest holds the sums against each other.
func (b *books) atRest() {
	b.t.Helper()
	for stream, all := range b.open {
		for key, c := range all {
			if amounts(c) != (belay.Amounts{}) {
				b.t.Errorf("%v: %s: %s isn't charged", b.what, stream, key)
			}
		}
	}
	for stream, u := range b.threads {
		if len(u.grants) > 0 {
			b.t.Errorf("%v: %s has %+v", b.what, stream, u.grants)
		}
	}
	if len(b.lent) > 0 {
		b.t.Errorf("%v: the quotas have lent %+v", b.what, b.lent)
	}
	for id, l := range b.ledgers {
		var shared belay.Amounts
		for _, q := range l.Shared {
			*shared.Of(q.Kind) = 1
		}
		limit := l.Told().Max(l.Counted())
		limit.Time = 0
		if len(l.Grants) > 0 || len(l.Slices) > 0 || l.Returning != nil || l.Drawn.Only(shared) != (belay.Amounts{}) || l.Spent.Only(limit) != b.used[id].Only(limit) {
			b.t.Errorf("%v: session %s took %s and says %+v", b.what, id, b.used[id], l)
		}
		if b.returned[id].Only(shared) != l.Spent.Only(shared) {
			b.t.Errorf("%v: session %s spent %s and told the quotas %s", b.what, id, l.Spent, b.returned[id])
		}
	}
}

func amounts(c event.Cost) belay.Amounts {
	return belay.Amounts{MicroUSD: c.Amount, Tokens: c.Usage.Total()}
}

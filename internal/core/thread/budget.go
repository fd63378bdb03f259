package thread

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/grant"
)

// spending decides what the thread may spend: of its session's budget, and of the
// limits of its turn.
type spending struct{ *decision }

// purse is what the thread has of its session's budget. It is spent by charges:
// reserve.go says what a request may take, charge.go what it took.
type purse struct {
	Limit    belay.Amounts              `json:"limit,omitzero"`     // of the session; none: there is no budget
	Counted  belay.Amounts              `json:"counted,omitzero"`   // kinds that nothing limits, and the session wants to know
	Grants   grant.Book[belay.ThreadID] `json:"grants,omitempty"`   // given, and asked for
	Spent    belay.Amounts              `json:"spent,omitzero"`     // of what was given, since something was returned
	Recalled bool                       `json:"recalled,omitempty"` // the session wants back what isn't needed
	Yields   bool                       `json:"yields,omitempty"`   // it wants back all until it gives again: others come first
	Quota    *belay.QuotaWindow         `json:"quota,omitempty"`    // for which the session refused last
	Open     []reservation              `json:"open,omitempty"`     // of requests whose cost isn't recorded
}

// limited reports whether the session has a budget.
func (p *purse) limited() bool { return p.Limit != belay.Amounts{} }

// given is what the grants are together.
func (p *purse) given() (a belay.Amounts) {
	for _, g := range p.Grants {
		a = a.Add(g.Amount)
	}
	return a
}

// has is what was given and is neither spent nor reserved.
func (p *purse) has() belay.Amounts {
	a := p.given().Sub(p.Spent)
	for _, r := range p.Open {
		a = a.Sub(r.Amount)
	}
	return a.Only(p.Limit)
}

// rest is what was given and isn't spent, though some of it may be reserved.
func (p *purse) rest() belay.Amounts { return p.given().Sub(p.Spent).Max(belay.Amounts{}) }

// asked is the request that the session hasn't answered with a grant.
func (p *purse) asked() *grant.Grant[belay.ThreadID] {
	return find(p.Grants, func(g *grant.Grant[belay.ThreadID]) bool { return !g.Given })
}

// waits reports whether the session hasn't answered.
func (p *purse) waits() bool {
	asked := p.asked()
	return asked != nil && !asked.Refused
}

// spend counts what is used while the session limits it, or a quota of it that only warns does.
func (p *purse) spend(a belay.Amounts) { p.Spent = p.Spent.Add(a.Only(p.Limit.Max(p.Counted))) }

// ran counts a call that is over, if it began. One that the runtime answers itself asks for
// nothing, so it takes nothing: a turn can always end.
func (p *purse) ran(c *Call) {
	if c.Attempt > 0 && !c.Internal {
		p.spend(belay.Amounts{Calls: 1})
	}
}

// What a thread that isn't alone asks for besides the money and the tokens of its
// next request.
var (
	leastOfRest = belay.Amounts{Calls: 1, Time: belay.Duration(time.Second)}
	mostOfRest  = belay.Amounts{Calls: 20, Time: belay.Duration(10 * time.Minute)}
)

// takeBudget records a part of the budget that the session gave, or its answer
// that there is none.
func (h *handler) takeBudget(b *belay.BudgetGrant) {
	p, ids := &h.Purse, h.threadIDs()
	if b == nil {
		return
	}
	if b.Limit != p.Limit || b.Counted != p.Counted {
		h.record(core.Fact{IDs: ids, Data: event.LimitChanged{Op: event.LimitSet, Scope: "thread", Limit: b.Limit, Counted: b.Counted}})
	}
	have := p.Grants.Find("", b.ID)
	switch {
	case have == nil || have.Given: // taken back before, or taken
		return
	case b.Refused:
		h.record(core.Fact{IDs: ids, Data: event.LimitChanged{Op: event.LimitRefused, Scope: "thread", GrantID: b.ID, Amount: b.Left, Windows: windows(b.Quota)}})
		return
	}
	for _, l := range b.Low {
		if h.Turn != nil {
			h.record(h.fact(event.QuotaLow{Quota: grant.QuotaOf(l)}))
		}
	}
	if t := h.Turn; t != nil && t.Ask != nil && t.Ask.Open && t.Ask.Kind == askBudget {
		h.resolve(t.Ask, nil, "cancelled", "budget", "", "there is budget again")
	}
	h.record(core.Fact{IDs: ids, Data: event.LimitChanged{Op: event.LimitGranted, Scope: "thread", GrantID: b.ID, Amount: b.Amount}})
}

// recallBudget notes that the session wants back what isn't needed; or, while the thread
// waits for budget, everything.
func (h *handler) recallBudget(waits bool) {
	p := &h.Purse
	waits = waits && p.waits()
	if p.limited() && (!p.Recalled || waits && !p.Yields) {
		h.record(h.threadFact(event.LimitChanged{Op: event.LimitRecalled, Scope: "thread", Waits: waits}))
	}
}

// returnBudget gives back what the thread doesn't need: all when no turn runs or
// waits; and when it was recalled, what the running one doesn't need while its request
// is out or its calls aren't over. Before a request the grant that it waited for is
// its own, or the same budget would go around without being used. While others that wait
// come first it keeps only what is in use, and asks for the rest again.
func (d spending) returnBudget() {
	p := &d.Purse
	idle := d.Turn == nil && len(d.Queue) == 0 && d.Compacting == nil && d.Wish == nil
	needs := !p.Recalled || !d.Turn.underway()
	if d.Paused() != nil {
		needs = len(p.Grants) == 0 || d.Turn == nil
	}
	if len(p.Grants) == 0 && p.Spent == (belay.Amounts{}) || !idle && !p.Yields && (needs || p.asked() != nil) || len(p.Open) > 0 && idle {
		return
	}
	b := belay.BudgetReturn{Back: p.rest()}
	if !idle {
		last := p.last()
		if last == nil {
			return
		}
		keeps := d.inUse()
		if !p.Yields {
			keeps = keeps.Add(d.finalRoom())
		}
		has := p.has().Max(belay.Amounts{})
		b.ID, b.Kept = last.ID, b.Back
		b.Back = has.Sub(has.Min(keeps))
		b.Kept = b.Kept.Sub(b.Back)
		b.Waits = p.Yields || d.Paused() != nil || d.Turn.waitsForOthers()
		if b.Back == (belay.Amounts{}) && b.Waits == last.Waits {
			return
		}
	}
	d.giveBack(b)
}

// last is the grant that was given last; nil: none was.
func (p *purse) last() *grant.Grant[belay.ThreadID] {
	for i := range slices.Backward(p.Grants) {
		if p.Grants[i].Given {
			return &p.Grants[i]
		}
	}
	return nil
}

// giveBack ends all grants, but for what is kept of one of them.
func (d spending) giveBack(b belay.BudgetReturn) {
	for _, g := range d.Purse.Grants {
		b.Closed = append(b.Closed, g.ID)
	}
	b.Spent = d.Purse.Spent
	d.record(d.threadFact(event.LimitChanged{Op: event.LimitReturned, Scope: "thread", GrantID: b.ID, Closed: b.Closed, Amount: b.Back, Spent: b.Spent, Kept: b.Kept, Waits: b.Waits}))
	d.send(core.Send{To: d.Session.Stream(), Command: belay.ReturnGrant{Thread: d.Thread, Budget: &b}})
}

// inUse is what a turn keeps of its budget besides what its final step takes: a call for
// each that began, and for each that only the budget keeps from beginning; and time, while
// some passes or is about to. What a call asked for is its own until it has begun, or the
// same budget would go around without being used.
func (d spending) inUse() (n belay.Amounts) {
	if d.driven() {
		n.Time = mostOfRest.Time
	}
	if d.Turn != nil && d.Turn.Step != nil && d.Turn.Step.Phase == stepRequested {
		n.Calls = leastOfRest.Calls
	}
	for i, c := range d.Turn.calls() {
		switch {
		case c.Internal:
		case c.begun():
			n.Calls++
		case d.Paused() == nil && d.rules != nil && d.couldBegin(i):
			n.Calls, n.Time = n.Calls+1, mostOfRest.Time
		}
	}
	return n.Only(d.Purse.Limit)
}

// underway reports whether a step's request is out, or its calls aren't over.
func (t *Turn) underway() bool {
	return t != nil && t.Step != nil && (t.Step.Phase == stepRequested || t.Step.Phase == stepAnswered && !t.Step.settled())
}

// waitsForOthers reports whether nothing of the turn goes on before agents end, or a person
// answers.
func (t *Turn) waitsForOthers() bool {
	return t.underway() && t.Step.Phase == stepAnswered && !slices.ContainsFunc(t.Step.Calls, func(c *Call) bool {
		return c.Phase != CallOver && c.Phase != CallWaits && (c.Ask == nil || !c.Ask.Open)
	})
}

// applyLimit folds a step of the budget.
func (s *State) applyLimit(p event.LimitChanged) {
	u := &s.Purse
	switch g := (grant.Grant[belay.ThreadID]{ID: p.GrantID, Least: p.Least, Most: p.Amount, Amount: p.Amount}); p.Op {
	case event.LimitSet:
		u.Limit, u.Counted = p.Limit, p.Counted
	case event.LimitAsked:
		g.Amount = belay.Amounts{}
		u.Grants.Ask(g)
	case event.LimitGranted:
		u.take(&belay.BudgetGrant{ID: p.GrantID, Limit: u.Limit, Counted: u.Counted, Amount: p.Amount})
	case event.LimitRefused:
		if have := u.Grants.Find("", p.GrantID); have != nil {
			have.Refused = true
		}
		u.Quota = nil
		if len(p.Windows) > 0 {
			u.Quota = &p.Windows[0]
		}
	case event.LimitRecalled:
		u.Recalled, u.Yields = true, u.Yields || p.Waits
	case event.LimitReturned:
		u.Spent = belay.Amounts{}
		u.Grants.Close("", p.Closed, p.GrantID, p.Kept)
		u.Grants.Wait("", p.GrantID, p.Waits)
		if len(u.Grants) == 0 {
			u.Recalled, u.Yields = false, false
		}
	}
}

// askBudget is the kind of a question about the budget.
const askBudget = "budget"

// lows are the words for a budget that is used up: why a step is the final one, and
// the code that the turn ends with.
var lows = map[belay.BudgetKind]struct{ limit, code, what string }{
	belay.BudgetCost:   {"cost", "COST_LIMIT", "money"},
	belay.BudgetTokens: {"tokens", "TOKEN_LIMIT", "tokens"},
	belay.BudgetCalls:  {"call_budget", "CALL_BUDGET", "tool calls"},
	belay.BudgetTime:   {"time_budget", "TIME_BUDGET", "driven time"},
}

// lowBy is the kind of budget that the word for a final step's limit means.
func lowBy(limit string) belay.BudgetKind {
	for kind, l := range lows {
		if l.limit == limit {
			return kind
		}
	}
	return ""
}

// shortfall is what keeps a request from leaving.
type shortfall struct {
	kind  belay.BudgetKind // of the budget
	turn  bool             // the turn's own limit, which the session can't help with
	limit belay.Amounts    // that isn't enough
	need  belay.Amounts
}

// low decides what comes of a turn whose budget is too small for a request and a
// final step after it: a person is asked for more; after a no, and where none can
// be asked, a final step uses what was kept for it, and the turn ends.
func (d spending) low(kind string, s shortfall) {
	t := d.Turn
	alone := t.Low != "" || d.rules.headless()
	reason := "the budget of the " + s.scope() + " (" + s.limit.String() + ") has no " + lows[s.kind].what + " left for a request"
	if q := d.Purse.Quota; q != nil && !s.turn { // which no answer raises
		alone, reason = true, s.quotaReason(q)
		if t.Low == "" {
			d.record(d.fact(event.QuotaBlocked{Quota: grant.QuotaOf(belay.QuotaLeft{QuotaWindow: *q}), Reason: reason}))
		}
	}
	switch {
	case kind == KindFinal || t.Step == nil && alone:
		d.fail(belay.OverBudget, lows[s.kind].code, reason)
	case alone:
		d.short = s.kind
		d.ask(KindFinal)
	case t.Ask == nil || !t.Ask.Open:
		d.askPerson(nil, "", event.ActionRequired{Kind: askBudget, Budget: &event.BudgetAsked{Scope: s.scope(), Kind: s.kind, Limit: s.limit, Raise: s.raise()},
			Prompt: belay.Content{Text: reason + ". Raise it by " + s.raise().String() + "?"}})
	case !d.now.Before(t.Ask.Until):
		d.resolve(t.Ask, nil, "deny", "deadline", "", "nobody answered in time")
	default:
		d.wakeAt(t.Ask.Until)
	}
}

// quotaReason says what of a quota keeps the request from leaving: nothing of it need be spent,
// if others have it, or if it is less than one request takes.
func (s shortfall) quotaReason(q *belay.QuotaWindow) string {
	of := "the " + q.Of + "'s quota of " + q.Kind.Amount(q.Limit).String() + " a " + q.Per
	if need := *s.need.Of(q.Kind); need > q.Limit {
		return of + " is less than a request and a final step may take, " + q.Kind.Amount(need).String()
	}
	return of + " has too little left for a request until " + q.Until.UTC().Format(time.RFC3339)
}

func windows(q *belay.QuotaWindow) []belay.QuotaWindow {
	if q == nil {
		return nil
	}
	return []belay.QuotaWindow{*q}
}

func (s shortfall) scope() string {
	if s.turn {
		return "turn"
	}
	return "session"
}

// raise is what a person is asked for: half of the limit, or what the request needs
// if that is more.
func (s shortfall) raise() belay.Amounts {
	const cent = 10_000
	step := map[belay.BudgetKind]int64{belay.BudgetCost: cent, belay.BudgetTokens: 1000, belay.BudgetCalls: 1, belay.BudgetTime: int64(time.Minute)}[s.kind]
	n := max(*s.limit.Of(s.kind)/2, *s.need.Of(s.kind))
	return s.kind.Amount((n + step - 1) / step * step)
}

// raiseBudget does what a yes to a question about the budget means: by is what the
// person gives, and what was proposed if that is nothing.
func (h *handler) raiseBudget(a *Ask, by belay.Amounts) {
	if by == (belay.Amounts{}) {
		by = a.Budget.Raise
	}
	if a.Budget.Scope == "turn" {
		l := h.Turn.Limits
		limit := belay.Amounts{MicroUSD: l.MicroUSD, Tokens: l.Tokens}
		limit = limit.Add(by.Only(limit))
		l.MicroUSD, l.Tokens = limit.MicroUSD, limit.Tokens
		h.record(h.threadFact(event.ThreadUpdated{Limits: &l, Reason: "a person raised the budget of the turn"}))
		return
	}
	h.send(core.Send{To: h.Session.Stream(), Command: belay.SetBudget{Budget: by, Raise: true}})
}

// usedUp says in the note of a final step, and in the reason that ends the turn, what
// there is no more of.
func usedUp(kind belay.BudgetKind) string {
	return "the budget has no " + lows[kind].what + " left for more"
}

// take notes what the session gave.
func (p *purse) take(b *belay.BudgetGrant) {
	if b == nil {
		return
	}
	if p.Limit, p.Counted = b.Limit, b.Counted; b.ID != "" {
		if p.Grants.Find("", b.ID) != nil { // what comes with work may have been recalled on its way
			p.Recalled, p.Yields = false, false
		}
		p.Grants.Give(grant.Grant[belay.ThreadID]{ID: b.ID, Amount: b.Amount})
	}
}

package thread

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// Output that a request may have, in tokens.
const (
	mostOutput  = 32_000 // if its model writes as much
	leastOutput = 4_096  // that a request is sent with, when little is left

	reviewTokens   = 1_000   // what a model is told that judges a call, besides the call
	unknownContext = 200_000 // tokens that a model reads of which nothing is known
)

// reservation is the most that a request can take, from before it leaves until its
// cost is recorded.
type reservation struct {
	For    string        `json:"for"` // the effect's key
	Route  event.Route   `json:"route"`
	Amount belay.Amounts `json:"amount"`
	Output int64         `json:"output"`         // tokens of the answer, at most
	Input  int64         `json:"input"`          // tokens, as they were counted
	Call   belay.CallID  `json:"call,omitempty"` // that a model judges; empty: a step's request
	End    *requestEnd   `json:"end,omitempty"`  // once it is over, until its cost is recorded

	Unpriced bool `json:"unpriced,omitempty"`

	Most int64 `json:"-"` // what the provider is told; 0: nothing
}

// bound is the most that a request takes, with at most so many tokens of input and
// of output, and whether its price is known.
func bound(to core.Candidate, input, output int64, now time.Time) (a belay.Amounts, priced bool) {
	a.Tokens = input + output
	if to.Prices != nil {
		a.MicroUSD, priced = to.Prices.Bound(input, output, now)
	}
	return a, priced
}

// input is how many tokens a step's request has, as they are counted, and at most:
// counts err, less after the provider has reported some. Where something was never
// counted, a model's whole context is the most.
func (d spending) input(note string) (counted, most int64) {
	counted, reported, whole := d.estimate(note)
	switch {
	case !whole:
		return counted, max(counted, cmp.Or(d.to().Context, unknownContext))
	case reported:
		return counted, counted + counted/10
	}
	return counted, counted + counted/4
}

// finalRoom is what a final step takes, if it writes as little as it may. It is kept
// for a turn that has asked something.
func (d spending) finalRoom() belay.Amounts {
	if d.Turn == nil || d.Turn.Step == nil || d.rules == nil {
		return belay.Amounts{}
	}
	_, input := d.input("")
	least, _ := outputs(d.to())
	a, _ := bound(d.to(), input, least, d.now)
	return a.Only(d.Purse.Limit)
}

// limits are those of the turn, and what is left of them beside what is reserved.
func (d spending) turnLimits() (limit, left belay.Amounts) {
	if d.Turn == nil {
		return limit, left
	}
	limit = belay.Amounts{MicroUSD: d.Turn.Limits.MicroUSD, Tokens: d.Turn.Limits.Tokens}
	left = limit.Sub(d.Turn.Spent).Sub(d.reserving()).Sub(d.lent())
	for _, o := range d.Purse.Open {
		left = left.Sub(o.Amount)
	}
	return limit, left.Only(limit)
}

// has is what the thread was given and is neither spent nor reserved, nor taken by what
// this decision begins.
func (d spending) has() belay.Amounts {
	return d.Purse.has().Sub(d.reserving()).Only(d.Purse.Limit)
}

// reserving is what this decision reserves, and takes for calls.
func (d spending) reserving() (a belay.Amounts) {
	for _, f := range d.ready.Decided {
		switch p := f.Data.(type) {
		case event.CostEstimated:
			a = a.Add(belay.Amounts{MicroUSD: p.Amount, Tokens: p.Usage.Total()})
		case event.ToolStarted:
			a.Calls++
		}
	}
	return a
}

// outputs are how many tokens a model's answer may have: where little is left, and at most.
func outputs(of core.Candidate) (least, most int64) {
	most = mostOutput
	if of.MaxOutput > 0 {
		most = min(most, of.MaxOutput)
	}
	return min(leastOutput, most), most
}

// reserve sets aside what a step's request may take, so that a final step can still
// follow. ok is false when the request can't leave: then what follows from that is
// decided. Without any limit and price there is nothing to set aside.
func (d spending) reserve(kind, note string) (r reservation, ok bool) {
	to := d.to()
	counted, input := d.input(note)
	least, most := outputs(to)
	need := func(output int64) belay.Amounts {
		a, _ := bound(to, input, output, d.now)
		if kind != KindFinal {
			final, _ := bound(to, input+output+output/10, least, d.now)
			a = a.Add(final)
		}
		return a
	}
	needs := need(least)
	if kind != KindFinal {
		needs = needs.Add(leastOfRest)
	}
	turn, left := d.turnLimits()
	has, limit := d.has(), d.Purse.Limit
	if kind == KindFinal { // it takes no calls, and a minute
		limit.Calls, limit.Time = 0, 0
		has = has.Only(limit)
	}
	_, priced := bound(to, input, least, d.now)
	switch {
	case turn.MicroUSD+limit.MicroUSD > 0 && !priced:
		d.fail(belay.OverBudget, "NO_PRICE", "the price of "+to.Provider+"/"+to.Model+" isn't known, and the turn's money is limited")
		return r, false
	case left.Short(needs.Only(turn)) != "" && d.shortOfLent():
		return r, false
	case left.Short(needs.Only(turn)) != "":
		d.low(kind, shortfall{kind: left.Short(needs.Only(turn)), turn: true, limit: turn, need: needs.Sub(left)})
		return r, false
	case has.Short(needs.Only(limit)) != "":
		if d.askSession(has, needs, need(most).Add(mostOfRest)) {
			d.low(kind, shortfall{kind: has.Short(needs.Only(limit)), limit: limit, need: needs.Sub(has)})
		}
		return r, false
	}
	output := most
	if d.limited() { // the longest answer that there is enough for
		output = least + int64(sort.Search(int(most-least), func(i int) bool {
			n := need(least + int64(i) + 1)
			return left.Short(n.Only(turn)) != "" || has.Short(n.Only(limit)) != ""
		}))
	}
	amount, _ := bound(to, input, output, d.now)
	r = reservation{Route: to.Route, Amount: amount, Output: output, Input: counted, Unpriced: !priced}
	if d.limited() {
		r.Most = output
	}
	return r, true
}

// askSession asks the session, once, for what a request or a call needs more than the
// thread has, and reports whether the session can't give it. What it refused is asked
// anew when less is needed: something else may have come meanwhile.
func (d spending) askSession(has, least, most belay.Amounts) (refused bool) {
	limit := d.Purse.Limit
	ask := belay.BudgetAsk{ID: d.derive("grant", len(d.ready.Decided)), Least: least.Sub(has).Max(belay.Amounts{}).Only(limit)}
	ask.Most = most.Sub(has).Only(limit).Max(ask.Least)
	switch asked := d.Purse.asked(); {
	case d.Purse.waits() || slices.ContainsFunc(d.ready.Decided, isAsk):
		return false
	case asked != nil && ask.Least.Covers(asked.Least):
		return true
	case asked != nil:
		b := belay.BudgetReturn{Kept: d.Purse.rest(), Waits: d.Purse.Yields}
		if last := d.Purse.last(); last != nil {
			b.ID = last.ID
		}
		d.giveBack(b)
		ask.ID = d.derive("grant", len(d.ready.Decided))
	}
	if d.Turn != nil {
		ask.Priority = d.Turn.Priority
	}
	d.record(d.fact(event.LimitChanged{Op: event.LimitAsked, Scope: "thread", GrantID: ask.ID, Least: ask.Least, Amount: ask.Most, Priority: ask.Priority}))
	if d.Turn != nil {
		d.record(d.fact(event.RunStatus{Status: "waiting_resource", WaitingFor: ask.ID}))
		if d.Turn.Task != "" {
			d.record(core.Fact{IDs: d.turnIDs(), Data: event.TaskWaiting{Status: "waiting_resource", WaitingFor: ask.ID, Reason: "the session's budget has nothing left for it"}})
		}
	}
	d.send(core.Send{To: d.Session.Stream(), Command: belay.AskGrants{Thread: d.Thread, Budget: &ask}})
	return false
}

func isAsk(f core.Fact) bool {
	p, is := f.Data.(event.LimitChanged)
	return is && p.Op == event.LimitAsked
}

// review sets aside what asking a model about a call may take, as question does.
func (d spending) review(c *Call, k policy.Checker, question int) (r *reservation, reserved bool) {
	if k.Kind != "model" {
		return nil, true
	}
	to := d.rules.Candidate(event.Route{Provider: k.Provider, Model: k.Model})
	return d.question(c, checkerPrefix+k.ID, "permission_request", to, plain(question+len(k.Instructions))+reviewTokens, leastOutput)
}

// question sets aside what a question of a call to a model may take. reserved: that was
// done, or there is nothing to set aside. nil and not reserved: the model can't be
// asked now, because the budget is too small; then what follows is decided.
func (d spending) question(c *Call, hook, point string, to core.Candidate, counted, output int64) (r *reservation, reserved bool) {
	key := checkKey(c.ID, hook)
	if slices.ContainsFunc(d.Purse.Open, func(r reservation) bool { return r.For == key }) {
		return nil, true
	}
	amount, priced := bound(to, counted+counted/4, output, d.now)
	turn, left := d.turnLimits()
	limit, has := d.Purse.Limit, d.has()
	needs := amount.Add(d.finalRoom())
	short := left.Short(needs.Only(turn))
	switch {
	case !priced && !d.limited() && d.Purse.Counted.Tokens == 0:
		return nil, true
	case !priced && turn.MicroUSD+limit.MicroUSD > 0:
		short = belay.BudgetCost
	case short == "" && has.Short(needs.Only(limit)) == "":
		return &reservation{Route: to.Route, Amount: amount, Output: output, Input: counted, Unpriced: !priced}, false
	case short == "" && !d.askSession(has, needs, needs):
		return nil, false
	}
	d.record(core.Fact{IDs: d.callIDs(c), Data: event.HookFailed{Hook: hook, Point: point, Fails: "closed",
		Problem: event.Problem{Class: "skipped", Code: lows[cmp.Or(short, belay.BudgetCost)].code, Message: "not asked: " + usedUp(cmp.Or(short, belay.BudgetCost))}}})
	return nil, false
}

// reviewOutput is how many tokens the answer of a model may have that judges a call;
// 0: the provider's default.
func (d spending) reviewOutput() int64 {
	if d.limited() {
		return leastOutput
	}
	return 0
}

// covers reports whether the budget has room for a call that nothing else keeps from
// beginning. If not, the session is asked, and when it has none the call is refused. Those
// that began, or begin now, count already.
func (d spending) covers(c *Call) bool {
	limit := belay.Amounts{Calls: d.Purse.Limit.Calls, Time: d.Purse.Limit.Time}
	has := d.has()
	for _, o := range d.Turn.calls() {
		if o != c && o.begun() && !o.Internal {
			has.Calls--
		}
	}
	has = has.Only(limit)
	short := has.Short(leastOfRest.Only(limit))
	if short != "" && d.askSession(has, leastOfRest, mostOfRest) {
		d.record(d.failed(c, event.Problem{Class: "skipped", Code: lows[short].code, Message: "not run: " + usedUp(short)}))
	}
	return short == ""
}

// timeLeft is how long the session's budget lets the turn be driven from now on;
// limited is false if that isn't limited.
func (d spending) timeLeft() (left time.Duration, limited bool) {
	if d.Purse.Limit.Time == 0 {
		return 0, false
	}
	return time.Duration(d.Purse.has().Time) - (d.active() - d.Turn.Active), true
}

// announce records a request's reservation in the append that announces the request.
// Of a model that has no price nothing is reserved unless something is limited, or counted.
func (d spending) announce(ids belay.IDs, key string, r reservation) {
	if r.Unpriced && !d.limited() && d.Purse.Counted.Tokens == 0 {
		return
	}
	d.record(core.Fact{IDs: ids, Data: event.CostEstimated{Counted: r.Input, Cost: event.Cost{
		Amount: r.Amount.MicroUSD, Currency: "USD", Provider: r.Route.Provider, Model: r.Route.Model, Unpriced: r.Unpriced, For: key,
		Usage: belay.Usage{Input: r.Amount.Tokens - r.Output, Output: r.Output},
	}}})
}

// limited reports whether money or tokens are limited.
func (d spending) limited() bool {
	p, l := d.Purse.Limit, belay.Limits{}
	if d.Turn != nil {
		l = d.Turn.Limits
	}
	return l.MicroUSD > 0 || l.Tokens > 0 || p.MicroUSD > 0 || p.Tokens > 0
}

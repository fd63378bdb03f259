package session

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/quota"
)

// quotaBench is a session that spends from a quota, and how its facts are folded until
// nothing more is decided: it returns what the quotas are asked then.
func quotaBench(t *testing.T) (b *bench, next func(facts ...event.LimitChanged) *core.AskQuota) {
	t.Helper()
	b = newBench(t)
	b.create()
	b.do(belay.SubmitWork{Thread: "thr_1", Task: "task_1", Turn: "turn_1", Rules: rules, Quotas: []belay.Quota{{Of: "tenant", Kind: belay.BudgetCost, Limit: 100_000_000, Per: "day"}}})
	fold := func(f core.Fact) {
		b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
	}
	return b, func(facts ...event.LimitChanged) (ask *core.AskQuota) {
		t.Helper()
		for _, p := range facts {
			fold(b.d.s.quotaFact(p))
		}
		for range 100 {
			rd := b.d.Next(time.Time{})
			for _, e := range rd.Effects {
				if a, ok := e.(core.AskQuota); ok {
					ask = &a
				}
			}
			if len(rd.Decided) == 0 {
				return ask
			}
			for _, f := range rd.Decided {
				fold(f)
			}
		}
		t.Fatal("it decides without end")
		return nil
	}
}

func lent(ask *core.AskQuota, a belay.Amounts) event.LimitChanged {
	return event.LimitChanged{Op: event.LimitGranted, GrantID: ask.ID, Amount: a}
}

// has is what a thread has by now.
func (b *bench) has(thread belay.ThreadID) (a belay.Amounts) {
	for _, g := range b.d.s.Budget.Grants {
		if g.To == thread && g.Given {
			a = a.Add(g.Amount)
		}
	}
	return a
}

// A slice that isn't enough, because another thread came first meanwhile or because more
// was spent than there was, is followed by another one with what is lacking.
// Guarantee: E71.
func TestTheQuotasAreAskedForWhatIsLacking(t *testing.T) {
	b, next := quotaBench(t)
	b.do(belay.AskGrants{Thread: "thr_1", Budget: &belay.BudgetAsk{ID: "a", Least: dollars(5), Most: dollars(5)}})
	ask := next()
	b.do(belay.AskGrants{Thread: "thr_2", Budget: &belay.BudgetAsk{ID: "b", Least: dollars(3), Most: dollars(3), Priority: 1}})
	if d := cmp.Diff(ask, next()); d != "" || ask.ID != "a" || ask.Least != dollars(5) || !ask.Needed {
		t.Errorf("the quotas are asked %+v; %s", ask, d)
	}
	ask = next(lent(ask, dollars(5)))
	if ask == nil || ask.ID != "a/1" || ask.Least != dollars(3) || ask.Most != dollars(3) || b.has("thr_2") != dollars(3) {
		t.Fatalf("thread 2 has %s, and the quotas are asked %+v", b.has("thr_2"), ask)
	}
	if ask = next(lent(ask, dollars(3))); ask != nil || b.has("thr_1") != dollars(5) {
		t.Errorf("thread 1 has %s, and the quotas are asked %+v", b.has("thr_1"), ask)
	}
	b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{"a"}, Spent: dollars(7)}})
	b.do(belay.AskGrants{Thread: "thr_1", Budget: &belay.BudgetAsk{ID: "c", Least: dollars(1), Most: dollars(1)}})
	if ask = next(); ask == nil || ask.ID != "c" || ask.Least != dollars(3) {
		t.Fatalf("with two dollars too many spent the quotas are asked %+v", ask)
	}
	if ask = next(lent(ask, dollars(3))); ask != nil || b.has("thr_1") != dollars(1) {
		t.Errorf("thread 1 has %s, and the quotas are asked %+v", b.has("thr_1"), ask)
	}
}

// A slice is closed before the quotas hear of it: what they may have lent to others is given
// to no thread, whatever comes before the session hears that they took it; and what the next
// turn spends is counted too.
// Guarantee: E71.
func TestASliceThatIsReturnedIsNotLentAgain(t *testing.T) {
	b, next := quotaBench(t)
	q := quota.New(quota.Stream)
	w := quota.Current(belay.Quota{Of: "tenant", Kind: belay.BudgetCost, Limit: 100_000_000, Per: "day"}, time.Unix(0, 0))
	tell := func(c belay.Command) {
		facts, _, err := q.Handle(belay.Order{Command: c}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range facts {
			q.Apply(event.Envelope{Stream: quota.Stream, Data: f.Data})
		}
	}
	work := func(id string, spent belay.Amounts, ends func(core.ReturnQuota)) {
		t.Helper()
		b.do(belay.AskGrants{Thread: "thr_1", Budget: &belay.BudgetAsk{ID: id, Least: dollars(60), Most: dollars(60)}})
		ask := next()
		if ask == nil {
			if had := b.d.s.Budget.Returning; had == nil || b.has("thr_1") != (belay.Amounts{}) {
				t.Fatalf("%s: the quotas aren't asked, and the thread has %s", id, b.has("thr_1"))
			}
			ret := b.d.Next(time.Time{}).Effects[0].(core.ReturnQuota) // once more, after a crash
			tell(belay.ReturnQuota{Session: "sess_1", User: ret.User, Return: ret.Return, Windows: []belay.QuotaWindow{w}})
			ask = next(event.LimitChanged{Op: event.LimitReturned, Closed: ret.Return.Closed, Spent: ret.Return.Spent, Amount: ret.Return.Back})
		}
		tell(belay.AskQuota{Session: "sess_1", ID: ask.ID, Least: ask.Least, Most: ask.Most, Windows: []belay.QuotaWindow{w}})
		next(lent(ask, dollars(60)))
		if b.has("thr_1") != dollars(60) {
			t.Fatalf("%s: the thread has %s", id, b.has("thr_1"))
		}
		b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{id}, Spent: spent}})
		next()
		ret := b.d.Next(time.Time{}).Effects[0].(core.ReturnQuota)
		tell(belay.ReturnQuota{Session: "sess_1", User: ret.User, Return: ret.Return, Windows: []belay.QuotaWindow{w}})
		if ends != nil {
			ends(ret)
		}
	}
	work("a", dollars(5), nil) // the session doesn't hear that it is returned
	work("b", dollars(50), func(ret core.ReturnQuota) {
		next(event.LimitChanged{Op: event.LimitReturned, Closed: ret.Return.Closed, Spent: ret.Return.Spent, Amount: ret.Return.Back})
	})
	if left := q.State().Left("", []belay.QuotaWindow{w})[0].Left; left != 45_000_000 || b.d.s.Budget.Returning != nil || len(b.d.Next(time.Time{}).Effects) > 0 {
		t.Errorf("55 dollars were spent, and %d are left of 100: %+v", left, b.d.s.Budget.Quotas)
	}
}

// What the quotas were asked stays asked until they have said something, though the
// thread doesn't want it any more: a slice that they lent is returned. What they refused
// is over.
// Guarantee: E71.
func TestWhatTheQuotasWereAskedIsFollowedToTheirAnswer(t *testing.T) {
	for what, answer := range map[string]event.LimitChanged{
		"given":   {Op: event.LimitGranted, GrantID: "a", Amount: dollars(5)},
		"refused": {Op: event.LimitRefused, GrantID: "a", Windows: []belay.QuotaWindow{{}}, Until: time.Unix(9, 0)},
	} {
		b, next := quotaBench(t)
		b.do(belay.AskGrants{Thread: "thr_1", Budget: &belay.BudgetAsk{ID: "a", Least: dollars(5), Most: dollars(5)}})
		ask := next()
		b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{"a"}}})
		ask.Needed = false
		if d := cmp.Diff(ask, next()); d != "" {
			t.Errorf("%s: taken back: %s", what, d)
		}
		if ask = next(event.LimitChanged{Op: event.LimitRefused, GrantID: "a", Until: time.Unix(8, 0)}); ask == nil || ask.ID != "a" || ask.Try != 2 {
			t.Errorf("%s: they couldn't be asked: %+v", what, ask)
		}
		if ask = next(answer); ask != nil {
			t.Errorf("%s: the quotas are asked %+v", what, ask)
		}
		rd := b.d.Next(time.Time{})
		if given := answer.Op == event.LimitGranted; given != (len(rd.Effects) == 1) || given && rd.Effects[0].(core.ReturnQuota).Return.Back != dollars(5) {
			t.Errorf("%s: %+v", what, rd.Effects)
		}
	}
}

// A person raises what a thread asked about. Of that the session raises what it limits itself,
// and a request that nothing was raised for is answered again: it doesn't wait for ever.
// Guarantee: E17.
func TestARaiseOfWhatAQuotaLimitsIsAnswered(t *testing.T) {
	b, next := quotaBench(t)
	b.do(belay.SetBudget{Budget: belay.Amounts{Tokens: 1000}})
	b.do(belay.AskGrants{Thread: "thr_1", Budget: &belay.BudgetAsk{ID: "a", Least: belay.Amounts{Tokens: 1500, MicroUSD: 5}, Most: belay.Amounts{Tokens: 1500, MicroUSD: 5}}})
	next()
	if g := b.d.s.Budget.Grants.Find("thr_1", "a"); g == nil || !g.Refused {
		t.Fatalf("more than the session has: %+v", g)
	}
	raise := func(by belay.Amounts) []core.Send {
		t.Helper()
		facts, sends, err := b.d.Handle(belay.Order{Principal: "stream:thread/thr_1", Session: "sess_1", Stream: stream, Command: belay.SetBudget{Budget: by, Raise: true}}, time.Time{})
		if err != nil {
			t.Fatalf("+%s: %v", by, err)
		}
		for _, f := range facts {
			b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
		}
		return sends
	}
	if sends := raise(dollars(1)); len(sends) != 1 || !sends[0].Command.(belay.GiveGrant).Budget.Refused {
		t.Errorf("a raise of money, which a quota limits: %+v", sends)
	}
	raise(belay.Amounts{Tokens: 1000, MicroUSD: 1})
	if ask := next(); ask == nil || b.d.s.Budget.Limit != (belay.Amounts{Tokens: 2000}) {
		t.Errorf("a raise of both gives the limit %s, and the quotas are asked %+v", b.d.s.Budget.Limit, ask)
	}
}

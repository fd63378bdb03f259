package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

func dollars(n int64) belay.Amounts { return belay.Amounts{MicroUSD: n * 1_000_000} }

// budgeted is a session of two dollars whose thread got them with its work.
func budgeted(t *testing.T) (*bench, *belay.BudgetGrant) {
	t.Helper()
	b := newBench(t)
	b.do(belay.CreateSession{Workspace: "/ws", Settings: belay.Settings{Budget: dollars(2)}})
	_, sends := b.do(belay.SubmitWork{Thread: "thr_1", Task: "task_1", Turn: "turn_1", Rules: rules})
	gift := sends[len(sends)-1].Command.(belay.CreateTask).Budget
	if gift == nil || gift.ID == "" || gift.Amount != dollars(2) || gift.Limit != dollars(2) {
		t.Fatalf("with its work the thread gets %+v", gift)
	}
	return b, gift
}

// The first thread gets everything with its work; another one waits until that gives
// something back, and is told when there is nothing that could come back.
// Guarantee: E17.
func TestASessionLendsItsBudget(t *testing.T) {
	b, gift := budgeted(t)
	_, sends := b.do(belay.SubmitWork{Thread: "thr_2", Task: "task_2", Turn: "turn_2", Rules: rules})
	if got := sends[len(sends)-1].Command.(belay.CreateTask).Budget; got.ID != "" || got.Amount != (belay.Amounts{}) || got.Limit != dollars(2) {
		t.Errorf("the second thread gets %+v", got)
	}
	ask := belay.AskGrants{Thread: "thr_2", Budget: &belay.BudgetAsk{ID: "a", Least: dollars(1), Most: dollars(5)}}
	b.do(ask)
	if facts, _ := b.do(ask); facts != nil {
		t.Errorf("asked again: %v", facts)
	}
	answers := func() (out []belay.Command) {
		for rd := b.d.Next(time.Time{}); len(rd.Decided) > 0; rd = b.d.Next(time.Time{}) {
			for _, f := range rd.Decided {
				b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
			}
			for _, s := range rd.Sends {
				out = append(out, s.Command)
			}
		}
		return out
	}
	want := func(what string, commands ...belay.Command) {
		t.Helper()
		if d := cmp.Diff(commands, answers(), values); d != "" {
			t.Fatalf("%s (-want +got):\n%s", what, d)
		}
	}
	want("the first is asked for what it doesn't need", belay.RecallGrants{})
	want("once")
	b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{gift.ID}, ID: gift.ID, Spent: dollars(1), Back: belay.Amounts{MicroUSD: 900_000}, Kept: belay.Amounts{MicroUSD: 100_000}}})
	want("it isn't enough, and the rest may come")
	b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{gift.ID}, Spent: belay.Amounts{MicroUSD: 100_000}}})
	want("nothing more can come", belay.GiveGrant{Budget: &belay.BudgetGrant{ID: "a", Limit: dollars(2), Refused: true, Left: belay.Amounts{MicroUSD: 900_000}}})
	b.do(belay.SetBudget{Budget: dollars(1), Raise: true})
	want("after a raise", belay.GiveGrant{Budget: &belay.BudgetGrant{ID: "a", Limit: dollars(3), Amount: belay.Amounts{MicroUSD: 1_900_000}}})
	if left := b.d.s.Budget.Left(); left != (belay.Amounts{}) || b.d.s.Settings.Budget != dollars(3) {
		t.Errorf("%+v are left of %+v", left, b.d.s.Settings.Budget)
	}
}

// What others hold is worth waiting for only if it is enough.
// Guarantee: E17.
func TestTooMuchIsRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		least int64
		fact  string
	}{{2, event.LimitRecalled}, {3, event.LimitRefused}} {
		b, _ := budgeted(t)
		b.do(belay.SubmitWork{Thread: "thr_2", Task: "task_2", Turn: "turn_2", Rules: rules})
		b.do(belay.AskGrants{Thread: "thr_2", Budget: &belay.BudgetAsk{ID: "a", Least: dollars(c.least), Most: dollars(5)}})
		rd := b.d.Next(time.Time{})
		if last := rd.Decided[len(rd.Decided)-1].Data.(event.LimitChanged); last.Op != c.fact {
			t.Errorf("a request for %d of 2 dollars that another thread holds: %+v", c.least, last)
		}
	}
}

// Who waits is served by the age of its thread. What those have that wait behind it lies
// there: the last one gives it back, before anything is refused. Those that wait for others,
// and those that come first, keep what they have.
// Guarantee: E17.
func TestWhoWaitsIsServedInOrder(t *testing.T) {
	b := newBench(t)
	b.do(belay.CreateSession{Workspace: "/ws", Settings: belay.Settings{Budget: dollars(10)}})
	cents := func(n int64) belay.Amounts { return belay.Amounts{MicroUSD: n * 10_000} }
	told := func() (out []string) {
		t.Helper()
		for range 100 {
			rd := b.d.Next(time.Time{})
			if len(rd.Decided) == 0 {
				return out
			}
			for _, f := range rd.Decided {
				b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
				p := f.Data.(event.LimitChanged)
				said := strings.TrimSpace(fmt.Sprint(p.Op, " ", p.Thread, " ", p.Amount))
				if p.Waits {
					said += ": all"
				}
				out = append(out, said)
			}
		}
		t.Fatal("it decides without end")
		return nil
	}
	ask := func(n int, id string, least belay.Amounts) {
		b.do(belay.AskGrants{Thread: belay.ThreadID(fmt.Sprint("thr_", n)), Budget: &belay.BudgetAsk{ID: id, Least: least, Most: least}})
	}
	want := func(what string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, told()); d != "" {
			t.Fatalf("%s (-want +got):\n%s", what, d)
		}
	}
	for n := range 5 {
		_, sends := b.do(belay.SubmitWork{Thread: belay.ThreadID(fmt.Sprint("thr_", n)), Task: belay.TaskID(fmt.Sprint("task_", n)), Turn: belay.TurnID(fmt.Sprint("turn_", n)), Rules: rules})
		if gift := sends[len(sends)-1].Command.(belay.CreateTask).Budget; gift.ID != "" {
			b.do(belay.ReturnGrant{Thread: "thr_0", Budget: &belay.BudgetReturn{Closed: []string{gift.ID}}})
		}
		ask(n, "a", dollars(2))
	}
	want("there is enough", "granted thr_0 2usd", "granted thr_1 2usd", "granted thr_2 2usd", "granted thr_3 2usd", "granted thr_4 2usd")
	ask(3, "b", cents(50))
	want("the others work, and may bring it", "recalled thr_0", "recalled thr_1", "recalled thr_2", "recalled thr_4")
	b.do(belay.ReturnGrant{Thread: "thr_0", Budget: &belay.BudgetReturn{Closed: []string{"a"}, ID: "a", Spent: cents(100), Kept: cents(100), Waits: true}})
	ask(4, "b", cents(50))
	ask(2, "b", cents(150))
	want("the last one that waits gives what it has", "recalled thr_4: all")
	b.do(belay.ReturnGrant{Thread: "thr_4", Budget: &belay.BudgetReturn{Closed: []string{"a", "b"}, ID: "a", Spent: cents(60), Back: cents(120), Kept: cents(20), Waits: true}})
	ask(4, "c", cents(170))
	want("and if that isn't enough, the one before it", "recalled thr_3: all")
	b.do(belay.ReturnGrant{Thread: "thr_3", Budget: &belay.BudgetReturn{Closed: []string{"a", "b"}, Spent: cents(100), Back: cents(100)}})
	ask(3, "c", cents(150))
	want("the first one is served, though it asked last; the next one waits for what it brings", "granted thr_2 1.50usd", "recalled thr_2")
	ask(1, "b", cents(500))
	want("that can't come together, and the next one still waits", "refused thr_1")
	b.do(belay.ReturnGrant{Thread: "thr_2", Budget: &belay.BudgetReturn{Closed: []string{"a", "b"}, Spent: cents(200), Back: cents(150)}})
	want("what comes goes to it", "granted thr_3 1.50usd", "recalled thr_3")
}

// A lower limit recalls what was given, and one below what is spent is refused.
// Guarantee: E17.
func TestALimitIsChanged(t *testing.T) {
	b, gift := budgeted(t)
	b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{gift.ID}, ID: gift.ID, Spent: dollars(1), Kept: dollars(1)}})
	if _, _, err := b.try(belay.SetBudget{Budget: belay.Amounts{MicroUSD: 900_000}}); err == nil || belay.CodeOf(err) != belay.CodeBadCommand || !strings.Contains(err.Error(), "cost") {
		t.Errorf("below what is spent: %v", err)
	}
	b.do(belay.SetBudget{Budget: belay.Amounts{MicroUSD: 1_500_000}})
	rd := b.d.Next(time.Time{})
	if len(rd.Sends) != 1 || rd.Sends[0].To != "thread/thr_1" || !cmp.Equal(rd.Sends[0].Command, belay.Command(belay.RecallGrants{}), values) {
		t.Errorf("a lower limit sends %+v", rd.Sends)
	}
	if facts, sends := b.do(belay.SetBudget{Budget: belay.Amounts{MicroUSD: 1_500_000}}); facts != nil || sends != nil {
		t.Errorf("the same again gives %v", facts)
	}
	// Of a session without a budget what it has spent before is part of the first one.
	free := newBench(t)
	free.create()
	free.do(belay.SetBudget{Budget: dollars(5), Spent: belay.Amounts{MicroUSD: 3_000_000, Tokens: 7}})
	if left := free.d.s.Budget.Left(); left != dollars(2) {
		t.Errorf("%+v are left", left)
	}
}

// A raise is answered also where it is too small, and where quotas have the rest; what
// was spent before there were quotas isn't told to them.
// Guarantee: E17, E71.
func TestARaiseIsAnswered(t *testing.T) {
	b, gift := budgeted(t)
	b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{gift.ID}, Spent: dollars(2)}})
	tenth := []belay.Quota{{Of: "tenant", Kind: belay.BudgetCost, Limit: 10_000_000, Per: "day"}}
	b.do(belay.SubmitWork{Thread: "thr_1", Task: "task_2", Turn: "turn_2", Rules: rules, Quotas: tenth})
	b.do(belay.AskGrants{Thread: "thr_1", Budget: &belay.BudgetAsk{ID: "a", Least: dollars(1), Most: dollars(5)}})
	fold := func(facts ...core.Fact) {
		for _, f := range facts {
			b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
		}
	}
	refused := func(left belay.Amounts) {
		t.Helper()
		rd := b.d.Next(time.Time{})
		want := []core.Send{{To: "thread/thr_1", Command: belay.GiveGrant{Budget: &belay.BudgetGrant{ID: "a", Limit: b.d.s.Budget.Limit, Refused: true, Left: left}}}}
		if d := cmp.Diff(want, rd.Sends, values); d != "" || len(rd.Effects) > 0 {
			t.Fatalf("effects %v, sends (-want +got):\n%s", rd.Effects, d)
		}
		fold(rd.Decided...)
		if rd = b.d.Next(time.Time{}); len(rd.Sends)+len(rd.Effects) > 0 {
			t.Fatalf("refused again: %+v", rd)
		}
	}
	refused(belay.Amounts{})
	b.do(belay.SetBudget{Budget: belay.Amounts{MicroUSD: 1}, Raise: true})
	refused(belay.Amounts{})
	b.do(belay.SetBudget{Budget: dollars(2), Raise: true})
	fold(b.d.Next(time.Time{}).Decided...)
	rd := b.d.Next(time.Time{})
	if len(rd.Effects) != 1 || len(rd.Sends) > 0 {
		t.Fatalf("after a raise that is enough: %+v", rd)
	}
	ask := rd.Effects[0].(core.AskQuota)
	if ask.ID != "a" || ask.Least != dollars(1) {
		t.Errorf("the quotas are asked %+v", ask)
	}
	fold(core.Fact{IDs: ask.IDs, Data: event.LimitChanged{Op: event.LimitGranted, Scope: "quota", GrantID: "a", Amount: dollars(1)}})
	rd = b.d.Next(time.Time{})
	if len(rd.Sends) != 1 || len(rd.Effects) > 0 || rd.Sends[0].Command.(belay.GiveGrant).Budget.Amount != dollars(1) {
		t.Errorf("with a slice: %+v", rd)
	}
	fold(rd.Decided...)
	b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{"a"}, Spent: dollars(1)}})
	fold(b.d.Next(time.Time{}).Decided...)
	rd = b.d.Next(time.Time{})
	if len(rd.Effects) != 1 || rd.Effects[0].(core.ReturnQuota).Return.Spent != dollars(1) {
		t.Errorf("the quotas are told %+v", rd.Effects)
	}
}

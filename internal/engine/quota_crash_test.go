package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/core/quota"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// TestQuotasGetBackWhatACrashAndAnInterruptLeave: the process dies at each point, and the
// turn is interrupted before the next one goes on. What the quotas had lent, and the
// session hadn't heard of, comes back all the same.
// Guarantee: E71.
func TestQuotasGetBackWhatACrashAndAnInterruptLeave(t *testing.T) {
	cancelled := 0
	points := crashAndTell(t, theQuota, nil, func(belay.Ref) belay.Order {
		return belay.Order{ID: "cmd_stop", Stream: thr.Stream(), Command: belay.InterruptTurn{}}
	}, func(s *thread.State, _ []event.Envelope) {
		if s.Prev.Outcome == belay.Cancelled {
			cancelled++
		}
	})
	if points < 50 || cancelled < points/2 {
		t.Errorf("%d turns were cancelled at %d points", cancelled, points)
	}
}

// TestAQuotaThatWarnsCountsAcrossCrashes: nothing limits the tokens, and nobody asks for any. The
// process dies at each point, and the turn is interrupted: the quota counts each token once.
// Guarantee: E71.
func TestAQuotaThatWarnsCountsAcrossCrashes(t *testing.T) {
	warns := belay.Quota{Of: "tenant", Kind: belay.BudgetTokens, Limit: 100, Per: "month", Warn: true}
	counted, low := 0, 0
	points := crashAndTell(t, warns, nil, func(belay.Ref) belay.Order {
		return belay.Order{ID: "cmd_stop", Stream: thr.Stream(), Command: belay.InterruptTurn{}}
	}, func(_ *thread.State, facts []event.Envelope) {
		for _, e := range facts {
			switch p := e.Data.(type) {
			case event.LimitChanged:
				if e.Stream == quota.Stream && p.Op == event.LimitReturned && p.Spent.Tokens > 0 {
					counted++
				}
			case event.QuotaLow:
				low++
			}
		}
	})
	if points < 20 || counted < points/2 || low < points/2 {
		t.Errorf("of %d points tokens are counted at %d, and %d times the quota is said to be low", points, counted, low)
	}
}

// TestQuotasCountWhatFollowsACrash: the process dies at each point, and the next one finds new
// work. All that both turns spend is counted, also if the quotas had back what the session
// hadn't heard of.
// Guarantee: E71.
func TestQuotasCountWhatFollowsACrash(t *testing.T) {
	const usage = ", usage: {input: 3000, output: 40}}"
	two, err := scripted.Parse("two turns", []byte("steps:"+strings.Repeat(`
  - {calls: [{tool: read, args: {path: notes/a.txt}}]`+usage+`
  - {calls: [{tool: complete_task, args: {summary: done}}]`+usage, 2)))
	if err != nil {
		t.Fatal(err)
	}
	points := crashAndTell(t, theQuota, two, func(rules belay.Ref) belay.Order {
		return belay.Order{ID: "cmd_more", Stream: sess.Stream(), Command: belay.SubmitWork{Thread: thr, Task: "task_2", Turn: "turn_2", Text: belay.Content{Text: "go on"}, Rules: rules,
			Quotas: []belay.Quota{theQuota}}}
	}, func(_ *thread.State, facts []event.Envelope) {
		done := map[belay.TurnID]bool{} // two tasks that nobody had begun may begin in any order
		for _, e := range facts {
			if _, ok := e.Data.(event.TurnCompleted); ok {
				done[e.IDs.Turn] = true
			}
		}
		if !done["turn_1"] || !done["turn_2"] {
			t.Errorf("of both turns these are done: %v", done)
		}
	})
	if points < 30 {
		t.Errorf("only %d points", points)
	}
}

// crashAndTell has the process die at each point, and leaves an order to the next one. The books
// balance in the end.
func crashAndTell(t *testing.T, q belay.Quota, script *scripted.Script, order func(rules belay.Ref) belay.Order, rests func(*thread.State, []event.Envelope)) (points int) {
	for hit := true; hit; points++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.quota = q
			if script != nil {
				m.script = script
			}
			var rules belay.Ref
			m.also = func(_ *process, ref belay.Ref) []belay.Command {
				rules = ref
				return nil
			}
			m.accept()
			first := true
			_, hit = m.through([]int{points + 1}, func(p *process) error {
				if !first {
					o := order(rules)
					o.Principal, o.Time, o.Session = "user:bob", time.Now(), sess
					if err := p.h.Enqueue(p.ctx, o); err != nil {
						return err
					}
				}
				first = false
				return p.live()
			})
			h := m.data.Open(memory.Options{})
			defer h.Close()
			var facts []event.Envelope
			for r, err := range h.Scan(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				facts = append(facts, r.Event)
			}
			coretest.Books(t, points+1, facts)
			s, err := loadThread(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			if hit {
				rests(s, facts)
			}
		})
	}
	return points
}

// TestASessionWaitsForAQuotaOnlyWhileItNeedsIt: others have all of it. The session asks
// again and again and records that seldom, and rests as soon as its turn is interrupted.
// Guarantee: E71.
func TestASessionWaitsForAQuotaOnlyWhileItNeedsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		defer m.discard()
		m.accept()
		p := m.boot(0)
		defer p.off()
		all := belay.Amounts{MicroUSD: 5_000_000}
		other := belay.AskQuota{Session: "sess_other", ID: "x", Least: all, Most: all, Windows: []belay.QuotaWindow{quota.Current(theQuota, time.Now())}}
		if _, _, err := p.e.Decide(p.ctx, belay.Order{ID: "cmd_other", Principal: "user:eve", Session: belay.SystemSession, Stream: quota.Stream, Command: other}); err != nil {
			t.Fatal(err)
		}
		rests := make(chan error)
		go func() { rests <- p.live() }()
		time.Sleep(time.Minute)
		q := m.boot(0)
		defer q.off()
		if _, err := q.e.Submit(q.ctx, belay.Order{ID: "cmd_stop", Principal: "user:bob", Session: sess, Stream: thr.Stream(), Command: belay.InterruptTurn{}}); err != nil {
			t.Fatal(err)
		}
		stopped := time.Now()
		if err := <-rests; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(stopped); took > time.Second {
			t.Errorf("it rests %s after the interrupt", took)
		}
		ops := map[string]int{}
		for e, err := range p.h.Read(t.Context(), sess.Stream(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if f, ok := e.Data.(event.LimitChanged); ok && f.Scope == "quota" {
				ops[f.Op]++
			}
		}
		if ops[event.LimitAsked] != ops[event.LimitRefused] || ops[event.LimitAsked] < 2 || ops[event.LimitAsked] > 5 || ops[event.LimitGranted] > 0 {
			t.Errorf("in a minute it records %v", ops)
		}
	})
}

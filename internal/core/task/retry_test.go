package task

import (
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// A task is tried again by itself as often, after such outcomes and as late as its policy
// says; a person's wish to end it ends the wait.
func TestATaskIsTriedAgainByItself(t *testing.T) {
	begin := func(t *testing.T, r belay.Retry) *bench {
		b := newBench(t)
		b.do(belay.CreateTask{Objective: belay.Content{Text: "fix it"}, Plan: &belay.TaskPlan{Retry: r}})
		b.do(belay.StartTask{Thread: "thr_1", Turn: "turn_1", Rules: rules, Reason: "order"})
		b.do(belay.StartTask{})
		return b
	}
	end := func(b *bench, o belay.Outcome) {
		b.do(belay.EndAttempt{Run: b.run(), Turn: b.d.s.Attempts[len(b.d.s.Attempts)-1].Turn, AttemptEnd: belay.AttemptEnd{Outcome: o, Reason: "because"}})
	}
	// next lets it go on at a time after the last end, and returns the turn that it sends.
	next := func(b *bench, after time.Duration) *belay.SubmitTurn {
		rd := b.d.Next(time.Time{}.Add(after))
		for _, f := range rd.Decided {
			b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
		}
		if len(rd.Sends) == 0 {
			return nil
		}
		turn := rd.Sends[0].Command.(belay.SubmitTurn)
		return &turn
	}
	t.Run("max and backoff", func(t *testing.T) {
		b := begin(t, belay.Retry{Max: 2, Backoff: belay.Duration(time.Minute)})
		for i, wait := range []time.Duration{time.Minute, 2 * time.Minute} {
			end(b, belay.Failed)
			if b.d.s.Status != "retrying" || next(b, wait-1) != nil {
				t.Fatalf("%d: it is %s, and began too soon", i, b.d.s.Status)
			}
			if rd := b.d.Next(time.Time{}.Add(wait - 1)); len(rd.Effects) != 1 || rd.Wake.IsZero() {
				t.Fatalf("%d: it doesn't wait: %+v", i, rd)
			}
			if turn := next(b, wait); turn == nil || turn.Text.Text != "fix it" || turn.Rules != rules || b.d.s.Count != i+2 {
				t.Fatalf("%d: it sends %+v", i, turn)
			}
		}
		end(b, belay.Failed)
		if b.d.s.Status != "failed" || next(b, time.Hour) != nil {
			t.Errorf("after all of them it is %s", b.d.s.Status)
		}
	})
	t.Run("other agents come after it, each once, and one report is left", func(t *testing.T) {
		other := belay.Ref{Digest: "sha256:other", Size: 1}
		b := begin(t, belay.Retry{Max: 1, Fallback: []belay.Substitute{{Agent: "second", Rules: other}, {Agent: "third", Rules: other}}})
		for i, of := range []belay.Ref{rules, other, other} {
			b.do(belay.EndAttempt{Run: b.run(), AttemptEnd: belay.AttemptEnd{Outcome: belay.Failed, Reason: "because", Cause: "CHECKS_FAILED", Agent: "first@1.0.0"}})
			if turn := next(b, 0); turn == nil || turn.Rules != of || b.d.s.Report != nil {
				t.Fatalf("%d: it sends %+v", i, turn)
			}
		}
		b.do(belay.EndAttempt{Run: b.run(), AttemptEnd: belay.AttemptEnd{Outcome: belay.TimedOut, Reason: "late", Cause: "TIME_LIMIT", Agent: "third"}})
		r := b.d.s.Report
		if next(b, time.Hour) != nil || b.d.s.Status != "timed_out" || r == nil || len(r.Tried) != 4 || r.Agent != "third" || r.Class != failedLimit || r.Tried[0].Code != "CHECKS_FAILED" || r.Tried[3].Outcome != belay.TimedOut || r.Next == "" {
			t.Errorf("it is %s, and leaves %+v", b.d.s.Status, r)
		}
	})
	t.Run("on", func(t *testing.T) {
		b := begin(t, belay.Retry{Max: 2, On: []belay.Outcome{belay.Lost}})
		end(b, belay.Lost)
		if next(b, 0) == nil {
			t.Error("it isn't tried again")
		}
		end(b, belay.Failed)
		if b.d.s.Status != "failed" {
			t.Errorf("it is %s", b.d.s.Status)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		b := begin(t, belay.Retry{Max: 2, Backoff: belay.Duration(time.Minute)})
		end(b, belay.Failed)
		b.do(belay.CancelTask{Reason: "enough"})
		if b.d.s.Status != "cancelled" || next(b, time.Hour) != nil {
			t.Errorf("it is %s", b.d.s.Status)
		}
	})
}

package engine_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

// second is another process on the same store.
func (b *bench) second(id string, change ...func(*config)) (*system, *memory.Store) {
	h := b.h.Data().Open(memory.Options{})
	set, _ := tool.NewSet()
	c := config{Store: h, Owner: store.Owner{ID: id, Host: "test", PID: 2}, Tools: set}
	for _, f := range change {
		f(&c)
	}
	e, err := newEngine(c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { h.Close() })
	return e, h
}

func order(id string, c belay.Command) belay.Order {
	return belay.Order{ID: belay.CommandID(id), Principal: "user:bob", Session: sess, Stream: thr.Stream(), Command: c}
}

func askingBench(t *testing.T, ran *int) *bench {
	run := fn{tool.Spec{Name: "run", Doc: "r", Input: noArgs, Effect: belay.AtMostOnce, Access: belay.Write}, func(context.Context, tool.Call) (tool.Result, error) {
		*ran++
		return tool.Result{Text: "ok"}, nil
	}}
	b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: run, args: {}}]\n"+done, func(s *belay.Settings) { s.Approvals = belay.ApprovalsWait }, run)
	b.dropGrants()
	return b
}

// Guarantee: S8.
func TestAnAnswerFromAProcessThatDrivesNothingStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b := askingBench(t, &ran)
		b.run()
		act := find[event.RunStatus](b.log())[0].WaitingFor
		e, _ := b.second("proc-2")
		answer := belay.RespondAction{Action: belay.ActionID(act), Decision: "allow"}
		a, err := e.Submit(t.Context(), order("cmd_yes", answer))
		if err != nil || len(a.Events) != 2 || ran != 0 {
			t.Fatalf("%d facts, ran %d times, %v", len(a.Events), ran, err)
		}
		if n := len(find[event.ToolStarted](b.log())); n != 0 {
			t.Error("the answer started the call though nobody drives")
		}
		if rows, _ := b.h.Lanes(t.Context(), sess); len(rows) != 1 || !rows[0].Runnable {
			t.Errorf("the lane is %+v: the work that the answer allowed must be found", rows)
		}
		// The same command again changes nothing; another answer comes too late.
		if _, err := e.Submit(t.Context(), order("cmd_yes", answer)); err != nil {
			t.Errorf("repeated: %v", err)
		}
		_, err = e.Submit(t.Context(), order("cmd_no", belay.RespondAction{Action: belay.ActionID(act), Decision: "deny"}))
		if belay.CodeOf(err) != belay.CodeAlreadyAnswered {
			t.Errorf("second answer: %v", err)
		}
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
		if ran != 1 || len(find[event.TurnCompleted](b.log())) != 1 {
			t.Errorf("ran %d times", ran)
		}
	})
}

func TestAnInterruptWithoutADriverEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b := askingBench(t, &ran)
		b.run()
		e, h := b.second("proc-2")
		if _, err := e.Submit(t.Context(), order("cmd_stop", belay.InterruptTurn{})); err != nil {
			t.Fatal(err)
		}
		end := find[event.TurnFailed](b.log())
		if len(end) != 1 || end[0].Outcome != belay.Cancelled {
			t.Fatalf("ended %+v", end)
		}
		d, _, _, err := engine.Load(t.Context(), h, theJob.Stream())
		if raw, _ := d.Save(); err != nil || !strings.Contains(string(raw), `"status":"cancelled"`) {
			t.Errorf("the task: %s %v", raw, err)
		}
		if rows, _ := h.Lanes(t.Context(), ""); len(rows) != 0 {
			t.Errorf("lanes %+v", rows)
		}
		if o, err := h.OwnerOf(t.Context(), sess); o != nil || err != nil {
			t.Errorf("the session is still owned by %+v %v", o, err)
		}
	})
}

// A call that an interrupt stops is still in flight until its end is recorded. If
// the process dies between the two, who looks for work must find the stream.
// Guarantee: O17.
func TestALaneIsRunnableUntilAllIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		slow := pure("slow", func(context.Context, tool.Call) (tool.Result, error) {
			<-ended
			return tool.Result{}, context.Canceled
		})
		b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: slow, args: {}}]\n"+done, nil, slow)
		b.submit(1, "go")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.e.Session(t.Context(), sess, nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if _, err := b.e.Submit(t.Context(), order("cmd_stop", belay.InterruptTurn{})); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		rows, err := b.h.Lanes(t.Context(), sess)
		if err != nil || len(rows) != 1 || rows[0].Stream != thr.Stream() || !rows[0].Runnable {
			t.Errorf("while the call stops the lanes are %+v %v", rows, err)
		}
		id, facts := theSession(t, b.h)
		get := func(d belay.Digest) ([]byte, error) { return b.h.Get(t.Context(), d) }
		if folded, err := engine.Fold(id, each(facts), get, time.Now().UTC()); err != nil || !folded[thr.Stream()].Lane.Runnable {
			t.Errorf("folding gives the lane %+v %v", folded[thr.Stream()].Lane, err)
		}
		close(ended)
		wg.Wait()
		if end := find[event.TurnFailed](b.log()); len(end) != 1 || end[0].Outcome != belay.Cancelled {
			t.Errorf("ended %+v", end)
		}
		if rows, err := b.h.Lanes(t.Context(), ""); err != nil || len(rows) != 0 {
			t.Errorf("at rest the lanes are %+v %v", rows, err)
		}
	})
}

// Guarantee: G9.
func TestACommandForALiveOwnerGoesThroughItsInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b := askingBench(t, &ran)
		b.submit(1, "go")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.e.Session(t.Context(), sess, func(rows []store.LaneRow) bool { return len(rows) > 0 }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		act := find[event.RunStatus](b.log())[0].WaitingFor
		e, _ := b.second("proc-2")
		begun := time.Now()
		a, err := e.Submit(t.Context(), order("cmd_yes", belay.RespondAction{Action: belay.ActionID(act), Decision: "allow"}))
		if err != nil || a.Pending || len(a.Events) == 0 {
			t.Errorf("answer %+v %v", a, err)
		}
		if d := time.Since(begun); d > 200*time.Millisecond {
			t.Errorf("the owner acted after %s", d)
		}
		wg.Wait()
		if err := e.Session(t.Context(), sess, nil); err != nil || ran != 1 {
			t.Errorf("ran %d times, %v", ran, err)
		}
	})
}

// Guarantee: X6.
func TestASessionOfALiveProcessIsRefusedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b := askingBench(t, &ran)
		b.submit(1, "go")
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = b.e.Session(ctx, sess, func([]store.LaneRow) bool { return true })
		})
		synctest.Wait()
		e, _ := b.second("proc-2")
		err := e.Session(t.Context(), sess, nil)
		if o, ok := errors.AsType[*store.OwnedError](err); !ok || o.Owner.PID != 1 || o.Owner.Host != "test" {
			t.Errorf("got %v", err)
		}
		leave()
		wg.Wait()
	})
}

// A clock that is set back must not take facts with it.
func TestTimeInAStreamNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		look := pure("look", func(context.Context, tool.Call) (tool.Result, error) {
			jump.Store(int64(-48 * time.Hour))
			return tool.Result{Text: "x"}, nil
		})
		b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: look, args: {}}]\n"+done, nil, look)
		b.clock(func() time.Time { return time.Now().Add(time.Duration(jump.Load())) })
		last := time.Time{}
		for _, e := range b.run() {
			if e.Time.Before(last) {
				t.Errorf("%s at %s comes after %s", e.Type(), e.Time, last)
			}
			last = e.Time
		}
		if len(find[event.TurnCompleted](b.log())) != 1 {
			t.Error("the turn did not complete")
		}
	})
}

// crossing is a store whose owner acts just when somebody has looked for its answer.
type crossing struct {
	store.Store
	acts func()
}

func (c *crossing) Claim(_ context.Context, session belay.SessionID, _ store.Owner, _ time.Duration) (int64, error) {
	return 0, &store.OwnedError{Session: session}
}

func (c *crossing) Window(ctx context.Context, w store.Window) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range c.Store.Window(ctx, w) {
			if !yield(r, err) {
				return
			}
		}
		if acts := c.acts; acts != nil {
			c.acts = nil
			acts()
		}
	}
}

// A refusal that is recorded after the facts were read, and before the inbox is
// looked at, isn't taken for a success.
// Guarantee: G9.
func TestARefusalThatCrossesTheQuestionIsToldAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b := askingBench(t, &ran)
		b.run()
		act := find[event.RunStatus](b.log())[0].WaitingFor
		owner, h := b.second("proc-2")
		if _, err := owner.Submit(t.Context(), order("cmd_yes", belay.RespondAction{Action: belay.ActionID(act), Decision: "allow"})); err != nil {
			t.Fatal(err)
		}
		set, _ := tool.NewSet()
		e, err := newEngine(config{Store: &crossing{h, func() {
			if err := owner.Settle(t.Context(), sess); err != nil {
				t.Error(err)
			}
		}}, Owner: store.Owner{ID: "proc-3", Host: "test", PID: 3}, Tools: set})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Submit(t.Context(), order("cmd_no", belay.RespondAction{Action: belay.ActionID(act), Decision: "deny"}))
		if belay.CodeOf(err) != belay.CodeAlreadyAnswered {
			t.Errorf("got %v", err)
		}
	})
}

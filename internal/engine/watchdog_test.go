package engine_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/tool"
)

// deaf is a tool that ends when it is let, whatever anybody says.
func deaf(let chan struct{}, late *atomic.Int64, effect belay.EffectClass) tool.Tool {
	return fn{tool.Spec{Name: "deaf", Doc: "d", Input: noArgs, Effect: effect, Timeout: belay.Duration(time.Second)}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		<-let
		c.Sink.Fact(event.ToolProgress{Text: "too late"})
		if c.Sink.Durable(event.ToolProgress{Text: "too late"}) != nil {
			late.Add(1)
		}
		return tool.Result{Text: "too late"}, nil
	}}
}

const callsDeaf = "steps:\n  - calls:\n      - {tool: deaf, args: {}}\n  - calls:\n      - {tool: complete_task, args: {summary: Done without it.}}\n"

// TestAStuckEffectIsGivenUp: a tool that ignores that its time is up costs its
// thread a minute more and no longer. It ends typed, the thread continues, and what
// it says later nobody hears.
// Guarantee: V24.
func TestAStuckEffectIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let, late := make(chan struct{}), &atomic.Int64{}
		b := newBench(t, callsDeaf, nil, deaf(let, late, belay.Pure))
		begun := time.Now()
		log := b.run()
		if took := time.Since(begun); took > time.Second+engine.DefaultStall || took < engine.DefaultStall {
			t.Errorf("the thread went on after %s", took)
		}
		ends, warned := find[event.TurnCompleted](log), find[event.RuntimeWarning](log)
		failed := find[event.ToolFailed](log)
		if len(ends) != 1 || len(warned) != 1 || warned[0].Code != effect.CodeStuck {
			t.Errorf("ends %+v, warnings %+v", ends, warned)
		}
		if len(failed) != 1 || failed[0].Problem.Code != effect.CodeStuck || failed[0].Problem.Class != tool.Lost || !failed[0].Final {
			t.Errorf("the call ended as %+v", failed)
		}
		if n := b.e.Stuck(); n != 1 {
			t.Errorf("%d effects were given up", n)
		}
		close(let)
		synctest.Wait()
		if late.Load() != 1 || len(b.log()) != len(log) {
			t.Errorf("who was given up was told so %d times, and the log grew from %d to %d facts", late.Load(), len(log), len(b.log()))
		}
	})
}

// slow is a provider that thinks a while before each answer but the first.
type slow struct {
	model.Provider
	asked *atomic.Int64
}

func (m slow) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	if m.asked.Add(1) > 1 {
		time.Sleep(20 * time.Second)
	}
	return m.Provider.Stream(ctx, r)
}

// TestALateReportIsntHeard: a tool returns after it was given up, while its thread waits
// for the model. Whichever the drive sees first, it takes nothing of it.
// Guarantee: V24.
func TestALateReportIsntHeard(t *testing.T) {
	for range 8 {
		synctest.Test(t, func(t *testing.T) {
			let, late := make(chan struct{}), &atomic.Int64{}
			b := newBench(t, callsDeaf, func(s *belay.Settings) { s.Limits.Time = 0 }, deaf(let, late, belay.Pure))
			asked := &atomic.Int64{}
			b.wrap = func(p model.Provider) model.Provider { return slow{p, asked} }
			time.AfterFunc(70*time.Second, func() { close(let) }) // it was given up after 61
			log := b.run()
			if len(find[event.TurnCompleted](log)) != 1 || len(find[event.ToolProgress](log)) != 0 || late.Load() != 1 || b.e.Stuck() != 1 {
				t.Errorf("ends %d, late facts %d, told so %d times, given up %d", len(find[event.TurnCompleted](log)), len(find[event.ToolProgress](log)), late.Load(), b.e.Stuck())
			}
		})
	}
}

// TestAStuckEffectDoesntKeepItsProcess: a drive that has to leave waits for a
// stuck effect half a minute; its outcome the next one decides.
// Guarantee: V24.
func TestAStuckEffectDoesntKeepItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let, late := make(chan struct{}), &atomic.Int64{}
		b := newBench(t, callsDeaf, nil, deaf(let, late, belay.AtMostOnce))
		b.submit(1, "go")
		ctx, cancel := context.WithCancelCause(t.Context())
		told := errors.New("the server ends")
		time.AfterFunc(100*time.Millisecond, func() { cancel(told) })
		begun := time.Now()
		if err := b.e.Session(ctx, sess, nil); !errors.Is(err, told) {
			t.Errorf("it left with %v", err)
		}
		if took := time.Since(begun); took > engine.DefaultStall {
			t.Errorf("it left after %s", took)
		}
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Error(err)
		}
		failed := find[event.ToolFailed](b.log())
		if len(failed) != 1 || failed[0].Problem.Class != tool.Lost || len(find[event.TurnCompleted](b.log())) != 1 {
			t.Errorf("the call ended as %+v", failed)
		}
		close(let)
		synctest.Wait()
	})
}

// silent is a provider whose first answer never comes and never ends.
type silent struct {
	model.Provider
	let   chan struct{}
	asked *atomic.Int64
}

func (m silent) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	if m.asked.Add(1) > 1 {
		return m.Provider.Stream(ctx, r)
	}
	return func(func(model.Chunk, error) bool) { <-m.let }
}

// TestAStuckRequestIsAskedAgain: a provider that neither answers nor ends is
// given up, and the request is made again.
// Guarantee: V24.
func TestAStuckRequestIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let, asked := make(chan struct{}), &atomic.Int64{}
		b := newBench(t, "steps:\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n", func(s *belay.Settings) { s.Limits.Time = 0 })
		b.wrap = func(p model.Provider) model.Provider { return silent{p, let, asked} }
		log := b.run()
		failed := find[event.ModelFailed](log)
		if len(failed) != 1 || failed[0].Problem.Code != effect.CodeStuck || len(find[event.TurnCompleted](log)) != 1 {
			t.Errorf("the request ended as %+v, the turn as %+v", failed, find[event.TurnFailed](log))
		}
		close(let)
		synctest.Wait()
	})
}

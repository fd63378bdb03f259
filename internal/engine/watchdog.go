package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// DefaultStall is how long, after its own time is up, an effect may hold its
// thread.
const DefaultStall = time.Minute

// How long effects may be silent that have no time of their own. A request's is
// what the gateway gives it in all; text that comes is a sign of life.
const (
	modelSilence   = 30 * time.Minute
	checkerSilence = 5 * time.Minute
)

// flight is a running effect. A tool, a provider or a checker that doesn't end
// when its time is up holds its thread, the session's lane and a place of the
// server. So it is cancelled, and then given up: its thread continues with a
// typed end, and what it returns after that is ignored.
type flight struct {
	eff    core.Effect
	cancel context.CancelFunc
	limit  time.Duration // how long it may be silent; 0: as long as it likes
	sign   atomic.Int64  // when it gave a sign of life last
	told   time.Time     // when it was cancelled
	gone   chan struct{} // closed when it is given up
	ended  func()        // once: the drive waits for it no more
}

func (v *drive) newFlight(eff core.Effect, cancel context.CancelFunc) *flight {
	f := &flight{eff: eff, cancel: cancel, limit: v.effectTimeout(eff), gone: make(chan struct{}), ended: sync.OnceFunc(v.wg.Done)}
	f.alive(v.e.c.Now())
	return f
}

// effectTimeout is how long an effect may give no sign of life. The runtime's own work
// on this machine has no bound.
func (v *drive) effectTimeout(eff core.Effect) time.Duration {
	switch eff := eff.(type) {
	case core.RunTool:
		limit := tool.DefaultTimeout
		if d, ok := v.d.(*thread.Decider); ok && d.Rules() != nil {
			if own := time.Duration(specOf(d.Rules(), eff.Name).Timeout); own > 0 {
				limit = own
			}
		}
		return limit
	case core.CallModel:
		return modelSilence
	case core.CheckCall:
		return checkerSilence
	}
	return 0
}

func (f *flight) alive(now time.Time) { f.sign.Store(now.UnixNano()) }

// stop tells the effect to end.
func (f *flight) stop(now time.Time) {
	if f.told.IsZero() {
		f.told = now
	}
	f.cancel()
}

type flightKey struct{}

// flightOf is the flight that an effect's context belongs to; nil: none.
func flightOf(ctx context.Context) *flight {
	f, _ := ctx.Value(flightKey{}).(*flight)
	return f
}

// emit hands a fact of a running effect to the drive. It returns false when the
// effect was given up: its facts aren't taken any more.
func (v *drive) emit(ctx context.Context, m *effectFact) bool {
	f := flightOf(ctx)
	if f == nil {
		v.facts <- m
		return true
	}
	f.alive(v.e.c.Now())
	select {
	case v.facts <- m:
		return true
	case <-f.gone:
		return false
	}
}

// stallLimit is half of the time an effect gets after its deadline: it is cancelled
// after the first half, and given up after the second.
func (v *drive) stallLimit() time.Duration {
	if v.e.c.Stall > 0 {
		return v.e.c.Stall / 2
	}
	return DefaultStall / 2
}

// next is when the watchdog looks at a flight again; zero is never.
func (f *flight) next(half time.Duration) time.Time {
	switch {
	case f.limit == 0:
		return time.Time{}
	case !f.told.IsZero():
		return f.told.Add(half)
	}
	return time.Unix(0, f.sign.Load()).Add(f.limit + half)
}

// watchAt is when the watchdog has to look; zero is never.
func (v *drive) watchAt() (at time.Time) {
	for _, f := range v.flying {
		if next := f.next(v.stallLimit()); !next.IsZero() && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	return at
}

// watch cancels effects whose time is long up, and gives up those that were
// cancelled and didn't end.
func (v *drive) watch(b *batch) {
	now, half := v.e.c.Now(), v.stallLimit()
	for key, f := range v.flying {
		at := f.next(half)
		switch {
		case at.IsZero() || now.Before(at):
		case f.told.IsZero():
			f.stop(now)
		default:
			v.add(b, v.giveUp(key, f), nil, "")
		}
	}
}

// giveUp abandons an effect and returns its end, as far as that is known.
func (v *drive) giveUp(key string, f *flight) []core.Fact {
	close(f.gone)
	f.cancel()
	delete(v.flying, key)
	f.ended()
	v.e.stuck.Add(1)
	silent := v.e.c.Now().Sub(time.Unix(0, f.sign.Load())).Round(time.Second)
	warning := func(ids belay.IDs, what string) core.Fact {
		return core.Fact{IDs: ids, Data: event.RuntimeWarning{Code: CodeStuck, Message: fmt.Sprintf("%s gave no sign of life for %s and didn't end when it was cancelled; it was given up", what, silent)}}
	}
	switch eff := f.eff.(type) {
	case core.RunTool:
		p := event.Problem{Class: tool.Lost, Code: CodeStuck, Message: eff.Name + " didn't end when its time was up, and was given up; nobody knows whether it did its work (lost)",
			Hint: "look at what is there before you decide to run it again"}
		return []core.Fact{warning(eff.IDs, eff.Name), {IDs: eff.IDs, Data: event.ToolFailed{Name: eff.Name, Attempt: eff.Attempt, Final: true, Problem: p, Millis: silent.Milliseconds()}}}
	case core.CallModel:
		p := event.Problem{Class: "transient", Code: CodeStuck, Message: "the model gave no answer and the request could not be ended; it was given up", Retryable: true}
		return []core.Fact{warning(eff.IDs, "a request to "+eff.Provider), {IDs: eff.IDs, Data: event.ModelFailed{Attempt: eff.Attempt, Problem: p,
			RetryAt: thread.ModelRetryAt(v.now(), eff.Step, eff.Failures, 0)}}}
	case core.CheckCall:
		p := event.Problem{Class: "internal", Code: CodeStuck, Message: "the checker gave no answer and could not be ended"}
		return []core.Fact{warning(eff.IDs, "checker "+eff.Checker), {IDs: eff.IDs, Data: event.HookFailed{Hook: "checker/" + eff.Checker, Point: "permission_request", Problem: p, Fails: "closed"}}}
	}
	return nil
}

// CodeStuck is the code of what ended because it was given up.
const CodeStuck = "EFFECT_STUCK"

// Stuck counts the effects that were given up since the engine was made.
func (e *Engine) Stuck() int64 { return e.stuck.Load() }

package engine

import (
	"time"

	"github.com/belay-run/belay/internal/core"
)

// An effect that doesn't end when its time is up holds its thread, the session's lane and
// a place of the server: a tool, a provider, a git on a file system that doesn't answer.
// So it is cancelled, and then given up: its thread continues with a typed end, and what
// it returns after that is ignored.

// DefaultStall is how long, after its own time is up, an effect may hold its
// thread.
const DefaultStall = time.Minute

// stop tells the effect to end.
func (r *Run) stop(now time.Time) {
	if r.told.IsZero() {
		r.told, r.quiet = now, r.last()
	}
	r.cancel()
}

// stallLimit is half of the time an effect gets after its deadline: it is cancelled
// after the first half, and given up after the second.
func (v *drive) stallLimit() time.Duration {
	if v.e.c.Stall > 0 {
		return v.e.c.Stall / 2
	}
	return DefaultStall / 2
}

// next is when the watchdog looks at an effect again; zero is never.
func (r *Run) next(half time.Duration) time.Time {
	switch {
	case !r.told.IsZero():
		return r.told.Add(half)
	case r.limit == 0:
		return time.Time{}
	}
	return r.last().Add(r.limit + half)
}

// watchAt is when the watchdog has to look; zero is never.
func (v *drive) watchAt() (at time.Time) {
	for _, r := range v.running {
		if next := r.next(v.stallLimit()); !next.IsZero() && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	return at
}

// watch cancels effects whose time is long up, and gives up those that were
// cancelled and didn't end.
func (v *drive) watch(b *batch) {
	now, half := v.e.c.Now(), v.stallLimit()
	for _, r := range v.running {
		at := r.next(half)
		switch {
		case at.IsZero() || now.Before(at):
		case r.told.IsZero():
			r.late = true
			r.stop(now)
		default:
			v.add(b, v.giveUp(r), nil, "")
		}
	}
}

// giveUp abandons an effect and returns its end.
func (v *drive) giveUp(r *Run) []core.Fact {
	close(r.gone)
	r.cancel()
	delete(v.running, r.key)
	r.ended()
	v.e.stuck.Add(1)
	return v.end(r)
}

// end is how an effect ends that is given up, as far as that is known.
func (v *drive) end(r *Run) []core.Fact {
	return v.perf.GiveUp(r.eff, r.late, v.e.c.Now().Sub(r.quiet).Round(time.Second), v.now())
}

// Stuck counts the effects that were given up since the engine was made.
func (e *Engine) Stuck() int64 { return e.stuck.Load() }

package engine

import (
	"context"
	"time"

	"github.com/belay-run/belay/internal/core"
)

// reconcile starts what is wanted and not in flight, and cancels what is in
// flight and no longer wanted. It returns when to look again.
func (v *drive) reconcile(ctx context.Context, rd core.Ready) time.Time {
	wanted := map[string]bool{}
	waits := false
	for _, eff := range rd.Effects {
		if _, ok := eff.(core.Timer); ok {
			waits = true
			continue
		}
		key := eff.Key()
		wanted[key] = true
		r := v.running[key]
		if r == nil {
			v.start(ctx, key, eff)
		} else if was, ok := r.eff.(core.AskQuota); ok && was.Needed && !eff.(core.AskQuota).Needed {
			r.stop(v.e.c.Now()) // it needn't wait for others any more
		}
	}
	for key, r := range v.running {
		if !wanted[key] {
			r.stop(v.e.c.Now())
		}
	}
	if waits || len(v.running) > 0 {
		return rd.Wake
	}
	return time.Time{}
}

// start performs an effect in a goroutine of its own.
func (v *drive) start(ctx context.Context, key string, eff core.Effect) {
	mine, cancel := context.WithCancel(ctx)
	v.wg.Add(1)
	r := v.newRun(ctx, key, eff, cancel)
	v.running[key] = r
	go func() {
		defer r.ended()
		v.e.c.Point("effect/start")
		facts := v.perf.Perform(mine, r, eff)
		v.e.c.Point("effect/end")
		r.report(report{ended: true, facts: facts})
	}()
}

// startLeftover performs what has to be done before the stream is left. It reports
// whether there was something.
func (v *drive) startLeftover(ctx context.Context) bool {
	eff := v.perf.Leftover()
	if eff == nil {
		return false
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	v.start(gone, eff.Key(), eff)
	v.running[eff.Key()].stop(v.e.c.Now())
	return true
}

// updateIdle tells the session when only processes of the background keep the drive.
func (v *drive) updateIdle(rd core.Ready) {
	lone := len(rd.Effects) > 0
	for _, eff := range rd.Effects {
		if _, ok := eff.(core.KeepProcess); !ok {
			lone = false
		}
	}
	if lone != v.onlyBackground.Swap(lone) && lone {
		signal(v.own.mailbox.kick)
	}
}

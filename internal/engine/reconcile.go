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
		if v.flying[key] == nil {
			v.start(ctx, key, eff)
		}
	}
	for key, f := range v.flying {
		if !wanted[key] {
			f.stop(v.e.c.Now())
		}
	}
	if waits || len(v.flying) > 0 {
		return rd.Wake
	}
	return time.Time{}
}

// start performs an effect in a goroutine of its own.
func (v *drive) start(ctx context.Context, key string, eff core.Effect) {
	mine, cancel := context.WithCancel(ctx)
	v.wg.Add(1)
	f := v.newFlight(eff, cancel)
	v.flying[key] = f
	mine = context.WithValue(mine, flightKey{}, f)
	leaving := func() bool { return ctx.Err() != nil } // the whole process, not just this effect
	v.noteRules()
	go func() {
		defer f.ended()
		v.e.c.Point("effect/start")
		facts := v.perform(mine, eff, leaving)
		v.e.c.Point("effect/end")
		select {
		case v.landed <- effectResult{key, facts}:
		case <-f.gone:
		}
	}()
}

// perform makes one attempt of an effect and returns what came of it.
func (v *drive) perform(ctx context.Context, eff core.Effect, leaving func() bool) []core.Fact {
	switch eff := eff.(type) {
	case core.CallModel:
		return v.callModel(ctx, eff)
	case core.RunTool:
		return v.runTool(ctx, eff, leaving)
	case core.CheckCall:
		return v.checkCall(ctx, eff, leaving)
	case core.TakeSnapshot:
		return v.takeSnapshot(ctx, eff)
	case core.GoBack:
		return v.rollBackTurn(ctx, eff)
	case core.RestoreFiles:
		return v.restoreFiles(ctx, eff)
	case core.KeepProcess:
		return v.keepProcess(ctx, eff, leaving)
	case core.SendInput:
		return v.sendInput(eff)
	}
	panic("engine: no performer for " + eff.Key())
}

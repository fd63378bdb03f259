package effect

import (
	"context"
	"time"

	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/tool"
)

// work is what there is to know of an effect: how it is performed, how long it may give no
// sign of life, and how it ends when it is given up.
type work struct {
	perform func(context.Context) []core.Fact
	silence time.Duration             // 0: as long as it likes, until it is told to end
	lost    func(givenUp) []core.Fact // nil: nothing is recorded
	again   bool                      // when its process leaves nothing is recorded either: the next one does it again
}

// How long effects may be silent. A request's is what the gateway gives it in all; text
// that comes is a sign of life. Whole workspaces are read, kept and restored, and git is
// run, within diskSilence; localSilence is for what reads the store and a few files.
const (
	modelSilence   = 30 * time.Minute
	checkerSilence = 5 * time.Minute
	summarySilence = summariseTime + time.Minute
	diskSilence    = 10 * time.Minute
	localSilence   = 2 * time.Minute
)

// work is that of an effect.
func (v *performer) work(run *engine.Run, eff core.Effect) work {
	type facts = []core.Fact
	type c = context.Context
	type g = givenUp
	switch eff := eff.(type) {
	case core.CallModel:
		return work{func(ctx c) facts { return v.callModel(ctx, run, eff) }, modelSilence, func(g g) facts { return g.model(eff) }, false}
	case core.Compact:
		return work{func(ctx c) facts { return v.shorten(ctx, run, eff) }, summarySilence, func(g g) facts { return g.summary(eff) }, false}
	case core.RunTool:
		return work{func(ctx c) facts { return v.runTool(ctx, run, eff) }, toolTime(eff.Timeout), func(g g) facts { return g.tool(eff) }, false}
	case core.CheckCall:
		return work{func(ctx c) facts { return v.checkCall(ctx, run, eff) }, checkerSilence, func(g g) facts { return g.checker(eff) }, false}
	case core.PrepareChild:
		return work{func(ctx c) facts { return v.prepareChild(ctx, eff) }, diskSilence, func(g g) facts { return g.child(eff) }, true}
	case core.Verify:
		return work{func(ctx c) facts { return v.verify(ctx, eff) }, diskSilence, func(g g) facts { return g.check(eff) }, true}
	case core.Admit:
		return work{func(ctx c) facts { return v.admit(ctx, eff) }, localSilence, func(g g) facts { return g.admission(eff) }, true}
	case core.BindInput:
		return work{func(ctx c) facts { return v.bindInput(ctx, eff) }, localSilence, func(g g) facts { return g.input(eff) }, true}
	case core.SettleTree:
		return work{func(ctx c) facts { return v.settleTree(ctx, eff) }, diskSilence, func(g g) facts { return g.tree(eff) }, true}
	case core.ShowResults:
		return work{func(ctx c) facts { return v.showResults(ctx, eff) }, localSilence, func(g g) facts { return g.results(eff) }, true}
	case core.LookAround:
		return work{func(ctx c) facts { return v.lookAround(ctx, eff) }, localSilence, func(g g) facts { return g.look(eff) }, true}
	case core.TakeSnapshot:
		return work{func(ctx c) facts { return v.takeSnapshot(ctx, eff) }, diskSilence, func(g g) facts { return g.snapshot(eff) }, true}
	case core.GoBack:
		return work{func(ctx c) facts { return v.rollBackTurn(ctx, eff) }, diskSilence, func(g g) facts { return g.rollback(eff) }, true}
	case core.RestoreFiles:
		return work{func(ctx c) facts { return v.restoreFiles(ctx, run, eff) }, diskSilence, func(g g) facts { return g.restored(eff) }, true}
	case core.AskQuota:
		return work{func(ctx c) facts { return v.askQuota(ctx, eff) }, localSilence, func(g g) facts { return g.quota(eff) }, true}
	case core.ReturnQuota:
		return work{func(ctx c) facts { return v.returnQuota(ctx, eff) }, diskSilence, nil, true}
	case core.HoldCall:
		return work{func(ctx c) facts { return v.holdCall(ctx, run, eff) }, 0, nil, true}
	case core.KeepProcess:
		return work{func(ctx c) facts { return v.keepProcess(ctx, run, eff) }, 0, func(g g) facts { return v.lostProcess(g, eff) }, false}
	case core.SendInput:
		return work{func(c) facts { return v.sendInput(eff) }, localSilence, func(g g) facts { return g.sent(eff) }, false}
	}
	panic("effect: no performer for " + eff.Key())
}

// Silence is how long an effect may give no sign of life.
func (v *performer) Silence(eff core.Effect) time.Duration { return v.work(nil, eff).silence }

// GiveUp returns the end of an effect that holds its thread for longer than its time, or
// that goes on though it was cancelled.
func (v *performer) GiveUp(eff core.Effect, late bool, silent time.Duration, now time.Time) []core.Fact {
	w := v.work(nil, eff)
	if w.lost == nil || w.again && !late {
		return nil
	}
	return w.lost(givenUp{silent, now})
}

// toolTime is how long a call may take, by what its tool says.
func toolTime(own time.Duration) time.Duration {
	if own > 0 {
		return own
	}
	return tool.DefaultTimeout
}

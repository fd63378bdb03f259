package effect

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
)

// rollBackTurn finds out what has to be undone so that another turn can run in place
// of a cancelled one, and announces that. Files that were changed by others
// since stay as they are; the conversation goes back in any case. No facts mean
// that the process shuts down: the next one does it again.
func (v *performer) rollBackTurn(ctx context.Context, eff core.GoBack) []core.Fact {
	p := rollbackOf(eff)
	err := v.planRollback(ctx, eff, &p)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		p.Plan, p.Files = nil, 0
		p.Kept = append(p.Kept, event.CutText("no file was restored: "+err.Error(), 1000))
	}
	return thread.Rollback(eff.IDs, p)
}

func rollbackOf(eff core.GoBack) event.HistoryRollbackStarted {
	return event.HistoryRollbackStarted{Scope: event.ScopeThread, Target: eff.Target, To: eff.To,
		Turns: []belay.TurnID{eff.Turn}, Count: 1, By: "runtime", Reason: "another turn was submitted in its place"}
}

// planRollback plans what becomes of the files that were changed since the turn before.
func (v *performer) planRollback(ctx context.Context, eff core.GoBack, p *event.HistoryRollbackStarted) error {
	past, err := history.ReadPast(ctx, v.e.c.Store, belay.ThreadID(v.stream.ID()))
	if err != nil {
		return err
	}
	to := history.PastTurn{Ended: true}
	if eff.To != "" {
		if to, err = past.Find(string(eff.To)); err != nil {
			return err
		}
	}
	root, err := v.e.root(ctx, eff.Dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	plan, err := past.PlanRollback(ctx, to, history.Planner{Root: root, Dir: eff.Dir, Keeper: v.e.c.Keeper, Secrets: v.e.c.Secrets})
	if err != nil {
		return err
	}
	c, err := plan.Command(ctx, v.e.c.Store, p.Scope, "")
	p.Plan, p.Files, p.Kept = c.Plan, c.Files, event.Fitting(c.Kept, roomForKept)
	return err
}

// roomForKept bounds what a fact names of effects that stay, in bytes.
const roomForKept = 4 << 10

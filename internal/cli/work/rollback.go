package work

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

// RollbackCmd is the command "belay rollback".
type RollbackCmd struct {
	ID     string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Turn   string `required:"" placeholder:"N|TURN" help:"The last turn that stays: its number or its id; 0: none does."`
	DryRun bool   `help:"Say what would happen; change nothing."`
	Force  bool   `help:"Also restore files that were changed by others since."`
	Reason string `short:"m" placeholder:"TEXT" help:"Why."`
}

// UndoCmd is the command "belay undo".
type UndoCmd struct {
	Turns   int    `arg:"" optional:"" default:"1" help:"How many of the last turns."`
	Session string `placeholder:"ID" help:"The session; the last one of this workspace."`
	DryRun  bool   `help:"Say what would happen; change nothing."`
	Force   bool   `help:"Also restore files that were changed by others since."`
	Reason  string `short:"m" placeholder:"TEXT" help:"Why."`
}

// rollback is a rollback or an undo on its way.
type rollback struct {
	*turnRun
	*sessions.Rollback
	dry, force bool
}

// Run implements command.Command.
func (c *RollbackCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return rollBack(ctx, a, c.ID, c.DryRun, c.Force, func(w *turnRun) (*sessions.Rollback, error) {
		return sessions.PlanRollback(ctx, w.Call("rollback_thread"), &sessions.RollbackThread{Session: w.session, Turn: c.Turn,
			RollbackWish: sessions.RollbackWish{DryRun: c.DryRun, Force: c.Force, Reason: c.Reason}})
	})
}

// Run implements command.Command.
func (c *UndoCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.Turns < 1 {
		return 0, belay.Errorf(belay.CodeUsage, "%d is no number of turns", c.Turns).WithHint("belay undo takes back the last turn, belay undo 2 the last two")
	}
	return rollBack(ctx, a, c.Session, c.DryRun, c.Force, func(w *turnRun) (*sessions.Rollback, error) {
		return sessions.PlanUndo(ctx, w.Call("undo_turns"), &sessions.UndoTurns{Session: w.session, Turns: c.Turns,
			RollbackWish: sessions.RollbackWish{DryRun: c.DryRun, Force: c.Force, Reason: c.Reason}})
	})
}

// rollBack finishes a rollback that was begun, makes a plan, shows it and carries it
// out, unless that isn't wanted or not allowed.
func rollBack(ctx context.Context, a *command.Program, id string, dry, force bool, plan func(*turnRun) (*sessions.Rollback, error)) (int, error) {
	w, _, _, err := openSession(ctx, a, id, false)
	if err != nil {
		return 0, err
	}
	defer w.close()
	if isRestoring(ctx, w) && !dry {
		if _, err := restored(ctx, w); err != nil {
			return 0, err
		}
	}
	p, err := plan(w)
	if err != nil {
		return 0, err
	}
	g := &rollback{w, p, dry, force}
	if p.Empty() {
		return g.nothing()
	}
	if !a.JSON {
		g.showPlan()
	} else if dry {
		a.PrintJSON(planned{g.session, g.RollbackPlan})
	}
	call := w.Call("rollback_thread")
	if err := p.Check(call); err != nil || dry {
		return belay.ExitOK, err
	}
	res, err := p.Do(ctx, call)
	if err != nil {
		return 0, err
	}
	if res == nil {
		return g.nothing()
	}
	return restored(ctx, w)
}

func (g *rollback) nothing() (int, error) {
	g.Turns = nil
	return g.a.Show(planned{g.session, g.RollbackPlan}, func() {
		g.showStays()
		fmt.Fprintln(g.a.Out, "there is nothing to take back: no file that a tool changed differs from what it was")
	})
}

// planned is a plan as JSON.
type planned struct {
	Session belay.SessionID `json:"session"`
	sessions.RollbackPlan
}

func (g *rollback) showPlan() {
	w := g.a.Out
	would := "will be "
	if g.dry || len(g.Foreign) > 0 && !g.force {
		would = "would be "
	}
	if g.Scope == event.ScopeThread {
		for _, t := range g.Turns {
			fmt.Fprintf(w, "turn %d %staken back: %s\n", t.Number, would, term.Short(t.Text, 60))
		}
	}
	g.showStays()
	for _, f := range g.Files {
		what := "restored"
		switch {
		case f.Want == nil:
			what = "removed"
		case f.Have == nil:
			what = "brought back"
		}
		if f.Forced {
			what += ", though it was changed by others"
		}
		fmt.Fprintf(w, "file %s %s%s\n", term.Line(f.Path), would, what)
	}
}

// showStays lists what can't be undone, before anything happens.
func (g *rollback) showStays() {
	w := g.a.Out
	for _, r := range g.Ran {
		fmt.Fprintf(w, "not restorable: %s\n", term.Line(r.String()))
	}
	for _, r := range g.Lost {
		fmt.Fprintf(w, "not restorable: %s: %s\n", term.Line(r.Path), term.Line(r.Why))
	}
	for _, r := range g.Foreign {
		if g.force {
			break // they are among the files
		}
		fmt.Fprintf(w, "changed by others: %s: %s\n", term.Line(r.Path), term.Line(r.Why))
	}
}

// isRestoring reports whether a rollback was accepted and isn't over.
func isRestoring(ctx context.Context, w *turnRun) bool {
	if t, err := w.state(ctx); err == nil && t != nil && t.Restore != nil {
		return true
	}
	orders, err := w.Store.Inbox(ctx, w.thread.Stream())
	if err != nil {
		return false
	}
	for _, o := range orders {
		if _, ok := o.Command.(belay.RollBack); ok {
			return true
		}
	}
	return false
}

// wentBack is the outcome of a rollback, as JSON.
type wentBack struct {
	Session belay.SessionID `json:"session"`
	event.HistoryRollbackCompleted
}

// restored drives the session until its rollback is over, and prints the result.
func restored(ctx context.Context, w *turnRun) (int, error) {
	if err := w.Engine.Session(ctx, w.session, nil); err != nil {
		return 0, err
	}
	var last *event.HistoryRollbackCompleted
	for ev, err := range w.Store.Read(ctx, w.thread.Stream(), 0) {
		if err != nil {
			return 0, err
		}
		if p, ok := ev.Data.(event.HistoryRollbackCompleted); ok {
			last = &p
		}
	}
	if last == nil {
		return 0, belay.Errorf(belay.CodeBadState, "the rollback was refused").At(string(w.session)).WithHint("belay events %s", w.session)
	}
	return w.a.Show(wentBack{w.session, *last}, func() {
		if last.Scope == event.ScopeThread {
			where := "before its first turn"
			if last.To != "" {
				where = "after " + string(last.To)
			}
			fmt.Fprintf(w.a.Out, "the conversation is %s again\n", where)
		}
		fmt.Fprintf(w.a.Out, "%s restored\n", term.Plural(last.Restored, "file"))
		for _, k := range last.Kept {
			fmt.Fprintf(w.a.Out, "stays: %s\n", term.Line(k))
		}
		fmt.Fprintf(w.a.Out, "continue with: belay run --session %s%s TEXT\n", w.session, w.a.StoreFlag)
	})
}

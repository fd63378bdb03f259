package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/lib/readfile"
)

type rollbackCmd struct {
	ID     string `arg:"" optional:"" help:"The session, or the beginning of its id; the last one of this workspace."`
	Turn   string `required:"" placeholder:"N|TURN" help:"The last turn that stays: its number or its id; 0: none does."`
	DryRun bool   `help:"Say what would happen; change nothing."`
	Force  bool   `help:"Also restore files that were changed by others since."`
	Reason string `short:"m" placeholder:"TEXT" help:"Why."`
}

type undoCmd struct {
	Turns   int    `arg:"" optional:"" default:"1" help:"How many of the last turns."`
	Session string `placeholder:"ID" help:"The session, or the beginning of its id; the last one of this workspace."`
	DryRun  bool   `help:"Say what would happen; change nothing."`
	Force   bool   `help:"Also restore files that were changed by others since."`
	Reason  string `short:"m" placeholder:"TEXT" help:"Why."`
}

// rollback is a rollback or an undo on its way.
type rollback struct {
	*turnRun
	scope, verb string
	dry, force  bool
	reason      string
}

func (c *rollbackCmd) run(ctx context.Context, a *app) (int, error) {
	w, s, _, err := a.openSession(ctx, c.ID, c.ID == "", false)
	if err != nil {
		return 0, err
	}
	defer w.close()
	g := &rollback{turnRun: w, scope: event.ScopeThread, verb: "rollback", dry: c.DryRun, force: c.Force, reason: c.Reason}
	return g.run(ctx, s, func(p *history.Past) (history.PastTurn, error) { return p.Find(c.Turn) })
}

func (c *undoCmd) run(ctx context.Context, a *app) (int, error) {
	if c.Turns < 1 {
		return 0, belay.Errorf(belay.CodeUsage, "%d is no number of turns", c.Turns).WithHint("belay undo takes back the last turn, belay undo 2 the last two")
	}
	w, s, _, err := a.openSession(ctx, c.Session, c.Session == "", false)
	if err != nil {
		return 0, err
	}
	defer w.close()
	g := &rollback{turnRun: w, scope: event.ScopeFiles, verb: "undo", dry: c.DryRun, force: c.Force, reason: c.Reason}
	return g.run(ctx, s, func(p *history.Past) (history.PastTurn, error) { return p.BeforeLast(c.Turns) })
}

// run finishes a rollback that was begun, makes a plan, shows it and carries it out.
func (g *rollback) run(ctx context.Context, s *session.State, target func(*history.Past) (history.PastTurn, error)) (int, error) {
	if g.restoring(ctx) && !g.dry {
		if _, err := g.restored(ctx); err != nil {
			return 0, err
		}
	}
	if err := g.Engine.Settle(ctx, g.session); err != nil {
		return 0, err
	}
	if g.unfinished(ctx) {
		return 0, belay.Errorf(belay.CodeBadState, "its last turn hasn't ended").At(string(g.session)).
			WithHint("belay sessions interrupt %s, or belay sessions resume %s", g.session, g.session)
	}
	past, err := sessions.PastOf(ctx, g.Store, g.session, s.Threads)
	if err != nil {
		return 0, err
	}
	to, err := target(past)
	if err != nil {
		return 0, err
	}
	if to.Copied {
		return 0, belay.Errorf(belay.CodeBadState, "turn %d is part of the history that the session began with", to.Number).At(string(g.session)).
			WithHint("belay fork %s --turn %d", g.session, to.Number)
	}
	root, err := os.OpenRoot(g.workspace)
	if err != nil {
		return 0, belay.Errorf(belay.CodeWorkspace, "it can't be opened: %s", readfile.Reason(err)).At(g.workspace).WithHint("the workspace must be there to take back what was done to it")
	}
	defer root.Close() //nolint:errcheck // it was only read
	look := history.Planner{Root: root, Dir: g.workspace, Keeper: g.a.keeper(), Force: g.force}
	if !g.dry {
		look.Secrets = g.a.secrets()
	}
	plan, err := past.PlanRollback(ctx, to, look)
	if err != nil {
		return 0, err
	}
	return g.carryOut(ctx, past, plan)
}

// carryOut shows the plan, and does it unless that isn't wanted or not allowed.
func (g *rollback) carryOut(ctx context.Context, past *history.Past, plan *history.Rollback) (int, error) {
	back := g.takenBack(past, plan)
	if len(back) == 0 && len(plan.Files) == 0 && len(plan.Foreign) == 0 {
		return g.nothing(plan)
	}
	if !g.a.JSON {
		g.showPlan(plan, back)
	} else if g.dry {
		g.a.PrintJSON(planned{Session: g.session, Scope: g.scope, To: plan.To.ID, Turns: back, Rollback: plan})
	}
	switch {
	case len(plan.Foreign) > 0 && !g.force:
		e := belay.Errorf(belay.CodeConflict, "%s: %s", plan.Foreign[0].Path, plan.Foreign[0].Why)
		if n := len(plan.Foreign); n > 1 {
			e = belay.Errorf(belay.CodeConflict, "%d files were changed by others, %s first", n, plan.Foreign[0].Path)
		}
		return 0, e.At(string(g.session)).WithHint("look at them; belay %s … --force restores them too, and keeps what is there now", g.verb)
	case g.dry:
		return belay.ExitOK, nil
	}
	if g.scope == event.ScopeFiles && len(plan.Files) == 0 {
		return g.nothing(plan)
	}
	c, err := plan.Command(ctx, g.Store, g.scope, string(g.scrub([]byte(g.reason))))
	if err != nil {
		return 0, err
	}
	if _, err := g.Engine.Submit(ctx, g.a.order(g.session, past.Thread.Stream(), c)); err != nil {
		return 0, err
	}
	return g.restored(ctx)
}

// takenBack are the turns that go, the oldest first.
func (g *rollback) takenBack(past *history.Past, plan *history.Rollback) []history.PastTurn {
	var back []history.PastTurn
	for _, t := range past.Turns {
		if !t.Copied && t.End > plan.To.End {
			back = append(back, t)
		}
	}
	if g.scope == event.ScopeFiles && len(plan.Files) == 0 && len(plan.Foreign) == 0 {
		return nil
	}
	return back
}

func (g *rollback) nothing(plan *history.Rollback) (int, error) {
	if g.a.JSON {
		g.a.PrintJSON(planned{Session: g.session, Scope: g.scope, To: plan.To.ID, Rollback: plan})
		return belay.ExitOK, nil
	}
	g.showStays(plan)
	fmt.Fprintln(g.a.Out, "there is nothing to take back: no file that a tool changed differs from what it was")
	return belay.ExitOK, nil
}

// planned is a plan as JSON.
type planned struct {
	Session belay.SessionID    `json:"session"`
	Scope   string             `json:"scope"`
	To      belay.TurnID       `json:"to,omitempty"`
	Turns   []history.PastTurn `json:"turns,omitempty"`
	*history.Rollback
}

func (g *rollback) showPlan(plan *history.Rollback, back []history.PastTurn) {
	w := g.a.Out
	would := "will be "
	if g.dry || len(plan.Foreign) > 0 && !g.force {
		would = "would be "
	}
	if g.scope == event.ScopeThread {
		for _, t := range back {
			fmt.Fprintf(w, "turn %d %staken back: %s\n", t.Number, would, term.Short(t.Text, 60))
		}
	}
	g.showStays(plan)
	for _, f := range plan.Files {
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
func (g *rollback) showStays(plan *history.Rollback) {
	w := g.a.Out
	for _, r := range plan.Ran {
		fmt.Fprintf(w, "not restorable: %s\n", term.Line(r.String()))
	}
	for _, r := range plan.Lost {
		fmt.Fprintf(w, "not restorable: %s: %s\n", term.Line(r.Path), term.Line(r.Why))
	}
	for _, r := range plan.Foreign {
		if g.force {
			break // they are among the files
		}
		fmt.Fprintf(w, "changed by others: %s: %s\n", term.Line(r.Path), term.Line(r.Why))
	}
}

// restoring reports whether a rollback was accepted and isn't over.
func (w *turnRun) restoring(ctx context.Context) bool {
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
func (w *turnRun) restored(ctx context.Context) (int, error) {
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
	if w.a.JSON {
		w.a.PrintJSON(wentBack{w.session, *last})
		return belay.ExitOK, nil
	}
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
	return belay.ExitOK, nil
}

package sessions

import (
	"cmp"
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/effect/history"
)

// RollbackThread is what rollback_thread takes.
type RollbackThread struct {
	Session belay.SessionID `json:"sessionId"`
	Turn    string          `json:"turn" jsonschema:"the last turn that stays: its number or its id; 0: none does"`
	RollbackWish
}

// UndoTurns is what undo_turns takes.
type UndoTurns struct {
	Session belay.SessionID `json:"sessionId"`
	Turns   int             `json:"turns,omitempty" jsonschema:"how many of the last turns; one when it is left out"`
	RollbackWish
}

// RollbackWish is how a rollback is wanted.
type RollbackWish struct {
	DryRun bool   `json:"dryRun,omitempty" jsonschema:"say what would happen, and change nothing"`
	Force  bool   `json:"force,omitempty" jsonschema:"also restore files that were changed by others since"`
	Reason string `json:"reason,omitempty"`
}

// RollbackPlan is what going back to the end of a turn means.
type RollbackPlan struct {
	Scope   string                  `json:"scope"`             // thread: the conversation and the files; files
	To      belay.TurnID            `json:"to,omitempty"`      // the last turn that stays; left out: none does
	Turns   []history.PastTurn      `json:"turns,omitempty"`   // that are taken back, the oldest first
	Files   []history.FileChange    `json:"files,omitempty"`   // that are restored
	Foreign []history.Refusal       `json:"foreign,omitempty"` // changed by others since; they stay unless that is forced
	Lost    []history.Refusal       `json:"lost,omitempty"`    // can't be restored
	Ran     []history.UntrackedCall `json:"ran,omitempty"`     // calls whose changes to files are not known
}

// RolledBack is a rollback that was planned and, unless that is all that was asked
// for, accepted. Its end is a fact: history.rollback.completed.
type RolledBack struct {
	app.Result
	RollbackPlan
}

// Rollback is a rollback that can be carried out.
type Rollback struct {
	RollbackPlan
	wish RollbackWish
	past *history.Past
	plan *history.Rollback
}

// PlanRollback plans to take a session's conversation and files back to the end of a turn.
func PlanRollback(ctx context.Context, r *app.Call, in *RollbackThread) (*Rollback, error) {
	return plan(ctx, r, in.Session, event.ScopeThread, in.RollbackWish, func(p *history.Past) (history.PastTurn, error) {
		t, err := findTurn(r, p, in.Turn)
		return t, input.At("turn", err)
	})
}

// PlanUndo plans to take back what the last turns did to files.
func PlanUndo(ctx context.Context, r *app.Call, in *UndoTurns) (*Rollback, error) {
	return plan(ctx, r, in.Session, event.ScopeFiles, in.RollbackWish, func(p *history.Past) (history.PastTurn, error) {
		t, err := p.BeforeLast(in.Turns)
		return t, input.At("turns", r.Hinted(err, "undo fewer"))
	})
}

func rollbackThread(ctx context.Context, r *app.Call, in *RollbackThread) (*RolledBack, error) {
	same := func(past *history.Past, p event.HistoryRollbackStarted) bool {
		t, err := past.Find(in.Turn)
		return err == nil && t.ID == p.To
	}
	if done, err := rolledBack(ctx, r, in.Session, same); done != nil || err != nil {
		return done, err
	}
	p, err := PlanRollback(ctx, r, in)
	if err != nil {
		return nil, err
	}
	return p.answer(ctx, r)
}

func undoTurns(ctx context.Context, r *app.Call, in *UndoTurns) (*RolledBack, error) {
	if in.Turns = cmp.Or(in.Turns, 1); in.Turns < 1 {
		return nil, input.At("turns", belay.Errorf(belay.CodeBadCommand, "%d is no number of turns", in.Turns).WithHint("leave it out for the last turn"))
	}
	same := func(_ *history.Past, p event.HistoryRollbackStarted) bool { return p.Count == in.Turns }
	if done, err := rolledBack(ctx, r, in.Session, same); done != nil || err != nil {
		return done, err
	}
	p, err := PlanUndo(ctx, r, in)
	if err != nil {
		return nil, err
	}
	return p.answer(ctx, r)
}

// rolledBack answers a command that was accepted under its key before: nothing is left
// to plan then. same reports whether what was accepted is what the command asks for.
func rolledBack(ctx context.Context, r *app.Call, id belay.SessionID, same func(*history.Past, event.HistoryRollbackStarted) bool) (*RolledBack, error) {
	s, err := r.Known(ctx, id)
	if err != nil || r.Key == "" {
		return nil, err
	}
	cmd := belay.CommandID(r.Keyed(belay.PrefixCommand))
	for _, th := range s.Threads {
		for ev, err := range r.Store.Read(ctx, th.Stream(), 0) {
			if err != nil {
				return nil, err
			}
			if p, ok := ev.Data.(event.HistoryRollbackStarted); ok && ev.IDs.Request == cmd {
				past, err := app.PastOf(ctx, r.Store, id, s.Threads)
				if err != nil {
					return nil, err
				}
				if !same(past, p) {
					return nil, input.At("header Idempotency-Key", belay.Errorf(belay.CodeIDConflict, "the key belongs to another request").WithHint("take a new key for another request"))
				}
				out := &RolledBack{app.Result{Command: cmd, Status: app.Done, Repeated: true, Session: id, Thread: th}, RollbackPlan{Scope: p.Scope, To: p.To}}
				return out, r.End(ctx, &out.Result)
			}
		}
	}
	return nil, nil
}

// plan looks at what a rollback means, and changes nothing. target says where to.
func plan(ctx context.Context, r *app.Call, id belay.SessionID, scope string, wish RollbackWish, target func(*history.Past) (history.PastTurn, error)) (*Rollback, error) {
	if err := input.Text("reason", wish.Reason, app.MaxReason); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := ended(ctx, r, id, s.Threads); err != nil {
		return nil, err
	}
	for _, c := range s.Family {
		if c.Outcome == "" {
			err := belay.Errorf(belay.CodeBadState, "agent %s of it hasn't ended", c.ID).At(string(id)).WithHint("belay agents close %s ends it", c.ID)
			return nil, r.Hinted(err, "close_subagent ends it")
		}
	}
	past, err := app.PastOf(ctx, r.Store, id, s.Threads)
	if err != nil {
		return nil, r.Hinted(err, "submit_turn gives it a turn")
	}
	to, err := target(past)
	if err != nil {
		return nil, err
	}
	if to.Copied {
		err := belay.Errorf(belay.CodeBadState, "turn %d is part of the history that the session began with", to.Number).At(string(id)).
			WithHint("belay fork %s --turn %d", id, to.Number)
		return nil, r.Hinted(err, "fork_session begins another session there")
	}
	look, err := r.Workspaces.Planner(s.Workspace)
	if err != nil {
		return nil, err
	}
	defer look.Root.Close() //nolint:errcheck // it was only read
	if look.Force = wish.Force; wish.DryRun {
		look.Secrets = nil // nothing is kept
	}
	rb, err := past.PlanRollback(ctx, to, look)
	if err != nil {
		return nil, err
	}
	p := &Rollback{RollbackPlan{Scope: scope, To: to.ID, Files: rb.Files, Foreign: rb.Foreign, Lost: rb.Lost, Ran: rb.Ran}, wish, past, rb}
	if scope == event.ScopeThread || len(rb.Files) > 0 || len(rb.Foreign) > 0 {
		p.Turns = slices.DeleteFunc(slices.Clone(past.Turns), func(t history.PastTurn) bool { return t.Copied || t.End <= to.End })
	}
	return p, nil
}

// ended refuses a session that has something to do.
func ended(ctx context.Context, r *app.Call, id belay.SessionID, threads []belay.ThreadID) error {
	if err := r.Engine.Settle(ctx, id); err != nil {
		return err
	}
	rows, err := r.Store.Lanes(ctx, id)
	if err != nil {
		return err
	}
	busy := false
	for _, row := range rows {
		busy = busy || row.Inbox > 0 || row.Runnable
	}
	if len(threads) > 0 && !busy {
		th, err := r.Thread(ctx, threads[len(threads)-1])
		if err != nil {
			return err
		}
		busy = th.Turn != nil || len(th.Queue) > 0
	}
	if !busy {
		return nil
	}
	err = belay.Errorf(belay.CodeBadState, "its last turn hasn't ended").At(string(id)).WithHint("belay sessions interrupt %s, or belay sessions resume %s", id, id)
	return r.Hinted(err, "interrupt_turn ends it")
}

// Empty reports whether there is nothing to take back.
func (p *Rollback) Empty() bool { return len(p.Turns)+len(p.Files)+len(p.Foreign) == 0 }

// Check refuses to overwrite what others changed, unless that is forced.
func (p *Rollback) Check(r *app.Call) error {
	if len(p.Foreign) == 0 || p.wish.Force {
		return nil
	}
	err := belay.Errorf(belay.CodeConflict, "%s: %s", p.Foreign[0].Path, p.Foreign[0].Why)
	if n := len(p.Foreign); n > 1 {
		err = belay.Errorf(belay.CodeConflict, "%d files were changed by others, %s first", n, p.Foreign[0].Path)
	}
	verb := map[string]string{event.ScopeThread: "rollback", event.ScopeFiles: "undo"}[p.Scope]
	return r.Hinted(err.At(string(p.past.Session)).WithHint("look at them; belay %s … --force restores them too, and keeps what is there now", verb),
		"look at them; force restores them too, and keeps what is there now")
}

// Do asks the thread to go back. The files are restored when the session is driven. The
// result is nil if files were to be restored, and none can be.
func (p *Rollback) Do(ctx context.Context, r *app.Call) (*app.Result, error) {
	if p.Scope == event.ScopeFiles && len(p.Files) == 0 {
		return nil, nil
	}
	c, err := p.plan.Command(ctx, r.Store, p.Scope, r.Clean(p.wish.Reason))
	if err != nil {
		return nil, err
	}
	res, err := r.Send(ctx, p.past.Session, p.past.Thread.Stream(), c)
	return app.With(res, err, p.past.Thread, "")
}

// answer does what is planned, unless it is a dry run or there is nothing to do.
func (p *Rollback) answer(ctx context.Context, r *app.Call) (*RolledBack, error) {
	out := &RolledBack{app.Result{Status: app.Done, Session: p.past.Session, Thread: p.past.Thread}, p.RollbackPlan}
	if p.wish.DryRun || p.Empty() {
		return out, r.End(ctx, &out.Result)
	}
	if err := p.Check(r); err != nil {
		return nil, err
	}
	res, err := p.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if res == nil {
		return out, r.End(ctx, &out.Result)
	}
	out.Result = *res
	return out, nil
}

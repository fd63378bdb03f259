package work

import (
	"context"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/store"
)

// ResumeCmd is the command "belay sessions resume".
type ResumeCmd struct {
	command.SettingFlags
	Last bool   `short:"l" help:"The last session of this workspace."`
	ID   string `arg:"" optional:"" help:"The session; the last one of this workspace."`
}

// Run implements command.Command.
func (c *ResumeCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.ID != "" && c.Last {
		return 0, belay.Errorf(belay.CodeUsage, "an id names one session, --last another").At("--last").WithHint("leave one of them out")
	}
	w, s, p, err := openSession(ctx, a, c.ID, false)
	if err != nil {
		return 0, err
	}
	defer w.close()
	settings, err := a.Over(p, s.Settings, c.Given())
	if err != nil {
		return 0, err
	}
	w.approvals, w.strict = settings.Approvals, c.FailOnDenied
	if isRestoring(ctx, w) {
		return restored(ctx, w)
	}
	if err := w.reclaim(ctx, s, settings); err != nil {
		return 0, err
	}
	if err := w.goOn(ctx, s, settings); err != nil {
		return 0, err
	}
	return w.see(ctx)
}

// openSession finds a session that isn't driven (with driven, also one that is), the
// last of this workspace where none is named,
// and wires this process for it.
func openSession(ctx context.Context, a *command.Program, id string, driven bool) (*turnRun, *app.SessionState, *app.Place, error) {
	w, err := newWork(ctx, a, false)
	if err != nil {
		return nil, nil, nil, err
	}
	var p *app.Place
	s, err := w.find(ctx, id, driven)
	if err == nil {
		p, err = a.Enter(ctx, s.Workspace)
	}
	if err != nil {
		w.close()
		return nil, nil, nil, err
	}
	return w, s, p, nil
}

func (w *turnRun) find(ctx context.Context, id string, driven bool) (*app.SessionState, error) {
	sid, err := w.a.SessionID(ctx, w.Store, id)
	if err != nil {
		return nil, err
	}
	if !driven {
		if err := w.free(ctx, sid); err != nil {
			return nil, err
		}
	}
	if w.from, err = w.Store.End(ctx); err != nil {
		return nil, err
	}
	s, err := app.StateOf(ctx, w.Store, sid)
	if err != nil {
		return nil, err
	}
	w.session, w.workspace = sid, s.Workspace
	if n := len(s.Threads); n > 0 {
		w.thread = s.Threads[n-1]
	} else {
		w.thread = belay.ThreadID(belay.NewID(belay.PrefixThread))
	}
	if err := w.a.RestoreWorktree(ctx, s); err != nil {
		return nil, err
	}
	if _, err := config.CheckWorkspace(s.Workspace); err != nil {
		return nil, err
	}
	return s, nil
}

// free waits a moment for a process that only brings the session a command; one
// that drives it keeps it.
func (w *turnRun) free(ctx context.Context, sid belay.SessionID) error {
	for try := 0; ; try++ {
		owner, err := w.Store.OwnerOf(ctx, sid)
		if owner == nil || err != nil {
			return err
		}
		if try == 10 {
			return &store.OwnedError{Session: sid, Owner: *owner}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// waiting reports whether a session was accepted and nothing of it was handled yet.
func waiting(ctx context.Context, st store.Store, id belay.SessionID) bool {
	orders, err := st.Inbox(ctx, id.Stream())
	return err == nil && len(orders) > 0
}

// goOn brings the thread to where driving it continues: with the unfinished
// turn, or with another attempt of a task that ended without success.
func (w *turnRun) goOn(ctx context.Context, s *app.SessionState, c config.Settings) error {
	t, err := w.state(ctx)
	if err != nil {
		return err
	}
	pending := w.unfinished(ctx)
	changed := !same(s.Settings, c.Settings) || c.Schema != nil
	if err := w.update(ctx, s, c); err != nil {
		return err
	}
	switch {
	case t != nil && t.Turn != nil:
		w.turn = t.Turn.Turn
		if !changed {
			return nil
		}
		rules, err := w.nextRules(ctx, c, t.Turn.Rules)
		if err != nil {
			return err
		}
		return w.Store.Enqueue(ctx, w.a.Order(w.session, w.thread.Stream(), belay.ResumeThread{Rules: rules, Limits: &c.Settings.Limits}))
	case t != nil && len(t.Queue) > 0:
		w.turn = t.Queue[0].Turn
		return nil
	case t != nil && t.Back && !pending:
		return belay.Errorf(belay.CodeBadState, "its conversation was taken back, and nothing was said since").At(string(w.session)).WithHint("belay run --session %s TEXT", w.session)
	case t != nil && t.Prev != nil && t.Prev.Outcome == belay.Completed && !waiting(ctx, w.Store, w.session) && newest(s, t.Prev.Turn):
		// It ended well and its process died before it could say so.
		return w.ended(ctx, t.Prev.Turn)
	case pending && (t != nil || w.worksWait(ctx) || starts(s)): // accepted and not handled: the watch learns the turn
		return nil
	case t == nil || t.Prev == nil:
		return belay.Errorf(belay.CodeBadState, "it has no turn to go on with").At(string(w.session)).WithHint("belay run --session %s TEXT", w.session)
	}
	return w.retry(ctx, s, c)
}

// starts reports whether a planned task of the session is to start.
func starts(s *app.SessionState) bool {
	for _, p := range s.Plan {
		if p.Status == "queued" {
			return true
		}
	}
	return false
}

// worksWait reports whether work was given to the session that wasn't handled.
func (w *turnRun) worksWait(ctx context.Context) bool {
	rows, err := w.Store.Lanes(ctx, w.session)
	if err != nil {
		return true
	}
	for _, row := range rows {
		orders, err := w.Store.Inbox(ctx, row.Stream)
		if err != nil {
			return true
		}
		for _, o := range orders {
			switch o.Command.(type) {
			case belay.CreateSession, belay.OpenThread, belay.LabelSession, belay.UpdateSession:
			default:
				return true
			}
		}
	}
	return false
}

// newest reports whether no work was given to the session after this turn. A
// turn that the session didn't submit is another attempt of its newest task.
func newest(s *app.SessionState, turn belay.TurnID) bool {
	i := slices.Index(s.Turns, turn)
	return i < 0 || i == len(s.Turns)-1
}

// ended makes the end of a turn known that came before this process.
func (w *turnRun) ended(ctx context.Context, turn belay.TurnID) error {
	w.turn = turn
	w.watch.Follows(turn)
	return w.past(ctx, turn)
}

// retry starts another attempt of the session's newest task on the same thread.
func (w *turnRun) retry(ctx context.Context, s *app.SessionState, c config.Settings) error {
	if s.Task == "" {
		return belay.Errorf(belay.CodeBadState, "it was one call of a person, and it is over").At(string(w.session)).WithHint("belay tool call makes another")
	}
	before, err := w.lastRules(ctx)
	if err != nil {
		return err
	}
	rules, err := w.nextRules(ctx, c, before)
	if err != nil {
		return err
	}
	w.turn = belay.TurnID(belay.NewID(belay.PrefixTurn))
	return w.Store.Enqueue(ctx, w.a.Order(w.session, s.Task.Stream(), belay.RetryTask{Turn: w.turn, Reason: "resumed by " + w.a.Principal(), Rules: rules}))
}

// lastRules are the rules of the thread's newest turn.
func (w *turnRun) lastRules(ctx context.Context) (belay.Ref, error) {
	var last belay.Ref
	for ev, err := range w.Store.Read(ctx, w.thread.Stream(), 0) {
		if err != nil {
			return last, err
		}
		switch p := ev.Data.(type) {
		case event.TurnStarted:
			last = p.Rules
		case event.ThreadUpdated:
			if p.Rules != nil {
				last = *p.Rules
			}
		}
	}
	return last, nil
}

// nextRules are rules for settings now; the output's schema stays unless
// another one was given.
func (w *turnRun) nextRules(ctx context.Context, c config.Settings, before belay.Ref) (belay.Ref, error) {
	if c.Schema == nil && before.Digest != "" {
		if r, err := w.RulesOf(ctx, before); err == nil {
			c.Schema = r.Output
		}
	}
	return w.rules(ctx, c, nil)
}

package work

import (
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/store"
)

// submitOnNewThread gives a session work on a new thread.
func (w *turnRun) submitOnNewThread(ctx context.Context, s *app.SessionState, c config.Settings, t Task) error {
	w.thread = belay.ThreadID(belay.NewID(belay.PrefixThread))
	if err := w.driveOrFollow(ctx, s, c, "this thread"); err != nil {
		return err
	}
	return w.submit(ctx, c, t)
}

// behind submits a turn to a session that may be busy; mode is how it is treated
// then. A turn that would be refused isn't recorded.
func (w *turnRun) behind(ctx context.Context, s *app.SessionState, c config.Settings, t Task, mode belay.QueueMode) error {
	w.queue = mode
	if err := w.driveOrFollow(ctx, s, c, "this task"); err != nil {
		return err
	}
	th, err := w.state(ctx)
	if err != nil {
		return err
	}
	if th != nil {
		if err := th.Takes(mode); err != nil {
			return app.WithHint(err, "belay queue list "+string(w.session)+", or --queue interrupt", belay.CodeBusy)
		}
	}
	return w.submit(ctx, c, t)
}

// driveOrFollow makes this process the session's driver. When another process drives
// it that one does the work, what included; this one shows it, and drives on if
// the other leaves.
func (w *turnRun) driveOrFollow(ctx context.Context, s *app.SessionState, c config.Settings, what string) error {
	err := w.reclaim(ctx, s, c)
	if other, owned := errors.AsType[*store.OwnedError](err); owned {
		w.say("process %d on %s drives the session, and %s too", other.Owner.PID, other.Owner.Host, what)
		w.guest = true
		w.join = func(ctx context.Context) error { return w.reclaim(ctx, s, c) }
	} else if err != nil {
		return err
	}
	return w.update(ctx, s, c)
}

// drive drives the session, as soon as it is this process's to drive; it returns
// when everything rests, or when another process has brought the turn to its end.
func (w *turnRun) drive(ctx context.Context) error {
	for w.join != nil {
		if t, err := w.state(ctx); err != nil || t != nil && app.TurnOver(t, w.turn) {
			return err
		}
		changed := w.Store.Changed(ctx)
		err := w.join(ctx)
		if _, owned := errors.AsType[*store.OwnedError](err); !owned {
			if err != nil {
				return err
			}
			w.join = nil
			continue
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // an owner that is gone commits nothing
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return w.Engine.Session(ctx, w.session, w.keep(ctx))
}

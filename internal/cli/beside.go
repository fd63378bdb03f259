package cli

import (
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/store"
)

// beside gives a session work on a new thread. When another process drives the
// session that one does the work too; this one shows it, and drives on if the
// other leaves.
func (w *work) beside(ctx context.Context, s *session.State, c checked, t task) error {
	w.thread = belay.ThreadID(belay.NewID(belay.PrefixThread))
	err := w.reclaim(ctx, s, c)
	if other, owned := errors.AsType[*store.OwnedError](err); owned {
		w.say("process %d on %s drives the session, and this thread too", other.Owner.PID, other.Owner.Host)
		w.guest = true
		w.join = func(ctx context.Context) error { return w.reclaim(ctx, s, c) }
	} else if err != nil {
		return err
	}
	if err := w.update(ctx, s, c); err != nil {
		return err
	}
	return w.submit(ctx, c, t)
}

// drive drives the session, as soon as it is this process's to drive; it returns
// when everything rests, or when another process has brought the turn to its end.
func (w *work) drive(ctx context.Context) error {
	for w.join != nil {
		if t, err := w.state(ctx); err != nil || t != nil && t.Prev != nil && t.Prev.Turn == w.turn {
			return err
		}
		changed := w.store.Changed(ctx)
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
	return w.engine.Session(ctx, w.session, w.keep(ctx))
}

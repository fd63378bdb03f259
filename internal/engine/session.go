package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Session drives all streams of a session until they rest and keep says no, or
// ctx ends. It claims the session first: *store.OwnedError if another process
// has it. keep is asked whenever everything rests, with the lanes that have a
// wake time; nil means no.
func (e *Engine) Session(ctx context.Context, id belay.SessionID, keep func(rows []store.LaneRow) bool) error {
	own, err := e.claimSoon(ctx, id)
	if err != nil {
		return err
	}
	k := e.keep(ctx)
	l := &lanes{e: e, id: id, own: own, keep: keep, running: map[belay.StreamID]*drive{}, ended: make(chan ended)}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	release := context.AfterFunc(k.ctx, func() { l.cancel(context.Cause(k.ctx)) })
	err = l.run()
	release()
	l.cancel(nil)
	e.unkeep(k)
	return errors.Join(err, e.release(context.WithoutCancel(ctx), id))
}

// lanes runs a drive for every stream of a session that has something to do.
// One goroutine owns it: the one in run.
type lanes struct {
	e       *Engine
	id      belay.SessionID
	own     *ownership
	keep    func([]store.LaneRow) bool
	ctx     context.Context // of the drives
	cancel  context.CancelCauseFunc
	running map[belay.StreamID]*drive
	ended   chan ended
	wg      sync.WaitGroup
	failed  error // the first error; everything stops after it
}

type ended struct {
	stream belay.StreamID
	err    error
}

func (l *lanes) run() error {
	defer l.wg.Wait()
	for {
		rows, err := l.e.c.Store.Lanes(context.WithoutCancel(l.ctx), l.id)
		if err != nil {
			l.fail(err)
		}
		wake := l.start(rows)
		if len(l.running) == 0 {
			switch {
			case l.failed != nil:
				return l.failed
			case l.ctx.Err() != nil:
				return context.Cause(l.ctx)
			case l.keep == nil || !l.keep(rows):
				return nil
			}
		}
		l.wait(wake)
	}
}

// start begins the drives that are due, tells running ones of new commands,
// and returns when the next stream is due.
func (l *lanes) start(rows []store.LaneRow) (wake time.Time) {
	now := l.e.c.Now()
	for _, row := range rows {
		if v := l.running[row.Stream]; v != nil {
			if row.Inbox > 0 {
				v.poke()
			}
			continue
		}
		due := !row.Wake.IsZero() && !now.Before(row.Wake)
		switch {
		case l.ctx.Err() == nil && (row.Runnable || row.Inbox > 0 || due):
			l.drive(row.Stream)
		case !row.Wake.IsZero() && (wake.IsZero() || row.Wake.Before(wake)):
			wake = row.Wake
		}
	}
	return wake
}

func (l *lanes) drive(s belay.StreamID) {
	v := l.e.newDrive(l.id, l.own.epoch, s, false)
	l.running[s] = v
	l.e.register(v, true)
	l.wg.Go(func() {
		err := v.run(l.ctx)
		l.e.register(v, false)
		l.ended <- ended{s, err}
	})
}

// wait blocks until a drive ended, a command came, or a stream is due.
func (l *lanes) wait(wake time.Time) {
	stop := l.ctx.Done()
	if l.ctx.Err() != nil && len(l.running) > 0 {
		stop = nil // only the ends of drives count now; without any there is nothing to wait for
	}
	var due <-chan time.Time
	if !wake.IsZero() {
		t := time.NewTimer(max(wake.Sub(l.e.c.Now()), 0))
		defer t.Stop()
		due = t.C
	}
	select {
	case d := <-l.ended:
		delete(l.running, d.stream)
		if d.err != nil && !(l.ctx.Err() != nil && errors.Is(d.err, context.Cause(l.ctx))) {
			l.fail(d.err)
		}
	case <-l.own.kick:
	case <-due:
	case <-stop:
	}
}

func (l *lanes) fail(err error) {
	if l.failed == nil {
		l.failed = err
	}
	l.cancel(err)
}

// poke makes a drive look at its inbox.
func (v *drive) poke() {
	select {
	case v.nudge <- struct{}{}:
	default:
	}
}

func (e *Engine) register(v *drive, running bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if running {
		e.drives[v.stream] = v
	} else if e.drives[v.stream] == v {
		delete(e.drives, v.stream)
	}
}

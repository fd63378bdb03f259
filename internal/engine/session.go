package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Session drives all streams of a session until they rest and keep says no, or
// ctx ends. It claims the session first: *store.OwnedError if another process
// or another call has it. keep is asked whenever everything rests, with the lanes that have a
// wake time; nil means no.
func (e *Engine) Session(ctx context.Context, id belay.SessionID, keep func(rows []store.LaneRow) bool) error {
	own, err := e.claims.claimSoon(ctx, id, drives)
	if err != nil {
		return err
	}
	l, end := e.newSessionLoop(ctx, own, keep)
	return end(l.run())
}

// Own claims a session ahead of driving it, so that what its owner alone may
// settle can be settled first, and keeps it until release is called. It returns
// the epoch of the claim; *store.OwnedError if another process has the session.
func (e *Engine) Own(ctx context.Context, id belay.SessionID) (epoch int64, release func() error, err error) {
	own, err := e.claims.claimSoon(ctx, id, hold)
	if err != nil {
		return 0, nil, err
	}
	k := e.claims.acquireLease(ctx)
	return own.epoch, func() error {
		e.claims.releaseLease(k)
		return e.claims.release(context.WithoutCancel(ctx), own, hold)
	}, nil
}

// newSessionLoop returns the loop of a session that is owned, until its lease can't be
// renewed. end gives it back, with what it ended with.
func (e *Engine) newSessionLoop(ctx context.Context, own *ownership, keep func([]store.LaneRow) bool) (l *sessionLoop, end func(error) error) {
	k := e.claims.acquireLease(ctx)
	l = &sessionLoop{e: e, id: own.session, own: own, keep: keep, running: map[belay.StreamID]*drive{}, wakes: map[belay.StreamID]time.Time{}, ended: make(chan ended)}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	release := context.AfterFunc(k.ctx, func() { l.cancel(context.Cause(k.ctx)) })
	return l, func(err error) error {
		release()
		l.cancel(nil)
		e.claims.releaseLease(k)
		return errors.Join(err, e.claims.release(context.WithoutCancel(ctx), own, drives))
	}
}

// sessionLoop runs a drive for every stream of a session that has something to do. It
// belongs to one goroutine: the one in run. The lanes are read from the store at
// the beginning, when another process may have submitted a command, and once
// more when everything rests; in between this process knows them.
type sessionLoop struct {
	e       *Engine
	id      belay.SessionID
	own     *ownership
	keep    func([]store.LaneRow) bool
	ctx     context.Context // of the drives
	cancel  context.CancelCauseFunc
	running map[belay.StreamID]*drive
	wakes   map[belay.StreamID]time.Time // of streams without a drive; zero is never
	ended   chan ended
	wg      sync.WaitGroup
	failed  error // the first error; everything stops after it
}

type ended struct {
	v   *drive
	err error
}

func (l *sessionLoop) run() error {
	defer l.wg.Wait()
	l.own.mailbox.notify("")
	for {
		wake, done, err := l.turn()
		if done {
			return err
		}
		l.wait(wake)
	}
}

// turn begins what is due. done: nothing runs, and there is nothing to wait for;
// else it returns when the next stream is due.
func (l *sessionLoop) turn() (wake time.Time, done bool, err error) {
	rows, looked, err := l.look()
	if err != nil {
		l.fail(err)
	}
	if wake = l.start(rows); !l.rests(rows) {
		return wake, false, nil
	}
	switch {
	case len(l.running) == 0 && l.failed != nil:
		return wake, true, l.failed
	case len(l.running) == 0 && errors.Is(context.Cause(l.ctx), errRests):
		return wake, true, nil
	case len(l.running) == 0 && l.ctx.Err() != nil:
		return wake, true, context.Cause(l.ctx)
	case l.ctx.Err() != nil: // they are on their way
	case !looked: // everything rests as far as this process knows
		l.own.mailbox.notify("")
	case l.keep != nil && l.keep(rows):
	case len(l.running) == 0:
		return wake, true, nil
	default: // what runs in the background ends with its session
		l.cancel(errRests)
	}
	return wake, false, nil
}

// errRests is why drives leave that only processes of the background keep.
var errRests = errors.New("the session rests")

// rests reports whether nothing continues but processes of the background, and
// nothing waits to be handled.
func (l *sessionLoop) rests(rows []store.LaneRow) bool {
	for _, v := range l.running {
		if !v.onlyBackground.Load() {
			return false
		}
	}
	return len(l.running) == 0 || !slices.ContainsFunc(rows, func(r store.LaneRow) bool { return r.Inbox > 0 })
}

// look reads the lanes when more may be in them than this process knows.
func (l *sessionLoop) look() (rows []store.LaneRow, looked bool, err error) {
	if looked = l.own.mailbox.take(""); looked {
		rows, err = l.e.c.Store.Lanes(context.WithoutCancel(l.ctx), l.id)
	}
	return rows, looked, err
}

// start begins the drives that are due, tells running ones of new commands,
// and returns when the next stream is due.
func (l *sessionLoop) start(rows []store.LaneRow) (wake time.Time) {
	if l.ctx.Err() != nil {
		return time.Time{}
	}
	for _, row := range rows {
		if row.Inbox > 0 {
			l.own.mailbox.notify(row.Stream)
		}
		switch {
		case l.running[row.Stream] != nil:
		case row.Runnable:
			l.drive(row.Stream)
		default:
			l.wakes[row.Stream] = row.Wake
		}
	}
	for _, s := range l.own.mailbox.streams() {
		if l.running[s] == nil { // else it is just ending
			l.drive(s)
		}
	}
	now := l.e.c.Now()
	for s, at := range l.wakes {
		switch {
		case at.IsZero():
		case !now.Before(at):
			l.drive(s)
		default:
			wake = earliest(wake, at)
		}
	}
	return wake
}

// drive begins to drive a stream.
func (l *sessionLoop) drive(s belay.StreamID) {
	v := l.e.newDrive(l.own, s)
	delete(l.wakes, s)
	l.running[s] = v
	l.own.mailbox.begin(v)
	l.wg.Go(func() {
		err := v.run(l.ctx)
		l.own.mailbox.end(v)
		l.ended <- ended{v, err}
	})
}

// wait blocks until a drive ended, a command came, or a stream is due.
func (l *sessionLoop) wait(wake time.Time) {
	stop := l.ctx.Done()
	if l.ctx.Err() != nil && len(l.running) > 0 {
		stop = nil // only the ends of drives count now; without any there is nothing to wait for
	}
	due, end := timerAt(wake, l.e.c.Now())
	defer end()
	select {
	case d := <-l.ended:
		l.over(d)
	case <-l.own.mailbox.kick:
	case <-due:
	case <-stop:
	}
}

// over takes a drive that ended.
func (l *sessionLoop) over(d ended) {
	delete(l.running, d.v.stream)
	if d.err == nil {
		l.wakes[d.v.stream] = d.v.wake
	}
	if d.err != nil && !(l.ctx.Err() != nil && errors.Is(d.err, context.Cause(l.ctx))) {
		l.fail(d.err)
	}
}

func (l *sessionLoop) fail(err error) {
	if l.failed == nil {
		l.failed = err
	}
	l.cancel(err)
}

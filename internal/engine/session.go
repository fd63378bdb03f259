package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Session drives all streams of a session until they rest and keep says no, or
// ctx ends. It claims the session first: *store.OwnedError if another process
// has it. keep is asked whenever everything rests; nil means no.
func (e *Engine) Session(ctx context.Context, id belay.SessionID, keep func(rows []store.LaneRow) bool) error {
	own, err := e.claim(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { e.renew(ctx, cancel) })
	err = e.lanes(ctx, id, own, keep)
	cancel(nil)
	wg.Wait()
	return errors.Join(err, e.release(context.WithoutCancel(ctx), id))
}

func (e *Engine) claim(ctx context.Context, id belay.SessionID) (*ownership, error) {
	e.mu.Lock()
	if own := e.owned[id]; own != nil {
		own.users++
		e.mu.Unlock()
		return own, nil
	}
	e.mu.Unlock()
	epoch, err := e.c.Store.Claim(ctx, id, e.c.Owner, Lease)
	if err != nil {
		return nil, err
	}
	own := &ownership{epoch: epoch, users: 1, kick: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.owned[id] = own
	return own, nil
}

func (e *Engine) release(ctx context.Context, id belay.SessionID) error {
	e.mu.Lock()
	own := e.owned[id]
	own.users--
	last := own.users == 0
	if last {
		delete(e.owned, id)
	}
	e.mu.Unlock()
	if !last {
		return nil
	}
	return e.c.Store.Release(ctx, id, own.epoch)
}

// renew keeps the leases. When they can't be kept for a whole lease, another
// process may take the sessions, so everything here stops.
func (e *Engine) renew(ctx context.Context, cancel context.CancelCauseFunc) {
	t := time.NewTicker(Lease / 3)
	defer t.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := e.c.Store.Renew(ctx, e.c.Owner, Lease); err == nil {
				last = time.Now()
			} else if time.Since(last) > Lease*2/3 && ctx.Err() == nil {
				cancel(errors.Join(store.ErrStale, err))
				return
			}
		}
	}
}

// lanes starts a drive for every stream that has something to do and waits for
// more. One goroutine owns the bookkeeping: this one.
func (e *Engine) lanes(ctx context.Context, id belay.SessionID, own *ownership, keep func([]store.LaneRow) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running := map[belay.StreamID]*drive{}
	type ended struct {
		stream belay.StreamID
		err    error
	}
	done := make(chan ended)
	var wg sync.WaitGroup
	defer wg.Wait()
	var failed error
	for {
		changed := e.c.Store.Changed(ctx)
		rows, err := e.c.Store.Lanes(context.WithoutCancel(ctx), id)
		if err != nil && failed == nil {
			failed = err
			cancel(err)
		}
		var wake time.Time
		for _, row := range rows {
			if v := running[row.Stream]; v != nil {
				if row.Inbox > 0 {
					v.poke()
				}
				continue
			}
			due := !row.Wake.IsZero() && !e.c.Now().Before(row.Wake)
			if failed != nil || ctx.Err() != nil || !(row.Runnable || row.Inbox > 0 || due) {
				if !row.Wake.IsZero() && (wake.IsZero() || row.Wake.Before(wake)) {
					wake = row.Wake
				}
				continue
			}
			v := e.newDrive(id, own.epoch, row.Stream, false)
			running[row.Stream] = v
			e.register(v, true)
			wg.Go(func() {
				err := v.run(ctx)
				e.register(v, false)
				done <- ended{v.stream, err}
			})
		}
		if len(running) == 0 {
			switch {
			case failed != nil:
				return failed
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case keep == nil || !keep(rows):
				return nil
			}
		}
		timer := time.NewTimer(until(e.c.Now(), wake))
		stop := ctx.Done()
		if ctx.Err() != nil {
			stop, changed = nil, nil // only the ends of drives count now
		}
		select {
		case d := <-done:
			delete(running, d.stream)
			if d.err != nil && failed == nil && ctx.Err() == nil {
				failed = d.err
				cancel(d.err)
			} else if d.err != nil && failed == nil && !errors.Is(d.err, context.Cause(ctx)) {
				failed = d.err
			}
		case <-changed:
		case <-own.kick:
		case <-timer.C:
		case <-stop:
		}
		timer.Stop()
	}
}

func until(now, at time.Time) time.Duration {
	if at.IsZero() {
		return time.Hour
	}
	return max(at.Sub(now), 0)
}

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

// notify tells a stream of this process that its inbox has something, without
// waiting for the store to be polled.
func (e *Engine) notify(id belay.SessionID, s belay.StreamID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v := e.drives[s]; v != nil {
		v.poke()
	}
	if own := e.owned[id]; own != nil {
		select {
		case own.kick <- struct{}{}:
		default:
		}
	}
}

// Answer is what became of a command.
type Answer struct {
	Events  []event.Envelope // the facts it caused
	Pending bool             // accepted, and not handled within the time given
}

// answerWithin is how long Submit waits for the owner to act.
const answerWithin = 2 * time.Second

// Submit brings a command to its stream and waits for the facts that answer
// it. It is durable once it is accepted. A session that this engine or another
// live process drives gets it through its inbox; else the engine claims the
// session, handles the command, starts no effects and gives the session back.
// A refusal is the decider's *belay.Error.
func (e *Engine) Submit(ctx context.Context, o belay.Order) (Answer, error) {
	if o.Time.IsZero() {
		o.Time = e.c.Now().UTC()
	}
	from, err := e.c.Store.End(ctx)
	if err != nil {
		return Answer{}, err
	}
	if err := e.c.Store.Enqueue(ctx, e.scrubOrder(o)); err != nil {
		return Answer{}, err
	}
	e.mu.Lock()
	mine := e.owned[o.Session] != nil
	e.mu.Unlock()
	if mine {
		e.notify(o.Session, o.Stream)
	} else if err := e.handleHere(ctx, o.Session); err != nil {
		if _, live := errors.AsType[*store.OwnedError](err); !live {
			return Answer{}, err
		}
	}
	return e.answer(ctx, from, o)
}

// handleHere claims a session, lets its streams handle their commands without
// starting effects, and gives it back.
func (e *Engine) handleHere(ctx context.Context, id belay.SessionID) error {
	own, err := e.claim(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.release(context.WithoutCancel(ctx), id)) }()
	for {
		rows, err := e.c.Store.Lanes(ctx, id)
		if err != nil {
			return err
		}
		handled := false
		for _, row := range rows {
			if row.Inbox == 0 {
				continue
			}
			handled = true
			if err := e.newDrive(id, own.epoch, row.Stream, true).run(ctx); err != nil {
				return err
			}
		}
		if !handled {
			return nil
		}
	}
}

// answer waits for the facts that carry the command's id.
func (e *Engine) answer(ctx context.Context, from store.Position, o belay.Order) (Answer, error) {
	deadline := time.NewTimer(answerWithin)
	defer deadline.Stop()
	var a Answer
	for {
		changed := e.c.Store.Changed(ctx)
		for r, err := range e.c.Store.Scan(ctx, from) {
			if err != nil {
				return a, err
			}
			from = r.Position
			if r.Event.IDs.Request != o.ID {
				continue
			}
			if m, ok := r.Event.Data.(event.ChannelMessage); ok && m.Kind == "audit" {
				return a, &belay.Error{Code: belay.Code(m.Code), Message: m.Message, Hint: m.Hint}
			}
			a.Events = append(a.Events, r.Event)
		}
		if len(a.Events) > 0 || !e.waits(ctx, o) {
			return a, nil
		}
		select {
		case <-changed:
		case <-deadline.C:
			a.Pending = true
			return a, nil
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// waits tells whether the command is still in its inbox.
func (e *Engine) waits(ctx context.Context, o belay.Order) bool {
	orders, err := e.c.Store.Inbox(ctx, o.Stream)
	if err != nil {
		return true
	}
	for _, w := range orders {
		if w.ID == o.ID {
			return true
		}
	}
	return false
}

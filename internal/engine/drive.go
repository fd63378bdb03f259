package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

// drive is the loop of one stream. All its fields belong to the goroutine that
// runs it, but for the channels.
type drive struct {
	e       *Engine
	own     *ownership
	session belay.SessionID
	stream  belay.StreamID
	passive bool // handle commands, start no effects

	streamState
	wake time.Time // when something may be wanted next; zero is never

	perf           Performer
	running        map[string]*Run
	wg             sync.WaitGroup
	reports        chan report   // of effects
	nudge          chan struct{} // capacity 1: the inbox may have something
	onlyBackground atomic.Bool   // nothing is wanted but that processes of the background go on
}

// streamState is a stream as its facts say it is.
type streamState struct {
	d     core.Decider // nil: to be loaded
	vers  string
	seq   int64
	last  time.Time
	saved int64 // the sequence of the cached state
}

// report is what an effect records while it runs, or when it ended: no facts mean
// then that its driver shut down and the next one decides its outcome.
type report struct {
	run   *Run
	ended bool
	facts []core.Fact
	ack   chan error // nil: the effect doesn't wait
}

func (e *Engine) newDrive(own *ownership, stream belay.StreamID) *drive {
	return &drive{e: e, own: own, session: own.session, stream: stream, perf: e.c.Performers.Of(own.session, stream), running: map[string]*Run{}, reports: make(chan report),
		nudge: make(chan struct{}, 1)}
}

// run drives the stream until it rests, ctx ends or the store refuses. When it
// returns, everything it started has ended and what is known of it is recorded.
func (v *drive) run(ctx context.Context) error {
	b := &batch{}
	if err := v.open(ctx, b); err != nil {
		return err
	}
	inbox := v.collect(b)
	for {
		if inbox {
			if err := v.takeInbox(ctx, b); err != nil {
				return v.leave(ctx, b, err)
			}
		}
		rd, err := v.decide(ctx, b)
		if err == nil {
			err = v.append(ctx, b, rd)
		}
		if err != nil {
			return v.leave(ctx, b, err)
		}
		v.wake = rd.Wake
		timer := v.reconcile(ctx, rd)
		v.updateIdle(rd)
		if len(v.running) == 0 && timer.IsZero() {
			return nil
		}
		b = &batch{}
		if inbox = v.wait(ctx, b, earliest(timer, v.watchAt())); ctx.Err() != nil {
			return v.leave(ctx, b, context.Cause(ctx))
		}
		v.watch(b)
	}
}

// open loads the stream, and takes over what another process left running.
func (v *drive) open(ctx context.Context, b *batch) (err error) {
	if v.streamState, err = load(ctx, v.e.c.Store, v.stream); err == nil && v.d.InFlight() {
		v.handle(b, belay.Order{Principal: "runtime", Session: v.session, Stream: v.stream, Command: belay.TakeOver{Epoch: v.own.epoch}})
	}
	return err
}

// takeInbox handles the waiting commands.
func (v *drive) takeInbox(ctx context.Context, b *batch) error {
	orders, err := v.e.c.Store.Inbox(ctx, v.stream)
	if err != nil {
		return err
	}
	return v.take(ctx, b, orders)
}

// take handles commands in order.
func (v *drive) take(ctx context.Context, b *batch, orders []belay.Order) error {
	for _, o := range orders {
		if c, ok := o.Command.(belay.RespondAction); ok { // what is allowed depends on the turn's rules
			if err := v.supply(ctx); err != nil {
				return err
			}
			if err := v.respond(ctx, b, o, c); err != nil {
				return err
			}
		} else {
			v.handle(b, o)
		}
		b.consumed = append(b.consumed, o.ID)
	}
	return nil
}

// respond lets the thread handle an answer, with its arguments as they were read.
func (v *drive) respond(ctx context.Context, b *batch, o belay.Order, c belay.RespondAction) error {
	read, err := v.arguments(ctx, c)
	switch {
	case err == nil:
		v.handleAs(b, o, read)
	case belay.CodeOf(err) == belay.CodeBadArguments, errors.Is(err, errNoAnswer):
		v.refuse(b, o, err)
	default:
		return err
	}
	return nil
}

// wait blocks until something happened and collects all that has. It reports
// whether the inbox may have something.
func (v *drive) wait(ctx context.Context, b *batch, at time.Time) (inbox bool) {
	due, stop := timerAt(at, v.now())
	defer stop()
	select {
	case r := <-v.reports:
		v.record(b, r)
	case <-v.nudge:
		inbox = true
	case <-due:
	case <-ctx.Done():
	}
	return v.collect(b) || inbox
}

// collect takes what has happened. It reports whether the inbox may have something.
func (v *drive) collect(b *batch) (inbox bool) {
	for {
		select {
		case r := <-v.reports:
			v.record(b, r)
		case <-v.nudge:
			inbox = true
		default:
			return inbox
		}
	}
}

// timerAt fires at a time; zero is never. stop ends it.
func timerAt(at, now time.Time) (due <-chan time.Time, stop func() bool) {
	if at.IsZero() {
		return nil, func() bool { return false }
	}
	t := time.NewTimer(max(at.Sub(now), 0))
	return t.C, t.Stop
}

// earliest of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// record takes what an effect reports. One that was given up isn't heard, and doesn't
// end a later run of the same key.
func (v *drive) record(b *batch, r report) {
	select {
	case <-r.run.gone:
		if r.ack != nil {
			r.ack <- errGivenUp
		}
		return
	default:
	}
	if r.ended {
		r.run.cancel()
		delete(v.running, r.run.key)
		if _, waits := r.run.eff.(core.HoldCall); waits && !r.run.told.IsZero() {
			r.facts = nil // what ended the wait says how the call ends
		}
		if len(r.facts) == 0 && r.run.late { // it would be begun again, and be silent again
			r.facts = v.end(r.run)
		}
	}
	v.add(b, r.facts, nil, "")
	if r.ack != nil {
		b.acks = append(b.acks, r.ack)
	}
}

// leave stops everything in flight, records what is known of it, and returns cause.
func (v *drive) leave(ctx context.Context, b *batch, cause error) error {
	broken := ctx.Err() == nil || errors.Is(cause, store.ErrStale)
	for _, r := range v.running {
		r.stop(v.e.c.Now())
	}
	b.answer(cause) // what came in the same moment waits for an append, too
	for len(v.running) > 0 || v.startLeftover(ctx) {
		look, stop := timerAt(v.watchAt(), v.now())
		select {
		case r := <-v.reports:
			v.record(b, r)
			b.answer(cause) // it must not wait for the last append: that one waits for it
		case <-look:
			v.watch(b)
		}
		stop()
	}
	v.wg.Wait()
	if broken {
		return cause
	}
	rd := v.d.Next(v.now())
	if len(rd.Decided) > 0 || len(v.d.Missing()) > 0 { // something follows: the next drive decides it
		rd.Effects = append(rd.Effects, core.Timer{})
	}
	return errors.Join(cause, v.append(ctx, b, rd))
}

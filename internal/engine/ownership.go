package engine

import (
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// ownership is this engine's claim on a session.
type ownership struct {
	session belay.SessionID
	passive bool // only to handle commands
	users   int
	driven  bool                            // one of them drives
	epoch   int64                           // 0: the claim is being made or given back
	kick    chan struct{}                   // capacity 1: there is post, for a stream without a drive
	post    mailbox                         // of streams without a drive
	founded map[belay.StreamID]*streamState // of a session that began here: its streams, until other commands are handled
}

func (o *ownership) notify() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// claimSoon waits a moment for a process that only brings a command.
func (e *Engine) claimSoon(ctx context.Context, id belay.SessionID, to purpose) (*ownership, error) {
	for try := 0; ; try++ {
		own, err := e.claim(ctx, id, to)
		if _, owned := errors.AsType[*store.OwnedError](err); !owned || try == claimTries {
			return own, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(claimPause):
		}
	}
}

const (
	claimTries = 10
	claimPause = 50 * time.Millisecond
)

// Own claims a session ahead of driving it, so that what its owner alone may
// settle can be settled first, and keeps it until release is called. It returns
// the epoch of the claim; *store.OwnedError if another process has the session.
func (e *Engine) Own(ctx context.Context, id belay.SessionID) (epoch int64, release func() error, err error) {
	own, err := e.claimSoon(ctx, id, hold)
	if err != nil {
		return 0, nil, err
	}
	k := e.acquireLease(ctx)
	return own.epoch, func() error {
		e.releaseLease(k)
		return e.release(context.WithoutCancel(ctx), own, hold)
	}, nil
}

// What a claim is for.
type purpose int

const (
	hold   purpose = iota // to be there first; it may be driven by another
	drives                // to run the streams: one at a time
	bring                 // to handle commands while the session isn't driven; holding it is no obstacle
)

// claim makes the session this engine's, or joins the claim it has already.
func (e *Engine) claim(ctx context.Context, id belay.SessionID, to purpose) (*ownership, error) {
	own, first := e.join(id, to)
	if own == nil {
		return nil, &store.OwnedError{Session: id, Owner: e.c.Owner}
	}
	if !first {
		return own, nil
	}
	epoch, err := e.c.Store.Claim(ctx, id, e.c.Owner, Lease)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		delete(e.owned, id)
		return nil, err
	}
	own.epoch = epoch
	return own, nil
}

// join is the engine's claim on a session as far as it goes with the purpose,
// and whether it is still to be made.
func (e *Engine) join(id belay.SessionID, to purpose) (own *ownership, first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	own = e.owned[id]
	switch {
	case own == nil:
		own, first = &ownership{session: id, passive: to == bring, kick: make(chan struct{}, 1)}, true
		e.owned[id] = own
	case own.epoch == 0 || own.passive || own.driven && to != hold:
		return nil, false
	}
	if to != bring { // it may write what isn't followed here
		e.resting.forget(id)
	}
	if to == bring { // it handles what the streams don't know of
		own.founded = nil
	}
	own.users++
	own.driven = own.driven || to == drives
	own.passive = own.passive || to == bring
	return own, first
}

// release ends one use of a claim, and with the last one the claim.
func (e *Engine) release(ctx context.Context, own *ownership, from purpose) error {
	e.mu.Lock()
	own.users--
	switch from {
	case drives:
		own.driven = false
	case bring:
		own.passive = false
	}
	if own.users > 0 {
		e.mu.Unlock()
		return nil
	}
	epoch := own.epoch
	own.epoch = 0
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.owned, own.session)
	}()
	return e.c.Store.Release(ctx, own.session, epoch)
}

// leaseRenewer does what all sessions of an engine share while any runs: it renews
// the leases and looks for commands that other processes bring.
type leaseRenewer struct {
	users int
	ctx   context.Context // ends, with its cause, when the sessions can't be kept
	stop  context.CancelCauseFunc
	done  chan struct{}
}

// watchEvery is how often, at most, the inboxes are looked at after commits
// that may be another process's.
const watchEvery = 100 * time.Millisecond

// acquireLease joins a session to the keeper, starting it for the first.
func (e *Engine) acquireLease(ctx context.Context) *leaseRenewer {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keeper == nil {
		k := &leaseRenewer{done: make(chan struct{})}
		k.ctx, k.stop = context.WithCancelCause(context.WithoutCancel(ctx))
		e.keeper = k
		changed := e.c.Store.Changed(k.ctx) // before the session looks for itself: what comes after that is seen
		go func() {
			defer close(k.done)
			e.renew(k, changed)
		}()
	}
	e.keeper.users++
	return e.keeper
}

// releaseLease leaves the keeper and ends it with the last session.
func (e *Engine) releaseLease(k *leaseRenewer) {
	e.mu.Lock()
	k.users--
	last := k.users == 0
	if last {
		e.keeper = nil
	}
	e.mu.Unlock()
	if last {
		k.stop(nil)
		<-k.done
	}
}

// renew renews and watches. When the leases can't be kept for most of their
// time, another process may take the sessions, so everything here stops.
func (e *Engine) renew(k *leaseRenewer, changed <-chan struct{}) {
	renew := time.NewTicker(Lease / 3)
	defer renew.Stop()
	look := time.NewTimer(watchEvery)
	defer look.Stop()
	kept := time.Now()
	e.leases.renewed(kept)
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-renew.C:
			at := time.Now()
			err := e.c.Store.Renew(k.ctx, e.c.Owner, Lease)
			if err == nil {
				kept = at
				e.leases.renewed(kept)
			} else if time.Since(kept) > Lease*2/3 {
				k.stop(errors.Join(store.ErrStale, err))
			}
		case <-look.C:
			select {
			case <-changed:
				changed = e.c.Store.Changed(k.ctx)
				e.deliver(k.ctx)
			default:
			}
			look.Reset(watchEvery)
		}
	}
}

// deliver wakes the sessions of this engine whose streams have commands waiting.
func (e *Engine) deliver(ctx context.Context) {
	rows, err := e.c.Store.Waiting(ctx)
	if err != nil {
		return // the drives meet the same store and report it
	}
	for _, row := range rows {
		e.notify(row.Session, row.Stream)
	}
}

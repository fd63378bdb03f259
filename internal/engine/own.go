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
	epoch int64
	users int
	kick  chan struct{} // capacity 1: a stream of the session has something to do
}

func (o *ownership) poke() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// claimSoon waits a moment for a process that only brings a command.
func (e *Engine) claimSoon(ctx context.Context, id belay.SessionID) (*ownership, error) {
	for try := 0; ; try++ {
		own, err := e.claim(ctx, id)
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
	own, err := e.claimSoon(ctx, id)
	if err != nil {
		return 0, nil, err
	}
	k := e.keep(ctx)
	return own.epoch, func() error {
		e.unkeep(k)
		return e.release(context.WithoutCancel(ctx), id)
	}, nil
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

// keeper does what all sessions of an engine share while any runs: it renews
// the leases and looks for commands that other processes bring.
type keeper struct {
	users int
	ctx   context.Context // ends, with its cause, when the sessions can't be kept
	stop  context.CancelCauseFunc
	done  chan struct{}
}

// watchEvery is how often, at most, the inboxes are looked at after commits
// that may be another process's.
const watchEvery = 100 * time.Millisecond

// keep joins a session to the keeper, starting it for the first.
func (e *Engine) keep(ctx context.Context) *keeper {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keeper == nil {
		k := &keeper{done: make(chan struct{})}
		k.ctx, k.stop = context.WithCancelCause(context.WithoutCancel(ctx))
		e.keeper = k
		go func() {
			defer close(k.done)
			e.tend(k)
		}()
	}
	e.keeper.users++
	return e.keeper
}

// unkeep leaves the keeper and ends it with the last session.
func (e *Engine) unkeep(k *keeper) {
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

// tend renews and watches. When the leases can't be kept for most of their
// time, another process may take the sessions, so everything here stops.
func (e *Engine) tend(k *keeper) {
	renew := time.NewTicker(Lease / 3)
	defer renew.Stop()
	look := time.NewTimer(watchEvery)
	defer look.Stop()
	changed := e.c.Store.Changed(k.ctx)
	kept := time.Now()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-renew.C:
			err := e.c.Store.Renew(k.ctx, e.c.Owner, Lease)
			if err == nil {
				kept = time.Now()
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
	rows, err := e.c.Store.Lanes(ctx, "")
	if err != nil {
		return // the drives meet the same store and report it
	}
	for _, row := range rows {
		if row.Inbox > 0 {
			e.notify(row.Session, row.Stream)
		}
	}
}

// notify tells a stream of this process that its inbox has something.
func (e *Engine) notify(id belay.SessionID, s belay.StreamID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v := e.drives[s]; v != nil {
		v.poke()
	} else if own := e.owned[id]; own != nil {
		own.poke()
	}
}

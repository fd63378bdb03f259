package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store"
)

// Lease is how long a session stays owned without a sign of life.
const Lease = 15 * time.Second

// Leases are the leases of an engine's sessions, with the programs that end by themselves when the leases do: a runtime
// that is stopped, and not dead, ends nothing, and another one takes its
// sessions then.
type Leases struct {
	mu    sync.Mutex
	kept  time.Time // when the leases were renewed last; zero: they aren't renewed
	holds map[process.LeasedHold]bool
}

// renewed records when the leases were renewed.
func (l *Leases) renewed(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = at
	for h := range l.holds {
		l.extend(h)
	}
}

// Add gives a program as long as the leases last, and again with each renewal.
func (l *Leases) Add(h process.LeasedHold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds == nil {
		l.holds = map[process.LeasedHold]bool{}
	}
	l.holds[h] = true
	l.extend(h)
}

func (l *Leases) extend(h process.LeasedHold) {
	if !l.kept.IsZero() {
		h.Extend(Lease - time.Since(l.kept)) //nolint:errcheck // who doesn't hear it has ended
	}
}

// Remove forgets a program, which has ended.
func (l *Leases) Remove(h process.LeasedHold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.holds, h)
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

// acquireLease joins a session to the keeper, starting it for the first. One that has ended,
// because the leases of its sessions couldn't be kept, is left to those: what is claimed now
// doesn't wait until all of them have left.
func (c *claims) acquireLease(ctx context.Context) *leaseRenewer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeper == nil || c.keeper.ctx.Err() != nil {
		k := &leaseRenewer{done: make(chan struct{})}
		k.ctx, k.stop = context.WithCancelCause(context.WithoutCancel(ctx))
		c.keeper = k
		changed := c.st.Changed(k.ctx) // before the session looks for itself: what comes after that is seen
		go func() {
			defer close(k.done)
			c.renew(k, changed)
		}()
	}
	c.keeper.users++
	return c.keeper
}

// releaseLease leaves the keeper and ends it with the last session.
func (c *claims) releaseLease(k *leaseRenewer) {
	c.mu.Lock()
	k.users--
	last := k.users == 0
	if last && c.keeper == k {
		c.keeper = nil
	}
	c.mu.Unlock()
	if last {
		k.stop(nil)
		<-k.done
	}
}

// renew renews and watches. When the leases can't be kept for most of their
// time, another process may take the sessions, so everything here stops.
func (c *claims) renew(k *leaseRenewer, changed <-chan struct{}) {
	renew := time.NewTicker(Lease / 3)
	defer renew.Stop()
	look := time.NewTimer(watchEvery)
	defer look.Stop()
	kept := time.Now()
	c.leases.renewed(kept)
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-renew.C:
			at := time.Now()
			err := c.st.Renew(k.ctx, c.owner, Lease)
			if err == nil {
				kept = at
				c.leases.renewed(kept)
			} else if time.Since(kept) > Lease*2/3 {
				k.stop(errors.Join(store.ErrStale, err))
			}
		case <-look.C:
			select {
			case <-changed:
				changed = c.st.Changed(k.ctx)
				c.deliver(k.ctx)
			default:
			}
			look.Reset(watchEvery)
		}
	}
}

// deliver wakes the sessions of this engine whose streams have commands waiting.
func (c *claims) deliver(ctx context.Context) {
	rows, err := c.st.Waiting(ctx)
	if err != nil {
		return // the drives meet the same store and report it
	}
	for _, row := range rows {
		c.notify(row.Session, row.Stream)
	}
}

package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// claims are the sessions that an engine owns.
type claims struct {
	st    store.Run
	owner store.Owner

	mu     sync.Mutex
	owned  map[belay.SessionID]*ownership
	keeper *leaseRenewer // while a session runs
	leases Leases
}

// ownership is a claim on a session. The lock of the claims guards it.
type ownership struct {
	session belay.SessionID
	passive bool // only to handle commands
	users   int
	driven  bool  // one of them drives
	epoch   int64 // 0: the claim is being made or given back
	mailbox mailbox
	founded map[belay.StreamID]*streamState // of a session that began here: its streams, until other commands are handled
}

func newOwnership(id belay.SessionID, passive bool) *ownership {
	return &ownership{session: id, passive: passive, mailbox: newMailbox()}
}

// has reports whether a session is claimed here.
func (c *claims) has(id belay.SessionID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owned[id] != nil
}

// notify tells a stream of a claimed session that its inbox may have something
// that wasn't handed over. Without a stream it is any of the session.
func (c *claims) notify(id belay.SessionID, s belay.StreamID) {
	c.mu.Lock()
	own := c.owned[id]
	c.mu.Unlock()
	if own != nil {
		own.mailbox.notify(s)
	}
}

// claimSoon waits a moment for a process that only brings a command.
func (c *claims) claimSoon(ctx context.Context, id belay.SessionID, to purpose) (*ownership, error) {
	for try := 0; ; try++ {
		own, err := c.claim(ctx, id, to)
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

// What a claim is for.
type purpose int

const (
	hold   purpose = iota // to be there first; it may be driven by another
	drives                // to run the streams: one at a time
	bring                 // to handle commands while the session isn't driven; holding it is no obstacle
)

// claim makes the session this engine's, or joins the claim it has already.
func (c *claims) claim(ctx context.Context, id belay.SessionID, to purpose) (*ownership, error) {
	own, first := c.join(id, to)
	if own == nil {
		return nil, &store.OwnedError{Session: id, Owner: c.owner}
	}
	if !first {
		return own, nil
	}
	epoch, err := c.st.Claim(ctx, id, c.owner, Lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.owned, id)
		return nil, err
	}
	own.epoch = epoch
	return own, nil
}

// join is the engine's claim on a session as far as it goes with the purpose,
// and whether it is still to be made.
func (c *claims) join(id belay.SessionID, to purpose) (own *ownership, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own = c.owned[id]
	switch {
	case own == nil:
		own, first = newOwnership(id, to == bring), true
		c.owned[id] = own
	case own.epoch == 0 || own.passive || own.driven && to != hold:
		return nil, false
	}
	if to == bring { // it handles what the streams don't know of
		own.founded = nil
	}
	own.users++
	own.driven = own.driven || to == drives
	own.passive = own.passive || to == bring
	return own, first
}

// shared reports whether a claim has more than one user.
func (c *claims) shared(own *ownership) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return own.users > 1
}

// release ends one use of a claim, and with the last one the claim.
func (c *claims) release(ctx context.Context, own *ownership, from purpose) error {
	c.mu.Lock()
	own.users--
	switch from {
	case drives:
		own.driven = false
	case bring:
		own.passive = false
	}
	if own.users > 0 {
		c.mu.Unlock()
		return nil
	}
	epoch := own.epoch
	own.epoch = 0
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.owned, own.session)
	}()
	return c.st.Release(ctx, own.session, epoch)
}

// reserve claims a session that begins, against others in this process; nil: it
// is claimed.
func (c *claims) reserve(id belay.SessionID) *ownership {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owned[id] != nil {
		return nil
	}
	own := newOwnership(id, true)
	own.users = 1
	c.owned[id] = own
	return own
}

// disown ends what reserve began.
func (c *claims) disown(own *ownership) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.owned, own.session)
}

// founded notes that a reserved session began. With the states of its streams it
// stays claimed, to be driven from there.
func (c *claims) founded(own *ownership, known map[belay.StreamID]*streamState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own.epoch, own.passive, own.founded = 1, known == nil, known
}

// takeFounded returns the stream states of a session that began here and wasn't
// changed since. nil: the store has to be read.
func (c *claims) takeFounded(own *ownership) map[belay.StreamID]*streamState {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := own.founded
	own.founded = nil
	return known
}

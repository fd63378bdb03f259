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
	users   [purposes]int
	epoch   int64 // 0: the claim is being made or given back
	mailbox mailbox
}

// What a claim is used for.
type purpose int

const (
	hold   purpose = iota // to be there first; it may be driven by another
	drives                // to run the streams: one at a time
	bring                 // to handle commands while the session isn't driven; holding it is no obstacle
	purposes
)

// allows reports whether a claim can be used for something more.
func (o *ownership) allows(to purpose) bool {
	return o.epoch > 0 && o.users[bring] == 0 && (o.users[drives] == 0 || to == hold)
}

// has reports whether a session is claimed here.
func (c *claims) has(id belay.SessionID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owned[id] != nil
}

// notify tells a stream of a claimed session that its inbox may have something.
// Without a stream it is any of the session.
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
	if own == nil {
		own, first = c.add(id), true
	} else if !own.allows(to) {
		return nil, false
	}
	own.users[to]++
	return own, first
}

// add makes a session known, which isn't. The lock is held.
func (c *claims) add(id belay.SessionID) *ownership {
	own := &ownership{session: id, mailbox: newMailbox()}
	c.owned[id] = own
	return own
}

// release ends one use of a claim, and with the last one the claim.
func (c *claims) release(ctx context.Context, own *ownership, from purpose) error {
	c.mu.Lock()
	own.users[from]--
	if own.users != [purposes]int{} {
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
	own := c.add(id)
	own.epoch, own.users[bring] = 1, 1
	return own
}

// begun ends what reserve began. A session that is kept is held from now on.
func (c *claims) begun(own *ownership, kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own.users = [purposes]int{hold: 1}; !kept {
		delete(c.owned, own.session)
	}
}

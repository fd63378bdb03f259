package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/internal/store"
)

// unrenewed is a store that renews no lease while it is broken.
type unrenewed struct {
	store.Run
	broken bool
}

func (s *unrenewed) Renew(context.Context, store.Owner, time.Duration) error {
	if s.broken {
		return errors.New("the disk is full")
	}
	return nil
}

func (s *unrenewed) Changed(context.Context) <-chan struct{} { return nil }

// TestASessionDoesntJoinAKeeperThatEnded: the leases of some sessions couldn't be renewed. A
// session that is claimed before the last of them has left is kept all the same.
// Guarantee: S4.
func TestASessionDoesntJoinAKeeperThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &unrenewed{broken: true}
		c := &claims{st: st}
		old := c.acquireLease(t.Context())
		time.Sleep(2 * Lease)
		if !errors.Is(context.Cause(old.ctx), store.ErrStale) {
			t.Fatalf("the leases weren't renewed, and the keeper goes on: %v", context.Cause(old.ctx))
		}
		st.broken = false
		kept := c.acquireLease(t.Context())
		if kept.ctx.Err() != nil {
			t.Errorf("a new session can't be kept: %v", context.Cause(kept.ctx))
		}
		c.releaseLease(old)
		time.Sleep(Lease)
		if also := c.acquireLease(t.Context()); also != kept || also.ctx.Err() != nil {
			t.Error("the next one has another keeper")
		}
		c.releaseLease(kept)
		c.releaseLease(kept)
		if c.keeper != nil || kept.ctx.Err() == nil {
			t.Error("a keeper is left that keeps nothing")
		}
	})
}

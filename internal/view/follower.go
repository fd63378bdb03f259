package view

import (
	"context"
	"time"

	"github.com/belay-run/belay/internal/store"
)

// Follower keeps the view of one store up for everybody in a process. One at a
// time folds, and who comes meanwhile waits for that instead of folding the same
// facts again.
type Follower struct {
	p    Projector
	turn chan struct{} // holds one: somebody folds
}

// followed is how many facts a follower folds between two saves. A row that
// changes often is so written once for many facts.
const followed = 2048

// pace is how long Run rests between two looks at the log, so that facts which
// come together are folded together.
const pace = 250 * time.Millisecond

// NewFollower makes a follower of a store's view.
func NewFollower(st store.Store) *Follower {
	return &Follower{p: Projector{Store: st, Chunk: followed}, turn: make(chan struct{}, 1)}
}

// Catchup returns when the view has what the log had at the call.
func (f *Follower) Catchup(ctx context.Context) error {
	end, err := f.p.Store.End(ctx)
	if err != nil {
		return err
	}
	if at, err := At(ctx, f.p.Store); err != nil || at >= end {
		return err
	}
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-f.turn }()
	return f.p.upTo(ctx, end)
}

// Run folds what comes until ctx ends, and returns the context's error, or the
// store's.
func (f *Follower) Run(ctx context.Context) error {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		changed := f.p.Store.Changed(ctx)
		if err := f.Catchup(ctx); err != nil {
			return err
		}
		rest.Reset(pace)
		for waiting, resting := changed, rest.C; waiting != nil || resting != nil; {
			select {
			case <-waiting:
				waiting = nil
			case <-resting:
				resting = nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// Lag is how far the view is behind the log, in positions.
func (f *Follower) Lag(ctx context.Context) (int64, error) {
	end, err := f.p.Store.End(ctx)
	if err != nil {
		return 0, err
	}
	at, err := At(ctx, f.p.Store)
	return max(int64(end-at), 0), err
}

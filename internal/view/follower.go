package view

import (
	"context"
	"time"

	"github.com/belay-run/belay/internal/store"
)

// Fold is a view as a follower sees it: something that is folded up to a position.
type Fold interface {
	// At is the position up to which the view is folded.
	At(ctx context.Context) (store.Position, error)
	// UpTo folds until the view has come as far as end.
	UpTo(ctx context.Context, end store.Position) error
	// Step folds what is folded between two saves, and reports whether there is more.
	Step(ctx context.Context) (more bool, err error)
}

// Follower keeps a view of one store up to date for all its users in a process.
// One at a time folds, and others wait for that instead of folding the same
// facts again.
type Follower struct {
	st     store.Store
	fold   Fold
	gentle bool
	turn   chan struct{} // full while one of its users folds
}

// followed is how many facts a follower folds between two saves. A row that
// changes often is so written once for many facts.
const followed = 2048

// pace is how long Run rests between two looks at the log, so that facts which
// come together are folded together.
const pace = 250 * time.Millisecond

// share is how much of the time a gentle follower may work: one part in so many.
const share = 10

// NewFollower makes a follower of a store's view of sessions.
func NewFollower(st store.Store) *Follower {
	return &Follower{st: st, fold: Projector{Store: st, Chunk: followed}, turn: make(chan struct{}, 1)}
}

// NewLazyFollower makes a follower of a view that is wanted seldom and costs more: Run
// folds a step at a time and rests nine times as long as that took, and 250 ms
// at least, so a log that grows fast leaves it behind. Catchup brings it up.
func NewLazyFollower(st store.Store, fold Fold) *Follower {
	return &Follower{st: st, fold: fold, gentle: true, turn: make(chan struct{}, 1)}
}

// Catchup returns when the view has what the log had at the call.
func (f *Follower) Catchup(ctx context.Context) error {
	end, err := f.st.End(ctx)
	if err != nil {
		return err
	}
	if at, err := f.fold.At(ctx); err != nil || at >= end {
		return err
	}
	if err := f.take(ctx); err != nil {
		return err
	}
	defer f.give()
	return f.fold.UpTo(ctx, end)
}

// take waits for the turn to fold; give passes it on.
func (f *Follower) take(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *Follower) give() { <-f.turn }

// Run folds what comes until ctx ends, and returns the context's error, or the
// store's.
func (f *Follower) Run(ctx context.Context) error {
	rest := time.NewTimer(0)
	defer rest.Stop()
	if f.gentle {
		rest.Reset(pace) // whoever starts has better things to do
		if err := both(ctx, nil, rest.C); err != nil {
			return err
		}
	}
	for {
		changed := f.st.Changed(ctx)
		begun := time.Now()
		more, err := f.round(ctx)
		if err != nil {
			return err
		}
		rest.Reset(pace)
		if f.gentle {
			rest.Reset(max(pace, (share-1)*time.Since(begun)))
		}
		if more {
			changed = nil
		}
		if err := both(ctx, changed, rest.C); err != nil {
			return err
		}
	}
}

// round folds what Run folds before it rests, and reports whether there is more.
func (f *Follower) round(ctx context.Context) (more bool, err error) {
	if !f.gentle {
		return false, f.Catchup(ctx)
	}
	if err := f.take(ctx); err != nil {
		return false, err
	}
	defer f.give()
	return f.fold.Step(ctx)
}

// both waits for two things; nil is nothing to wait for.
func both(ctx context.Context, changed <-chan struct{}, rested <-chan time.Time) error {
	for changed != nil || rested != nil {
		select {
		case <-changed:
			changed = nil
		case <-rested:
			rested = nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Lag is how far the view is behind the log, in positions.
func (f *Follower) Lag(ctx context.Context) (int64, error) {
	end, err := f.st.End(ctx)
	if err != nil {
		return 0, err
	}
	at, err := f.fold.At(ctx)
	return max(int64(end-at), 0), err
}

package app

import (
	"context"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/store"
)

// UseOfTurn is how much of what a turn was given its thread's model used.
func UseOfTurn(ctx context.Context, st store.Store, thread belay.ThreadID, turn belay.TurnID) (belay.ContextUse, error) {
	return history.UseOfTurn(ctx, st, thread, turn)
}

// usedThreads is how many threads are looked at for what was used: all that was said in
// them is read.
const usedThreads = 100

// UseOf is how much of what they were given the models of threads used, the newest of
// them if they are many. A thread whose content isn't kept any more is left out.
func UseOf(ctx context.Context, st store.Store, threads []belay.ThreadID) (sum belay.ContextUse, err error) {
	if n := len(threads); n > usedThreads {
		threads, sum.Newest = threads[n-usedThreads:], usedThreads
	}
	for _, id := range threads {
		u, err := history.UseOfThread(ctx, st, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return sum, err
		}
		sum.Given, sum.Cited = sum.Given+u.Given, sum.Cited+u.Cited
		sum.Uncited = window.Largest(append(sum.Uncited, u.Uncited...))
	}
	return sum, nil
}

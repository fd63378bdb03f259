package history

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/store"
)

// UseOfTurn is how much of what a turn was given its thread's model used: of a thread with one
// turn the same as of the thread.
func UseOfTurn(ctx context.Context, st store.Run, id belay.ThreadID, turn belay.TurnID) (belay.ContextUse, error) {
	return use(ctx, st, id, func(m Spoken) bool { return m.Turn == turn })
}

// UseOfThread is how much of what it was given a thread's model used, in all its turns.
// What the thread began with wasn't given to it.
func UseOfThread(ctx context.Context, st store.Run, id belay.ThreadID) (belay.ContextUse, error) {
	return use(ctx, st, id, func(Spoken) bool { return true })
}

func use(ctx context.Context, st store.Run, id belay.ThreadID, counts func(Spoken) bool) (belay.ContextUse, error) {
	var u window.Use
	for m, err := range Transcript(ctx, st, id) {
		if err != nil {
			return belay.ContextUse{}, err
		}
		u.Take(m.Message, !m.Time.IsZero() && counts(m))
	}
	return u.Sum(), nil
}

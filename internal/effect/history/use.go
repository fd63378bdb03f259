package history

import (
	"context"
	"math"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/store"
)

// UseOfTurn is how much of what its last turn was given a thread's model used, of what
// stands in the window that its requests began from.
func UseOfTurn(ctx context.Context, st store.Run, s belay.StreamID, from int64) (belay.ContextUse, error) {
	c := newConversation(s)
	if err := c.UpTo(ctx, st, from, math.MaxInt64); err != nil {
		return belay.ContextUse{}, err
	}
	begin := 0
	if n := len(c.turns); n > 0 {
		begin = c.turns[n-1].from
	}
	var u window.Use
	for i, m := range c.msgs {
		u.Take(m, i >= begin)
	}
	return u.Sum(), nil
}

// UseOfThread is how much of what it was given a thread's model used, in all its turns.
// What the thread began with wasn't given to it.
func UseOfThread(ctx context.Context, st store.Run, id belay.ThreadID) (belay.ContextUse, error) {
	var u window.Use
	for m, err := range Transcript(ctx, st, id) {
		if err != nil {
			return belay.ContextUse{}, err
		}
		u.Take(m.Message, !m.Time.IsZero())
	}
	return u.Sum(), nil
}

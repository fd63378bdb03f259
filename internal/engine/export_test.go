package engine

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Conversation folds a thread's conversation from the beginning of its log.
func Conversation(ctx context.Context, st store.Store, s belay.StreamID, to int64) ([]belay.Message, error) {
	c := newConv(s)
	err := c.upTo(ctx, st, to)
	return c.msgs, err
}

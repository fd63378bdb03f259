package history

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/store"
)

// Cache keeps what was used last: conversations, by their threads, and the chunks of
// texts, by their digests, for all threads that have them.
type Cache struct {
	st      store.Run
	convs   lru.Part[belay.StreamID, *Conversation]
	entires lru.Part[entire, *Conversation]
	indexes lru.Part[belay.Digest, *window.Index]
}

// entire is the key of a thread's conversation with all its messages.
type entire belay.StreamID

// NewCache keeps what it keeps in c.
func NewCache(st store.Run, c *lru.Cache) *Cache {
	return &Cache{st, lru.Of[belay.StreamID, *Conversation](c), lru.Of[entire, *Conversation](c), lru.Of[belay.Digest, *window.Index](c)}
}

// Take removes a conversation from the cache for its only user.
func (c *Cache) Take(s belay.StreamID) *Conversation {
	if v, ok := c.convs.Take(s); ok {
		return v
	}
	return newConversation(s)
}

// Give puts it back; what wasn't used for longest makes room.
func (c *Cache) Give(v *Conversation) { c.convs.Put(v.stream, v, v.size) }

// index is the chunks of a text.
func (c *Cache) index(d belay.Digest, text string) *window.Index {
	x, ok := c.indexes.Take(d)
	if !ok {
		x = window.NewIndex(text, window.ChunkTokens)
	}
	c.indexes.Put(d, x, x.Size())
	return x
}

// Feed folds facts that were just appended, so that the next request needs no
// look into the store. A stream's first facts begin its conversation. One that is
// in use, or isn't right before the facts, reads them with its next request. So it does
// from a long answer on, of which nothing is held before it is sent.
func (c *Cache) Feed(ctx context.Context, s belay.StreamID, events []event.Envelope) {
	if s.Kind() != belay.KindThread || len(events) == 0 {
		return
	}
	v := c.Take(s)
	for _, ev := range events {
		if ev.Seq != v.seq+1 || v.seq == 0 && hasBase(ev.Data) || isLong(ev.Data) {
			break
		}
		if v.apply(ctx, c.st, ev) != nil {
			*v = *newConversation(s) // the next request folds anew and meets the error itself
			break
		}
	}
	if v.seq > 0 {
		c.Give(v)
	}
}

// longAnswer is how many bytes an answer has at least that isn't read when it is recorded.
const longAnswer = 256 << 10

func isLong(p event.Payload) bool {
	a, ok := p.(event.ModelCompleted)
	return ok && a.Text.Ref != nil && a.Text.Ref.Size >= longAnswer
}

package history

import (
	"container/list"
	"context"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/store"
)

// DefaultCache bounds what is kept in memory, in bytes over all threads.
const DefaultCache = 100 << 20

// Cache keeps what was used last: conversations, by their threads, and the chunks of
// texts, by their digests, for all threads that have them.
type Cache struct {
	st    store.Run
	most  int // bytes
	mu    sync.Mutex
	size  int
	order *list.List // of cached, the one used last in front
	byKey map[string]*list.Element
}

// cached is a *Conversation or a *window.Index.
type cached struct {
	key  string
	size int
	is   any
}

// NewCache returns an empty cache of at most so many bytes, but always of what was used
// last.
func NewCache(st store.Run, most int) *Cache {
	return &Cache{st: st, most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

// Take removes a conversation from the cache for its only user.
func (c *Cache) Take(s belay.StreamID) *Conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.remove(string(s)).(*Conversation); ok {
		return v
	}
	return newConversation(s)
}

// Give puts it back; what wasn't used for longest makes room.
func (c *Cache) Give(v *Conversation) { c.put(string(v.stream), v, v.size) }

// remove takes an entry out; nil when there is none.
func (c *Cache) remove(key string) any {
	el := c.byKey[key]
	if el == nil {
		return nil
	}
	e := c.order.Remove(el).(cached)
	delete(c.byKey, key)
	c.size -= e.size
	return e.is
}

func (c *Cache) put(key string, is any, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key) // a request that was given up may have put it back too
	c.byKey[key] = c.order.PushFront(cached{key, size, is})
	c.size += size
	for c.size > c.most && c.order.Len() > 1 {
		c.remove(c.order.Back().Value.(cached).key)
	}
}

// index is the chunks of a text.
func (c *Cache) index(d belay.Digest, text string) *window.Index {
	c.mu.Lock()
	x, ok := c.remove(string(d)).(*window.Index)
	c.mu.Unlock()
	if !ok {
		x = window.NewIndex(text, window.ChunkTokens)
	}
	c.put(string(d), x, x.Size())
	return x
}

// Feed folds facts that were just appended, so that the next request needs no
// look into the store. A stream's first facts begin its conversation. One that is
// in use, or isn't right before the facts, reads them with its next request.
func (c *Cache) Feed(ctx context.Context, s belay.StreamID, events []event.Envelope) {
	if s.Kind() != belay.KindThread || len(events) == 0 {
		return
	}
	v := c.Take(s)
	for _, ev := range events {
		if ev.Seq != v.seq+1 || v.seq == 0 && hasBase(ev.Data) {
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

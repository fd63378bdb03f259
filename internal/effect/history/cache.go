package history

import (
	"container/list"
	"context"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// budget bounds the conversations kept in memory, in bytes over all threads.
const budget = 64 << 20

// Cache keeps the conversations used last.
type Cache struct {
	st    store.Run
	mu    sync.Mutex
	size  int
	order *list.List // of *Conversation, the one used last in front
	byID  map[belay.StreamID]*list.Element
}

// NewCache returns an empty cache of the conversations in a store.
func NewCache(st store.Run) *Cache {
	return &Cache{st: st, order: list.New(), byID: map[belay.StreamID]*list.Element{}}
}

// Take removes a conversation from the cache for its only user.
func (c *Cache) Take(s belay.StreamID) *Conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byID[s]; el != nil {
		return c.remove(el)
	}
	return newConversation(s)
}

func (c *Cache) remove(el *list.Element) *Conversation {
	v := c.order.Remove(el).(*Conversation)
	delete(c.byID, v.stream)
	c.size -= v.size
	return v
}

// Give puts it back; the ones not used for longest make room.
func (c *Cache) Give(v *Conversation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byID[v.stream]; el != nil { // a request that was given up may have put it back too
		c.remove(el)
	}
	c.byID[v.stream] = c.order.PushFront(v)
	c.size += v.size
	for c.size > budget && c.order.Len() > 1 {
		c.remove(c.order.Back())
	}
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

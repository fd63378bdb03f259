package history

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// budget bounds the conversations kept in memory, in bytes over all threads.
const budget = 64 << 20

// Cache keeps the conversations used last.
type Cache struct {
	st     store.Run
	mu     sync.Mutex
	size   int
	order  *list.List // of *Conversation, the one used last in front
	byID   map[belay.StreamID]*list.Element
	missed map[belay.StreamID][]event.Envelope // by conversation in use: appended meanwhile
}

// NewCache returns an empty cache of the conversations in a store.
func NewCache(st store.Run) *Cache {
	return &Cache{st: st, order: list.New(), byID: map[belay.StreamID]*list.Element{}, missed: map[belay.StreamID][]event.Envelope{}}
}

// Take removes a conversation from the cache for its only user.
func (c *Cache) Take(s belay.StreamID) *Conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.remove(s)
	if v == nil {
		v = newConversation(s)
	}
	c.missed[s] = nil // in use
	return v
}

func (c *Cache) remove(s belay.StreamID) *Conversation {
	el := c.byID[s]
	if el == nil {
		return nil
	}
	v := c.order.Remove(el).(*Conversation)
	delete(c.byID, s)
	c.size -= v.size
	return v
}

// Give puts it back with what was appended meanwhile; the ones not used for
// longest make room.
func (c *Cache) Give(ctx context.Context, v *Conversation) {
	for c.catchUp(ctx, v) {
	}
}

// catchUp folds what a conversation in use has missed. When it has missed
// nothing more it is put back, under the same lock.
func (c *Cache) catchUp(ctx context.Context, v *Conversation) (again bool) {
	c.mu.Lock()
	missed := c.missed[v.stream]
	c.missed[v.stream] = nil
	if len(missed) == 0 {
		delete(c.missed, v.stream)
		c.keep(v)
		c.mu.Unlock()
		return false
	}
	c.mu.Unlock()
	for _, ev := range missed {
		if ev.Seq == v.seq+1 && v.apply(ctx, c.st, ev) != nil {
			*v = *newConversation(v.stream) // the next request folds anew and meets the error itself
			break
		}
	}
	return true
}

func (c *Cache) keep(v *Conversation) {
	c.remove(v.stream) // a request that was given up may have put it back too
	c.byID[v.stream] = c.order.PushFront(v)
	c.size += v.size
	for c.size > budget && c.order.Len() > 1 {
		old := c.order.Remove(c.order.Back()).(*Conversation)
		delete(c.byID, old.stream)
		c.size -= old.size
	}
}

// Feed folds facts that were just appended, so that the next request needs no
// look into the store. A stream's first facts begin its conversation. One that
// isn't right before the facts is left alone.
func (c *Cache) Feed(ctx context.Context, s belay.StreamID, events []event.Envelope) {
	if s.Kind() != belay.KindThread || len(events) == 0 {
		return
	}
	if v := c.toFeed(s, events); v != nil {
		c.Give(ctx, v)
	}
}

// toFeed takes the conversation that the facts follow, with them as missed. A
// conversation in use gets them from its user.
func (c *Cache) toFeed(s belay.StreamID, events []event.Envelope) *Conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if missed, inUse := c.missed[s]; inUse {
		c.missed[s] = append(missed, events...)
		return nil
	}
	var v *Conversation
	if el := c.byID[s]; el != nil && el.Value.(*Conversation).seq == events[0].Seq-1 {
		v = c.remove(s)
	} else if el == nil && events[0].Seq == 1 && !hasBase(events[0].Data) {
		v = newConversation(s)
	} else {
		return nil
	}
	c.missed[s] = slices.Clip(events)
	return v
}

// Package lru keeps values in memory that can be made again, those that were used
// last, up to so many bytes in all. Values of several types share a Cache; a Part is
// its values of one type. It promises that what a cache holds never has more bytes
// than its limit, but for a single value that has more by itself.
package lru

import (
	"container/list"
	"sync"
)

// Cache bounds the bytes of its parts' values together. It is safe for use by several
// goroutines.
type Cache struct {
	mu    sync.Mutex
	limit int
	size  int
	order list.List // of *entry, the one used last in front
	byKey map[any]*list.Element
}

type entry struct {
	key, value any
	size       int
}

// New returns an empty cache of at most so many bytes.
func New(limit int) *Cache { return &Cache{limit: limit, byKey: map[any]*list.Element{}} }

// Resize sets the limit.
func (c *Cache) Resize(limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = limit
	c.makeRoom()
}

func (c *Cache) makeRoom() {
	for c.size > c.limit && c.order.Len() > 1 {
		c.remove(c.order.Back())
	}
}

func (c *Cache) remove(el *list.Element) *entry {
	e := c.order.Remove(el).(*entry)
	delete(c.byKey, e.key)
	c.size -= e.size
	return e
}

func (c *Cache) put(e *entry) {
	if el := c.byKey[e.key]; el != nil {
		c.remove(el)
	}
	c.byKey[e.key] = c.order.PushFront(e)
	c.size += e.size
	c.makeRoom()
}

// Part is the values of type V of a cache, by keys of type K. Parts of the same two
// types are the same.
type Part[K comparable, V any] struct{ c *Cache }

// keyOf tells the keys of parts apart.
type keyOf[K comparable, V any] struct{ key K }

// Of is the part of a cache for some types.
func Of[K comparable, V any](c *Cache) Part[K, V] { return Part[K, V]{c} }

// Take removes a value from the cache, for its only user; ok is false if it isn't there.
func (p Part[K, V]) Take(key K) (v V, ok bool) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	el := p.c.byKey[keyOf[K, V]{key}]
	if el == nil {
		return v, false
	}
	return p.c.remove(el).value.(V), true
}

// Put adds a value of so many bytes, or replaces the one of this key.
func (p Part[K, V]) Put(key K, v V, size int) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.put(&entry{keyOf[K, V]{key}, v, size})
}

// Get returns a value that stays in the cache; ok is false if it isn't there.
func (p Part[K, V]) Get(key K) (v V, ok bool) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	el := p.c.byKey[keyOf[K, V]{key}]
	if el == nil {
		return v, false
	}
	p.c.order.MoveToFront(el)
	return el.Value.(*entry).value.(V), true
}

// Keys are the keys of its values, the one used last first.
func (p Part[K, V]) Keys() (keys []K) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	for el := p.c.order.Front(); el != nil; el = el.Next() {
		if k, ok := el.Value.(*entry).key.(keyOf[K, V]); ok {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// Share returns a value that stays in the cache: the one that is there, or a new one,
// which has no bytes until it is put.
func (p Part[K, V]) Share(key K, make func() V) V {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if el := p.c.byKey[keyOf[K, V]{key}]; el != nil {
		p.c.order.MoveToFront(el)
		return el.Value.(*entry).value.(V)
	}
	v := make()
	p.c.put(&entry{keyOf[K, V]{key}, v, 0})
	return v
}

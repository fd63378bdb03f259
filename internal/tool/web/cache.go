package web

import (
	"sync"
	"time"
)

// Bounds of what is kept of pages.
const (
	maxAge  = 15 * time.Minute
	maxKept = 32 << 20 // bytes, of all sessions of a process
)

// cache keeps pages for a while, so that the next piece of one is that of the same
// page. The zero value with a clock is ready.
type cache struct {
	now func() time.Time

	mu    sync.Mutex
	pages map[string]kept
	order []string // the oldest first
	size  int
}

type kept struct {
	page *page
	at   time.Time
}

func (c *cache) get(key string) *page {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.pages[key]
	if !ok || c.now().Sub(k.at).Abs() > maxAge {
		return nil
	}
	return k.page
}

func (c *cache) put(key string, p *page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil {
		c.pages = map[string]kept{}
	}
	if _, ok := c.pages[key]; ok {
		c.drop(key)
	}
	c.pages[key], c.order, c.size = kept{p, c.now()}, append(c.order, key), c.size+p.size()
	for len(c.order) > 0 && (c.size > maxKept || c.now().Sub(c.pages[c.order[0]].at).Abs() > maxAge) {
		c.drop(c.order[0])
	}
}

func (c *cache) drop(key string) {
	c.size -= c.pages[key].page.size()
	delete(c.pages, key)
	for i, k := range c.order {
		if k == key {
			c.order = append(c.order[:i], c.order[i+1:]...)
			return
		}
	}
}

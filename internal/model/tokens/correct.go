package tokens

import (
	"sync"

	"github.com/belay-run/belay"
)

// Bounds of what is learned.
const (
	leastFactor = 0.5
	mostFactor  = 2.0
	leastRaw    = 64   // a shorter request says nothing about the factor
	newest      = 0.25 // weight of the newest request, once there are some
	maxLearned  = 256  // models
)

// Corrections are how the requests of a process differed from their estimates, by
// vendor and model: a moving average of what was reported by what was estimated,
// from 0.5 to 2. They are safe for concurrent use and are in no log.
type Corrections struct {
	mu      sync.Mutex
	learned map[string]learned
}

type learned struct {
	factor float64
	seen   int
}

// factor is by how much estimates of a model are to be multiplied; 1 before
// anything was learned.
func (c *Corrections) factor(model string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.learned[model]; ok {
		return l.factor
	}
	return 1
}

// Learn takes what a provider reported for a request that was estimated before:
// raw is Estimate.Raw. Usage that wasn't reported teaches nothing.
func (c *Corrections) Learn(model string, raw int64, u belay.Usage) {
	if !u.Reported || u.Input <= 0 || raw < leastRaw {
		return
	}
	ratio := min(max(float64(u.Input)/float64(raw), leastFactor), mostFactor)
	c.mu.Lock()
	defer c.mu.Unlock()
	l, known := c.learned[model]
	switch {
	case !known && len(c.learned) >= maxLearned:
		return
	case !known && c.learned == nil:
		c.learned = map[string]learned{}
	}
	l.seen++
	weight := max(newest, 1/float64(l.seen))
	l.factor += weight * (ratio - l.factor)
	c.learned[model] = l
}

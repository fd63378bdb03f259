package wire

import "time"

// A circuit opens after circuitAt failures in a row. After circuitRest one
// request tries; it closes when that is answered, and rests twice as long, up to
// circuitMost, when it isn't.
const (
	circuitAt   = 5
	circuitRest = 15 * time.Second
	circuitMost = 4 * time.Minute
)

// circuit guards one model of a provider.
type circuit struct {
	failures int
	rest     time.Duration
	until    time.Time // it is open until then; zero: closed
	trying   bool      // one request is out to see
}

// try returns how long a request has to wait; zero: it may leave.
func (c *circuit) try(now time.Time) time.Duration {
	switch {
	case c.until.IsZero():
		return 0
	case now.Before(c.until):
		return c.until.Sub(now)
	case c.trying:
		return circuitRest
	}
	c.trying = true
	return 0
}

func (c *circuit) worked() { *c = circuit{} }

// gaveBack records that a request ended without a verdict on the provider.
func (c *circuit) gaveBack() { c.trying = false }

func (c *circuit) failed(now time.Time) {
	c.failures++
	if c.failures < circuitAt {
		return
	}
	c.rest = min(max(2*c.rest, circuitRest), circuitMost)
	c.until, c.trying = now.Add(c.rest), false
}

// A process may spend budgetFirst retries at once, and earns a part of one with
// each answer.
const (
	budgetFirst = 50
	budgetEarn  = 0.2
	budgetWait  = 30 * time.Second
)

// budget bounds retries over all sessions: when a vendor is down, a thousand
// sessions that each try four times are a storm.
type budget struct{ left float64 }

func newBudget() budget { return budget{budgetFirst} }

// take asks for a request that failed so many times before.
func (b *budget) take(failures int) bool {
	if failures == 0 {
		return true
	}
	if b.left < 1 {
		b.left += budgetEarn // so that even a provider that keeps failing is tried again
		return false
	}
	b.left--
	return true
}

func (b *budget) earn() { b.left = min(b.left+budgetEarn, budgetFirst) }

package server

import (
	"sync"
	"time"
)

// rateLimiter lets each caller do so many things in a second, and as many more at
// once after a pause.
type rateLimiter struct {
	perSecond float64
	burst     float64

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	left float64
	at   time.Time
}

// maxBuckets bounds the callers that are remembered. Who was silent is
// forgotten first; forgetting gives them a full bucket, which they had anyway.
const maxBuckets = 10_000

func newRates(perSecond, burst int) *rateLimiter {
	return &rateLimiter{perSecond: float64(perSecond), burst: float64(burst), buckets: map[string]*bucket{}}
}

// take reports whether the caller may do one more thing now.
func (l *rateLimiter) take(who string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[who]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			l.forget(now)
		}
		if len(l.buckets) >= maxBuckets {
			return false // everybody is busy: a stranger waits
		}
		b = &bucket{left: l.burst, at: now}
		l.buckets[who] = b
	}
	if d := now.Sub(b.at); d > 0 {
		b.left, b.at = min(l.burst, b.left+d.Seconds()*l.perSecond), now
	}
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// forget drops callers whose bucket is full again.
func (l *rateLimiter) forget(now time.Time) {
	for who, b := range l.buckets {
		if b.left+now.Sub(b.at).Seconds()*l.perSecond >= l.burst {
			delete(l.buckets, who)
		}
	}
}

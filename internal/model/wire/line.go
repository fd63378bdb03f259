package wire

import (
	"context"
	"sync"
	"time"
)

// line is where requests to a provider wait: first come, first served.
type line struct {
	first chan struct{} // held by the request that is next; those behind it wait for that in their order
	freed chan struct{} // the one that is next looks again

	mu       sync.Mutex
	limits   Limits
	out      int // requests that are out
	requests bucket
	tokens   bucket
}

func newLine() *line { return &line{first: make(chan struct{}, 1), freed: make(chan struct{}, 1)} }

// limit sets what counts from now on.
func (l *line) limit(x Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = x
	l.requests.rate, l.tokens.rate = x.Requests, x.Tokens
}

// enter waits for a place. A request that waits holds none.
func (l *line) enter(ctx context.Context, now func() time.Time) error {
	select {
	case l.first <- struct{}{}:
		defer func() { <-l.first }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		wait, free := l.take(now())
		if free {
			return nil
		}
		if err := pause(ctx, l.freed, wait); err != nil {
			return err
		}
	}
}

// take reports whether the request that is next may go, else how long it waits at
// most; zero is until a place is free.
func (l *line) take(now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits.Concurrent > 0 && l.out >= l.limits.Concurrent {
		return 0, false
	}
	if wait := max(l.requests.wait(now, 1), l.tokens.wait(now, 0)); wait > 0 {
		return wait, false
	}
	l.requests.spend(now, 1)
	l.out++
	return 0, true
}

// leave gives the place back. Tokens are known only now: too many are a debt
// that later requests wait for.
func (l *line) leave(now time.Time, tokens int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out--
	l.tokens.spend(now, float64(tokens))
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// pause waits to be woken, for a time if it isn't zero, or for the end.
func pause(ctx context.Context, woken <-chan struct{}, d time.Duration) error {
	var due <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-woken:
	case <-due:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// bucket holds what may be spent: a minute's worth at most, less after a debt.
type bucket struct {
	rate int // a minute; 0 is without limit
	left float64
	at   time.Time // left was counted then
}

// wait is how long until n can be spent and there is no debt.
func (b *bucket) wait(now time.Time, n float64) time.Duration {
	if b.rate <= 0 {
		return 0
	}
	b.fill(now)
	if b.left >= n {
		return 0
	}
	return time.Duration((n-b.left)/float64(b.rate)*float64(time.Minute)) + time.Nanosecond
}

func (b *bucket) spend(now time.Time, n float64) {
	if b.rate > 0 {
		b.fill(now)
		b.left -= n
	}
}

func (b *bucket) fill(now time.Time) {
	if b.at.IsZero() {
		b.left = float64(b.rate)
	} else if passed := now.Sub(b.at); passed > 0 {
		b.left = min(b.left+passed.Minutes()*float64(b.rate), float64(b.rate))
	}
	b.at = now
}

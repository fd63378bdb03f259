package gateway

import (
	"context"
	"sync"
	"time"
)

// line is where requests to a provider wait: first come, first served.
type line struct {
	mu       sync.Mutex
	limits   Limits
	out      int       // requests that are out
	waiting  []*waiter // in order
	requests bucket
	tokens   bucket
}

type waiter struct{ may chan struct{} }

func newLine() *line { return &line{} }

// limit sets what counts from now on.
func (l *line) limit(x Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = x
	l.requests.rate, l.tokens.rate = x.Requests, x.Tokens
}

// enter waits for a place. A request that waits holds none.
func (l *line) enter(ctx context.Context, now func() time.Time) error {
	l.mu.Lock()
	w := &waiter{make(chan struct{}, 1)}
	l.waiting = append(l.waiting, w)
	for {
		wait, free := l.next(w, now())
		if free {
			l.out++
			l.remove(w)
			l.wake()
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		err := pause(ctx, w.may, wait)
		l.mu.Lock()
		if err != nil {
			l.remove(w)
			l.wake()
			l.mu.Unlock()
			return err
		}
	}
}

// next reports whether the waiter may go, else how long it waits at most; zero is
// until it is woken.
func (l *line) next(w *waiter, now time.Time) (time.Duration, bool) {
	if l.waiting[0] != w || l.limits.Concurrent > 0 && l.out >= l.limits.Concurrent {
		return 0, false
	}
	if wait := max(l.requests.wait(now, 1), l.tokens.wait(now, 0)); wait > 0 {
		return wait, false
	}
	l.requests.spend(now, 1)
	return 0, true
}

// leave gives the place back. Tokens are known only now: too many are a debt
// that later requests wait for.
func (l *line) leave(now time.Time, tokens int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out--
	l.tokens.spend(now, float64(tokens))
	l.wake()
}

func (l *line) remove(w *waiter) {
	for i, o := range l.waiting {
		if o == w {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return
		}
	}
}

// wake lets the first look again.
func (l *line) wake() {
	if len(l.waiting) > 0 {
		select {
		case l.waiting[0].may <- struct{}{}:
		default:
		}
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

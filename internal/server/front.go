package server

import (
	"context"
	"sync"
	"time"

	"github.com/belay-run/belay/internal/collector"
)

// front is where commands are answered. Sessions that are about to run let a
// crowd of commands pass, and of readers whose streams begin: they wait for an
// answer, and the work itself takes longer than a moment anyway. So do views, which
// whoever reads them brings up, and collecting garbage. Sessions that have waited go
// on one after the other, so that they don't become a crowd.
type front struct {
	mu   sync.Mutex
	n    int
	calm chan struct{} // closed while there is no crowd
	wide bool          // garbage is collected seldom

	file chan struct{} // holds one: the session that continues next
	next time.Time     // when it may; whoever holds the file has it
}

const (
	crowd      = 8                     // commands being answered, from which on they are one
	crowdPause = time.Second           // that a session lets pass at most, however long the crowd is there
	apart      = time.Millisecond      // between sessions that have let a crowd pass
	apartIn    = 10 * time.Millisecond // between sessions that go on in the middle of one
)

func newFront() *front {
	f := &front{calm: make(chan struct{}), file: make(chan struct{}, 1)}
	close(f.calm)
	return f
}

// enter begins a command; leave ends it.
func (f *front) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.n == crowd {
		f.calm = make(chan struct{})
		f.widen()
	}
}

// widen lets garbage lie about, at least for as long as a session lets a crowd
// pass: crowds come and go within moments. The front is locked.
func (f *front) widen() {
	if f.wide {
		return
	}
	f.wide = true
	narrow := collector.Widen()
	time.AfterFunc(crowdPause, func() {
		narrow()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.wide = false; f.n >= crowd {
			f.widen()
		}
	})
}

func (f *front) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == crowd-1 {
		close(f.calm)
	}
}

// opening is enter for a stream that begins, which may have nothing to say for
// long: it ends by itself after the time that a session lets pass.
func (f *front) opening() (opened func()) {
	f.enter()
	var once sync.Once
	leave := func() { once.Do(f.leave) }
	t := time.AfterFunc(crowdPause, leave)
	return func() {
		t.Stop()
		leave()
	}
}

// is reports whether there is a crowd, and what is closed when there is none.
func (f *front) is() (crowded bool, calm <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n >= crowd, f.calm
}

// calmed returns when there is no crowd, or after a second, or when ctx has ended.
func (f *front) calmed(ctx context.Context) {
	crowded, calm := f.is()
	if !crowded {
		return
	}
	late := time.NewTimer(crowdPause)
	defer late.Stop()
	select {
	case <-calm:
	case <-late.C:
	case <-ctx.Done():
	}
}

// pass returns when there is no crowd, or when the session's turn comes after a
// second, or when ctx has ended.
func (f *front) pass(ctx context.Context) {
	if crowded, _ := f.is(); !crowded && len(f.file) == 0 {
		return
	}
	late := time.NewTimer(crowdPause)
	defer late.Stop()
	select {
	case f.file <- struct{}{}:
		defer func() { <-f.file }()
	case <-ctx.Done():
		return
	}
	gap := apart
	if crowded, calm := f.is(); crowded {
		select {
		case <-calm:
		case <-late.C:
			gap = apartIn
		case <-ctx.Done():
			return
		}
	}
	if wait := time.Until(f.next); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
	f.next = time.Now().Add(gap)
}

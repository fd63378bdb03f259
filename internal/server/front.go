package server

import (
	"context"
	"sync"
	"time"
)

// front is where commands are answered. Sessions that are about to run let a
// crowd of commands pass: who submits work waits for an answer, and the work
// itself takes longer than a moment anyway.
type front struct {
	mu   sync.Mutex
	n    int
	calm chan struct{} // closed while there is no crowd
}

const (
	crowd      = 8           // commands being answered, from which on they are one
	crowdPause = time.Second // that a session lets pass at most, however long the crowd is there
)

func newFront() *front {
	f := &front{calm: make(chan struct{})}
	close(f.calm)
	return f
}

// enter begins a command; leave ends it.
func (f *front) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.n == crowd {
		f.calm = make(chan struct{})
	}
}

func (f *front) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == crowd-1 {
		close(f.calm)
	}
}

// pass returns when there is no crowd, after a second, or when ctx has ended.
func (f *front) pass(ctx context.Context) {
	f.mu.Lock()
	calm := f.calm
	f.mu.Unlock()
	select {
	case <-calm:
		return
	default:
	}
	t := time.NewTimer(crowdPause)
	defer t.Stop()
	select {
	case <-calm:
	case <-t.C:
	case <-ctx.Done():
	}
}

package engine

import (
	"sync"
	"time"

	"github.com/belay-run/belay/internal/process"
)

// Leases are the leases of an engine's sessions, with the programs that end by themselves when the leases do: a runtime
// that is stopped, and not dead, ends nothing, and another one takes its
// sessions then.
type Leases struct {
	mu    sync.Mutex
	kept  time.Time // when the leases were renewed last; zero: they aren't renewed
	holds map[process.LeasedHold]bool
}

// renewed records when the leases were renewed.
func (l *Leases) renewed(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = at
	for h := range l.holds {
		l.extend(h)
	}
}

// Add gives a program as long as the leases last, and again with each renewal.
func (l *Leases) Add(h process.LeasedHold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds == nil {
		l.holds = map[process.LeasedHold]bool{}
	}
	l.holds[h] = true
	l.extend(h)
}

func (l *Leases) extend(h process.LeasedHold) {
	if !l.kept.IsZero() {
		h.Extend(Lease - time.Since(l.kept)) //nolint:errcheck // who doesn't hear it has ended
	}
}

// Remove forgets a program, which has ended.
func (l *Leases) Remove(h process.LeasedHold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.holds, h)
}

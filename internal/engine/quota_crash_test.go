package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// TestQuotasGetBackWhatACrashAndAnInterruptLeave: the process dies at each point, and the
// turn is interrupted before the next one goes on. What the quotas had lent, and the
// session hadn't heard of, comes back all the same.
// Guarantee: E71.
func TestQuotasGetBackWhatACrashAndAnInterruptLeave(t *testing.T) {
	points, cancelled := 0, 0
	for hit := true; hit; points++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.accept()
			first := true
			_, hit = m.through([]int{points + 1}, func(p *process) error {
				if !first {
					m.interrupt(points + 1)
				}
				first = false
				return p.live()
			})
			h := m.data.Open(memory.Options{})
			defer h.Close()
			var facts []event.Envelope
			for r, err := range h.Scan(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				facts = append(facts, r.Event)
			}
			coretest.Books(t, points+1, facts)
			if s, err := loadThread(t.Context(), h); err != nil {
				t.Error(err)
			} else if s.Prev.Outcome == belay.Cancelled {
				cancelled++
			}
		})
	}
	if points < 50 || cancelled < points/2 {
		t.Errorf("%d turns were cancelled at %d points", cancelled, points)
	}
}

// interrupt leaves an interrupt to who drives the session next.
func (m *machine) interrupt(at int) {
	h := m.data.Open(memory.Options{})
	defer h.Close()
	o := belay.Order{ID: "cmd_stop", Principal: "user:bob", Time: time.Now(), Session: sess, Stream: thr.Stream(), Command: belay.InterruptTurn{}}
	if err := h.Enqueue(m.t.Context(), o); err != nil {
		m.t.Errorf("crash %d: %v", at, err)
	}
}

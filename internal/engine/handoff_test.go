package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

// none performs nothing.
type none struct{ Performer }

func (none) Leftover() core.Effect { return nil }

func (none) Of(belay.SessionID, belay.StreamID) Performer { return none{} }

func (none) Recorded(context.Context, belay.StreamID, []event.Envelope) {}

func (none) Supply(core.Decider, belay.Ref, func() ([]byte, error)) bool { return false }

// An effect may hand in a fact in the very moment in which its drive has to
// leave. It waits for the append, and the drive for it: one must be told.
func TestPendingAppendFailsWhenTheDriveLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &drive{e: &Engine{c: Config{Now: time.Now}}, perf: none{}, running: map[string]*Run{"effect": {cancel: func() {}}}, reports: make(chan report)}
		ack := make(chan error, 1)
		b := &batch{acks: []chan error{ack}}
		var told error
		v.wg.Go(func() {
			told = <-ack
			v.reports <- report{ended: "effect"}
		})
		if err := v.leave(t.Context(), b, store.ErrStale); !errors.Is(err, store.ErrStale) || !errors.Is(told, store.ErrStale) {
			t.Errorf("the drive left with %v, the effect was told %v", err, told)
		}
	})
}

package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/internal/store"
)

// An effect may hand in a fact in the very moment in which its drive has to
// leave. It waits for the append, and the drive for it: one must be told.
func TestPendingAppendFailsWhenTheDriveLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &drive{e: &Engine{c: Config{Now: time.Now}}, flying: map[string]*flight{"effect": {cancel: func() {}}}, landed: make(chan effectResult), facts: make(chan *effectFact)}
		ack := make(chan error, 1)
		b := &batch{acks: []chan error{ack}}
		var told error
		v.wg.Go(func() {
			told = <-ack
			v.landed <- effectResult{key: "effect"}
		})
		if err := v.leave(t.Context(), b, store.ErrStale); !errors.Is(err, store.ErrStale) || !errors.Is(told, store.ErrStale) {
			t.Errorf("the drive left with %v, the effect was told %v", err, told)
		}
	})
}

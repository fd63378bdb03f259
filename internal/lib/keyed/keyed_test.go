package keyed

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestALockIsOfItsKey: one at a time has a key, other keys aren't held up, who waits gives
// up with its context, and nothing stays of a key that nobody uses.
func TestALockIsOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Mutexes
		unlock, err := m.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := m.Lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		why := errors.New("it takes too long")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		if _, err := m.Lock(ctx, "a"); !errors.Is(err, why) {
			t.Errorf("who waits is told %v", err)
		}
		var wg sync.WaitGroup
		has, most := 0, 0
		for range 20 {
			wg.Go(func() {
				unlock, err := m.Lock(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				has++
				most = max(most, has)
				time.Sleep(time.Millisecond)
				has--
				unlock()
			})
		}
		synctest.Wait()
		if most != 0 {
			t.Error("two have it")
		}
		unlock()
		wg.Wait()
		if most != 1 || len(m.made) != 0 {
			t.Errorf("%d had it at once, %d keys are kept", most, len(m.made))
		}
	})
}

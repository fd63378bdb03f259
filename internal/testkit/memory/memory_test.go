package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/storetest"
	"github.com/belay-run/belay/internal/testkit/memory"
)

func options(env *storetest.Env) memory.Options {
	return memory.Options{Now: env.Now, Alive: env.Alive}
}

// Guarantee: S21.
func TestLaws(t *testing.T) {
	storetest.Run(t, storetest.Config{
		Open: func(t *testing.T, env *storetest.Env) store.Store { return memory.Open(options(env)) },
		Again: func(t *testing.T, env *storetest.Env, s store.Store) store.Store {
			return s.(*memory.Store).Data().Open(options(env))
		},
	})
}

var errStop = errors.New("stop here")

// TestACrashAroundAnAppend stops a process before and after each of its
// commits; the next one finds all or nothing of a batch.
// Guarantee: S1.
func TestACrashAroundAnAppend(t *testing.T) {
	const batches = 3
	for stop := 1; stop <= 2*batches; stop++ {
		d := memory.New()
		points := 0
		var dying *memory.Store
		dying = d.Open(memory.Options{Hook: func(string) error {
			if points++; points == stop {
				dying.Kill()
				return errStop
			}
			return nil
		}})
		b := batch(t, dying, "one")
		durable := 0
		for i := range batches {
			if _, err := dying.Put(t.Context(), []byte{byte(i)}, ""); err != nil {
				break
			}
			if _, err := dying.Append(t.Context(), b); err != nil {
				if !errors.Is(err, errStop) {
					t.Fatal(err)
				}
				break
			}
			b.After++
			durable++
		}
		if stop%2 == 0 {
			durable++ // the commit that nobody was told about
		}
		next := d.Open(memory.Options{})
		c := batch(t, next, "two") // a dead owner loses the session at once
		head, err := next.Head(t.Context(), c.Stream)
		if err != nil && durable > 0 || head.Seq != int64(durable) {
			t.Errorf("stopped at %d: %+v, %v, want %d facts", stop, head, err, durable)
		}
		if _, err := next.Get(t.Context(), belay.DigestOf([]byte{byte(durable)})); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("stopped at %d: content that no append followed: %v", stop, err)
		}
		if durable > 0 {
			if _, err := next.Get(t.Context(), belay.DigestOf([]byte{byte(durable - 1)})); err != nil {
				t.Errorf("stopped at %d: content before an append: %v", stop, err)
			}
		}
	}
}

func batch(t *testing.T, s *memory.Store, owner string) store.Batch {
	t.Helper()
	epoch, err := s.Claim(t.Context(), "sess_a", store.Owner{ID: owner}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return store.Batch{Session: "sess_a", Stream: "thread/thr_a", Epoch: epoch, Events: []event.Envelope{{Data: event.ModelDelta{Text: "x"}}}}
}

func TestAKilledHandleDoesNothingMore(t *testing.T) {
	s := memory.Open(memory.Options{})
	b := batch(t, s, "one")
	changed := s.Changed(t.Context())
	s.Kill()
	<-changed
	if _, err := s.Append(t.Context(), b); belay.CodeOf(err) != belay.CodeStoreFailed {
		t.Errorf("append: %v", err)
	}
	if _, err := s.End(t.Context()); belay.CodeOf(err) != belay.CodeStoreFailed {
		t.Errorf("read: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if o, err := s.Data().Open(memory.Options{Alive: func(store.Owner) bool { return true }}).OwnerOf(t.Context(), "sess_a"); err != nil || o == nil {
		t.Errorf("a dead process gave its session back: %v, %v", o, err)
	}
}

package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// Guarantee: S38.
func TestEachDeletionIsRecordedOnce(t *testing.T) {
	st := memory.Open(memory.Options{})
	var all []store.Tombstone
	for _, id := range []belay.SessionID{"sess_a", "sess_b"} {
		epoch, err := st.Claim(t.Context(), id, store.Owner{ID: "one"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Release(t.Context(), id, epoch); err != nil {
			t.Fatal(err)
		}
		d, err := st.DeleteSession(t.Context(), id, "user:mia")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d.Tombstone)
	}
	for _, batch := range [][]store.Tombstone{all[:1], all, all, nil} {
		if err := store.RecordDeletions(t.Context(), st, store.Owner{ID: "two"}, batch); err != nil {
			t.Fatal(err)
		}
	}
	var said []string
	for e, err := range st.Read(t.Context(), store.SystemStream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		p := e.Data.(event.ChannelMessage)
		said = append(said, p.Principal+": "+p.Message)
	}
	if got := strings.Join(said, "\n"); len(said) != 2 || !strings.Contains(got, "user:mia: session sess_a was deleted with 0 facts, at position ") || !strings.Contains(said[1], "sess_b") {
		t.Errorf("got %q", said)
	}
	if owner, err := st.OwnerOf(t.Context(), belay.SessionID(store.SystemStream)); owner != nil || err != nil {
		t.Errorf("the stream is still owned: %v, %v", owner, err)
	}
}

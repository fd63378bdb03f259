package engine_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// TestRecordedCallbackSeesTheLog holds what an engine tells of its appends
// against the log: every fact of it, at its position, with the same content.
func TestRecordedCallbackSeesTheLog(t *testing.T) {
	var mu sync.Mutex
	told := map[store.Position]event.Envelope{}
	r := newRigTelling(t, t.TempDir(), 20, func(facts []store.Record) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range facts {
			told[f.Position] = f.Event
		}
	})
	if err := r.session(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for rec, err := range r.db.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		got, want := told[rec.Position], rec.Event
		if got.Stream != want.Stream || got.Seq != want.Seq || got.IDs != want.IDs || !got.Time.Equal(want.Time) || got.Type() != want.Type() || !bytes.Equal(encoded(t, got), encoded(t, want)) {
			t.Errorf("position %d: told %+v, recorded %+v", rec.Position, got, want)
		}
	}
	if n != len(told) || n < 100 {
		t.Errorf("%d facts are recorded, %d were told", n, len(told))
	}
}

func encoded(t *testing.T, ev event.Envelope) []byte {
	t.Helper()
	raw, err := event.Encode(ev.Data)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
)

// A stream that goes on from an anchor folds to what it folded to before,
// whether its state is cached or not.
func TestAStreamIsFoldedFromItsAnchor(t *testing.T) {
	s := newStation(t, t.TempDir())
	if err := s.session(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	const id = belay.SessionID("sess_a")
	stream := id.Stream()
	want, last := folded(t, s.db, stream)
	if last < 2 {
		t.Fatalf("only %d facts", last)
	}
	d, version, err := engine.NewDecider(stream)
	if err != nil {
		t.Fatal(err)
	}
	a := store.Anchor{Session: id, Stream: stream, Seq: last - 1, Version: version}
	chains := store.NewChains(id)
	for f, err := range s.db.Stored(t.Context(), id, 1<<60) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Stream != stream || f.Row.Seq > a.Seq {
			continue
		}
		e, err := f.Row.Unpack(s.db.Runtime(), id, stream)
		if err != nil {
			t.Fatal(err)
		}
		d.Apply(e)
		head, err := chains.Add(&f)
		if err != nil {
			t.Fatal(err)
		}
		a.Hash = head.Hash
	}
	state, err := d.Save()
	if err != nil {
		t.Fatal(err)
	}
	if a.State, err = s.db.Put(t.Context(), state, "application/json"); err != nil {
		t.Fatal(err)
	}
	epoch, err := s.db.Claim(t.Context(), id, store.ThisProcess(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.SetAnchor(t.Context(), a, epoch); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"with its cached state", "without"} {
		got, seq := folded(t, s.db, stream)
		if diff := cmp.Diff(want, got); diff != "" || seq != last {
			t.Errorf("%s: up to %d of %d (-want +got):\n%s", what, seq, last, diff)
		}
		// A batch without facts that brings a state of no known version.
		if _, err := s.db.Append(t.Context(), store.Batch{Session: id, Stream: stream, After: last, Epoch: epoch, State: &store.State{Seq: last, Version: "none"}}); err != nil {
			t.Fatal(err)
		}
	}
}

func folded(t *testing.T, st store.Store, s belay.StreamID) (state string, seq int64) {
	t.Helper()
	d, seq, _, err := engine.Load(t.Context(), st, s)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Save()
	if err != nil {
		t.Fatal(err)
	}
	return string(b), seq
}

package engine_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// each yields a list.
func each(facts []store.Stored) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		for _, f := range facts {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// TestFoldSaysWhatDrivingLeavesBehind: after a crash at any commit the lanes
// that folding gives are those in the store.
// Guarantee: S40.
func TestFoldSaysWhatDrivingLeavesBehind(t *testing.T) {
	n := 0
	for at := 1; ; at += 3 {
		m := newMachine(t)
		if _, hit := m.run(at); !hit {
			m.discard()
			break
		}
		h := m.data.Open(memory.Options{})
		id, facts := theSession(t, h)
		get := func(d belay.Digest) ([]byte, error) { return h.Get(t.Context(), d) }
		folded, err := engine.Fold(id, each(facts), get, time.Now().UTC())
		if err != nil {
			t.Fatal(err)
		}
		rows, err := h.Lanes(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		kept := map[belay.StreamID]store.Lane{}
		for _, r := range rows {
			kept[r.Stream] = r.Lane
		}
		for s, v := range folded {
			if got, want := v.Lane, kept[s]; got.Runnable != want.Runnable || !got.Runnable && !got.Wake.Equal(want.Wake) {
				t.Errorf("crash at %d: %s folds to %+v, the store has %+v", at, s, got, want)
			}
			n++
		}
		h.Close()
		m.discard()
	}
	if n == 0 {
		t.Error("nothing was compared")
	}
}

func theSession(t *testing.T, h *memory.Store) (id belay.SessionID, facts []store.Stored) {
	t.Helper()
	end, err := h.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range h.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Event.IDs.Session != belay.SystemSession {
			id = r.Event.IDs.Session
		}
	}
	for f, err := range h.Stored(t.Context(), id, end) {
		if err != nil {
			t.Fatal(err)
		}
		facts = append(facts, f)
	}
	return id, facts
}

// TestFoldingWhatNobodyRecorded: facts in any order, doubled, missing or empty
// are folded without a panic, and so is the question what they want.
// Guarantee: S41.
func TestFoldingWhatNobodyRecorded(t *testing.T) {
	raw, err := os.ReadFile("testdata/golden/0.1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var log []store.Stored
	var id belay.SessionID
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event.Envelope
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		row, err := store.Pack(e.IDs.Session, e.Stream, &e)
		if err != nil {
			t.Fatal(err)
		}
		log, id = append(log, store.Stored{Stream: e.Stream, Row: row}), e.IDs.Session
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	get := func(belay.Digest) ([]byte, error) { return nil, store.ErrNotFound }
	for range 2000 {
		facts := made(r, log)
		defer func() {
			if p := recover(); p != nil {
				t.Fatalf("seed %d: %v\n%s", seed, p, debug.Stack())
			}
		}()
		if _, err := engine.Fold(id, each(facts), get, time.Now().UTC()); err != nil && belay.CodeOf(err) == belay.CodeInternal {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// made is a log that nobody recorded, of the pieces of one that was.
func made(r *rand.Rand, log []store.Stored) (facts []store.Stored) {
	seq := map[belay.StreamID]int64{}
	for range 1 + r.IntN(2*len(log)) {
		f := log[r.IntN(len(log))]
		if n := len(facts); r.IntN(3) > 0 && n < len(log) {
			f = log[n] // mostly as it was, so that one gets far
		}
		switch r.IntN(12) {
		case 0:
			f.Row.Data = []byte("{}")
		case 1:
			f.Row.Type = log[r.IntN(len(log))].Row.Type
		case 2:
			f.Stream = log[r.IntN(len(log))].Stream
		}
		seq[f.Stream]++
		f.Row.Seq = seq[f.Stream]
		facts = append(facts, f)
	}
	return facts
}

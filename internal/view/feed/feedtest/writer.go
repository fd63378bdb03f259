// Package feedtest writes what readers of streams follow: facts, and between
// them text that flows. It is for tests.
package feedtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Writer writes to one store. It isn't for use at the same time.
type Writer struct {
	t     testing.TB
	st    store.Store
	show  func(event.Delta)
	seq   map[belay.StreamID]int64
	held  map[belay.SessionID]int64
	steps int

	Pause func() // between the pieces of an answer; may be nil
}

// New makes a writer. Text that flows goes to show.
func New(t testing.TB, st store.Store, show func(event.Delta)) *Writer {
	return &Writer{t: t, st: st, show: show, seq: map[belay.StreamID]int64{}, held: map[belay.SessionID]int64{}}
}

// IDs are those of a session's only thread, turn and run, by a name.
func IDs(name string) belay.IDs {
	return belay.IDs{Session: belay.SessionID("sess_" + name), Thread: belay.ThreadID("thr_" + name), Turn: belay.TurnID("turn_" + name),
		Task: belay.TaskID("task_" + name), Run: belay.RunID("run_" + name)}
}

// Add appends facts to a thread, in one batch.
func (w *Writer) Add(ids belay.IDs, facts ...event.Payload) store.Position {
	w.t.Helper()
	return w.AddTo(ids.Thread.Stream(), ids, facts...)
}

// AddTo appends facts to a stream of the session, in one batch.
func (w *Writer) AddTo(stream belay.StreamID, ids belay.IDs, facts ...event.Payload) store.Position {
	w.t.Helper()
	if w.held[ids.Session] == 0 {
		epoch, err := w.st.Claim(w.t.Context(), ids.Session, store.ThisProcess(), time.Hour)
		if err != nil {
			w.t.Fatal(err)
		}
		w.held[ids.Session] = epoch
	}
	batch := store.Batch{Session: ids.Session, Stream: stream, After: w.seq[stream], Epoch: w.held[ids.Session]}
	for _, f := range facts {
		batch.Events = append(batch.Events, event.Envelope{IDs: ids, Version: event.VersionOf(f), Data: f})
	}
	pos, err := w.st.Append(w.t.Context(), batch)
	if err != nil {
		w.t.Fatal(err)
	}
	w.seq[stream] += int64(len(facts))
	return pos[len(pos)-1]
}

// Answer lets a model's text flow in pieces, with a checkpoint after each third.
func (w *Writer) Answer(ids belay.IDs, pieces ...string) {
	w.t.Helper()
	w.steps++
	ids.Step = belay.StepID(fmt.Sprint("step_", w.steps))
	w.Add(ids, event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "p"})
	text, saved := "", 0
	for i, p := range pieces {
		if w.Pause != nil {
			w.Pause()
		}
		w.show(event.Delta{Stream: ids.Thread.Stream(), IDs: ids, Kind: "text", Attempt: 1, Offset: int64(len(text)), Text: p})
		text += p
		if i%3 == 2 {
			w.Add(ids, event.ModelDelta{Attempt: 1, Offset: int64(saved), Text: text[saved:]})
			saved = len(text)
		}
	}
	w.Add(ids, event.ModelCompleted{Attempt: 1, Text: belay.Content{Text: text}})
}

// Delete removes a session.
func (w *Writer) Delete(id belay.SessionID) {
	w.t.Helper()
	if err := w.st.Release(w.t.Context(), id, w.held[id]); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.st.DeleteSession(w.t.Context(), id, "user:ann"); err != nil {
		w.t.Fatal(err)
	}
}

// Note is a fact that says little; n tells it from others.
func Note(n int) event.Payload { return event.RuntimeWarning{Code: "N", Message: fmt.Sprint(n)} }

// Log is the ids of the facts of a store that are kept, in order.
func Log(t testing.TB, st store.Store, keep func(event.Envelope) bool) (all []belay.EventID) {
	t.Helper()
	for r, err := range st.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if keep(r.Event) {
			all = append(all, r.Event.ID())
		}
	}
	return all
}

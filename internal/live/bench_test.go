package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/live"
	"github.com/belay-run/belay/internal/store"
)

// bench is a store with a hub and somebody who writes.
type bench struct {
	testing.TB
	st   store.Store
	hub  *live.Hub
	seq  map[belay.StreamID]int64
	held map[belay.SessionID]int64
	step int

	pause func() // between the pieces of an answer; may be nil
}

func newBench(t testing.TB, st store.Store, o live.Options) *bench {
	hub, err := live.New(t.Context(), st, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the hub ended with %v", err)
		}
	})
	return &bench{TB: t, st: st, hub: hub, seq: map[belay.StreamID]int64{}, held: map[belay.SessionID]int64{}}
}

func idsOf(name string) belay.IDs {
	return belay.IDs{Session: belay.SessionID("sess_" + name), Thread: belay.ThreadID("thr_" + name), Turn: "turn_1", Run: belay.RunID("run_" + name)}
}

// add appends facts to the thread of a session, in one batch.
func (b *bench) add(ids belay.IDs, facts ...event.Payload) store.Position {
	b.Helper()
	if b.held[ids.Session] == 0 {
		epoch, err := b.st.Claim(b.Context(), ids.Session, store.ThisProcess(), time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		b.held[ids.Session] = epoch
	}
	stream := ids.Thread.Stream()
	batch := store.Batch{Session: ids.Session, Stream: stream, After: b.seq[stream], Epoch: b.held[ids.Session]}
	for _, f := range facts {
		batch.Events = append(batch.Events, event.Envelope{IDs: ids, Data: f})
	}
	pos, err := b.st.Append(b.Context(), batch)
	if err != nil {
		b.Fatal(err)
	}
	b.seq[stream] += int64(len(facts))
	return pos
}

// answer lets a model's text flow in pieces, with a checkpoint now and then.
func (b *bench) answer(ids belay.IDs, pieces ...string) {
	b.step++
	ids.Step = belay.StepID(fmt.Sprint("step_", b.step))
	b.add(ids, event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "p"})
	text, saved := "", 0
	for i, p := range pieces {
		if b.pause != nil {
			b.pause()
		}
		b.hub.Show(engine.Live{Stream: ids.Thread.Stream(), IDs: ids, Kind: "text", Attempt: 1, Offset: int64(len(text)), Text: p})
		text += p
		if i%3 == 2 {
			b.add(ids, event.ModelDelta{Attempt: 1, Offset: int64(saved), Text: text[saved:]})
			saved = len(text)
		}
	}
	b.add(ids, event.ModelCompleted{Attempt: 1, Text: belay.Content{Text: text}})
}

// note is a fact that says little; n tells it from others.
func note(n int) event.Payload {
	return event.RuntimeWarning{Code: "N", Message: fmt.Sprint(n)}
}

// seen is what a reader got.
type seen struct {
	t       testing.TB
	cursor  string
	facts   []belay.EventID
	types   []string
	texts   map[string]string // by stream, step and attempt
	open    map[string]bool   // announced and not over
	whole   map[string]string // as the answer says
	resyncs int
	beats   int
	deleted bool
}

func newSeen(t testing.TB) *seen {
	return &seen{t: t, texts: map[string]string{}, open: map[string]bool{}, whole: map[string]string{}}
}

// take checks and keeps messages.
func (s *seen) take(ms []live.Message) {
	for _, m := range ms {
		switch m.Type {
		case live.TypeBeat:
			s.beats++
		case live.TypeDeleted:
			s.deleted = true
		case live.TypeResync:
			s.resyncs++
			s.cursor = m.Cursor
			clear(s.open)
		case live.TypeText:
			s.flow(m.Data)
		default:
			s.cursor = m.Cursor
			s.fact(m)
		}
	}
}

func (s *seen) flow(data []byte) {
	var x live.Text
	if err := json.Unmarshal(data, &x); err != nil {
		s.t.Error(err)
		return
	}
	key := fmt.Sprint(x.Stream, x.Step, x.Attempt)
	if !s.open[key] && s.resyncs == 0 {
		s.t.Errorf("text of %s outside of its request", key)
	}
	s.put(key, int(x.Offset), x.Contents)
}

// put makes the text longer by what is behind its end.
func (s *seen) put(key string, offset int, text string) {
	have := s.texts[key]
	if offset > len(have) {
		if s.resyncs == 0 {
			s.t.Errorf("%s: %d bytes, and text at %d", key, len(have), offset)
		}
		return
	}
	if same := min(len(have)-offset, len(text)); have[offset:offset+same] != text[:same] {
		s.t.Errorf("%s: other text at %d", key, offset)
	}
	if offset+len(text) > len(have) {
		s.texts[key] = have[:offset] + text
	}
}

func (s *seen) fact(m live.Message) {
	var e event.Envelope
	if err := json.Unmarshal(m.Data, &e); err != nil {
		s.t.Error(err)
		return
	}
	s.facts, s.types = append(s.facts, e.ID()), append(s.types, m.Type)
	switch p := e.Data.(type) {
	case event.ModelRequested:
		s.open[fmt.Sprint(e.Stream, e.IDs.Step, p.Attempt)] = true
	case event.ModelDelta:
		s.put(fmt.Sprint(e.Stream, e.IDs.Step, p.Attempt), int(p.Offset), p.Text)
	case event.ModelCompleted:
		key := fmt.Sprint(e.Stream, e.IDs.Step, p.Attempt)
		delete(s.open, key)
		s.whole[key] = p.Text.Text
		if !strings.HasPrefix(p.Text.Text, s.texts[key]) {
			s.t.Errorf("%s: %q is no beginning of %q", key, s.texts[key], p.Text.Text)
		}
	}
}

var errEnough = errors.New("enough")

// follow reads until done says so, and gives back what came.
func (b *bench) follow(scope live.Scope, types, since string, into *seen, done func() bool) {
	b.Helper()
	f, err := live.NewFilter(types)
	if err != nil {
		b.Fatal(err)
	}
	r, err := b.hub.Reader(b.Context(), scope, f, since)
	if err != nil {
		b.Fatal(err)
	}
	err = r.Follow(b.Context(), func(ms []live.Message) error {
		into.take(ms)
		if done() {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		b.Error(err)
	}
}

// log is the ids of a scope's facts as the store has them.
func (b *bench) log(keep func(event.Envelope) bool) (all []belay.EventID) {
	b.Helper()
	for r, err := range b.st.Scan(b.Context(), 0) {
		if err != nil {
			b.Fatal(err)
		}
		if keep(r.Event) {
			all = append(all, r.Event.ID())
		}
	}
	return all
}

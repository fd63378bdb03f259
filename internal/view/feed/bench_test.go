package feed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/feed"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

// bench is a store with a hub and somebody who writes.
type bench struct {
	testing.TB
	*feedtest.Writer
	st  store.Store
	hub *feed.Hub
}

func newBench(t testing.TB, st store.Store, o feed.Options) *bench {
	b := restingBench(t, st, o)
	b.run()
	return b
}

// restingBench is a bench whose hub doesn't read the log yet.
func restingBench(t testing.TB, st store.Store, o feed.Options) *bench {
	hub, err := feed.New(t.Context(), st, o)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, feedtest.New(t, st, hub.Show), st, hub}
}

// run lets the hub read the log until the test ends.
func (b *bench) run() {
	t, hub := b.TB, b.hub
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the hub ended with %v", err)
		}
	})
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
func (s *seen) take(ms []feed.Message) {
	for _, m := range ms {
		switch m.Type {
		case feed.TypeBeat:
			s.beats++
		case feed.TypeDeleted:
			s.deleted = true
		case feed.TypeResync:
			s.resyncs++
			s.cursor = m.Cursor
			clear(s.open)
		case feed.TypeText:
			s.flow(m.Data)
		default:
			s.cursor = m.Cursor
			s.fact(m)
		}
	}
}

func (s *seen) flow(data []byte) {
	var x feed.Text
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

func (s *seen) fact(m feed.Message) {
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
func (b *bench) follow(scope feed.Scope, types, since string, into *seen, done func() bool) {
	b.Helper()
	f, err := feed.NewFilter(types)
	if err != nil {
		b.Fatal(err)
	}
	r, err := b.hub.Reader(b.Context(), scope, f, since)
	if err != nil {
		b.Fatal(err)
	}
	err = r.Follow(b.Context(), func(ms []feed.Message) error {
		if len(ms) == 0 { // there is nothing yet
			return nil
		}
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

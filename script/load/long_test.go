package load

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
)

// TestALongSession: what a session shows costs the same however long it is.
func TestALongSession(t *testing.T) {
	facts := of(1_000_000, 3_000)
	p := newPlace(t, fiveSteps)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	s := p.start()
	var answered, status, ended time.Duration
	if err := s.follow(ctx, "long", func() {}, &answered, &status, &ended); err != nil {
		t.Fatal(err)
	}
	s.stop()
	n := p.lengthen(ctx, "long", facts)

	s = p.start()
	figure(t, fmt.Sprintf("a session of %d facts: ready after", n), s.ready.Round(time.Millisecond), "200ms")
	if err := s.ask(ctx, "GET", "/v1/sessions/long/events?last=200", "", nil); err != nil {
		t.Fatal(err)
	}
	figure(t, "its last window was read after", time.Since(s.begun).Round(time.Millisecond), "")
	var shell struct {
		Session struct{ Counts struct{ Events int } }
	}
	for shell.Session.Counts.Events < n { // an answer may take no longer than 30 s, and is asked for again
		if err := s.ask(ctx, "GET", "/v1/sessions/long", "", &shell); err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	figure(t, "the view of sessions had folded all of it after", time.Since(s.begun).Round(time.Millisecond), "")
	before, most := s.memory("VmRSS"), s.memory("VmHWM")
	took := map[string][]time.Duration{}
	routes := []string{"/v1/sessions/long", "/v1/sessions/long/events?last=200", "/v1/sessions/long/story?last=200"}
	for range of(100, 10) {
		for _, r := range routes {
			from := time.Now()
			if err := s.ask(ctx, "GET", r, "", nil); err != nil {
				t.Fatal(err)
			}
			took[r] = append(took[r], time.Since(from))
		}
	}
	for _, r := range routes {
		figure(t, r+", p95", quantile(took[r], 0.95), "150ms")
	}
	figure(t, "memory besides, after them", mb(max(s.memory("VmHWM")-most, s.memory("VmRSS")-before, 0)), "20 MB")
	s.stop()
}

// lengthen repeats the turn of a session's thread until it has so many facts, and
// returns how many the session has.
func (p *place) lengthen(ctx context.Context, session string, facts int) (n int) {
	p.t.Helper()
	check := func(err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(err)
		}
	}
	db, err := sqlite.Open(ctx, p.store, sqlite.Options{})
	check(err)
	defer func() { check(db.Close()) }()
	var stream belay.StreamID
	var turn []event.Envelope
	for rec, err := range db.Window(ctx, store.Window{Session: belay.SessionID(session)}) {
		check(err)
		n++
		if rec.Event.Stream.Kind() == belay.KindThread {
			stream = rec.Event.Stream
			turn = append(turn, rec.Event)
		}
	}
	first := slices.IndexFunc(turn, func(e event.Envelope) bool { return e.Type() == "turn.submitted" })
	epoch, err := db.Claim(ctx, belay.SessionID(session), store.ThisProcess(), time.Hour)
	check(err)
	d, seq, _, err := engine.Load(ctx, db, stream)
	check(err)
	_, version, err := engine.NewDecider(stream)
	check(err)
	var batch []event.Envelope
	for round := 0; n < facts; round++ {
		for _, e := range turn[first:] {
			seq++
			n++
			e.Stream, e.Seq, e.IDs.Turn = stream, seq, belay.TurnID(fmt.Sprint("turn-", round+2))
			d.Apply(e)
			batch = append(batch, e)
		}
		if len(batch) < 450 && n < facts {
			continue
		}
		state, err := d.Save()
		check(err)
		_, err = db.Append(ctx, store.Batch{Session: belay.SessionID(session), Stream: stream, After: seq - int64(len(batch)), Epoch: epoch, Events: batch,
			State: &store.State{Seq: seq, Version: version, Data: state}})
		check(err)
		batch = nil
	}
	check(db.Release(ctx, belay.SessionID(session), epoch))
	return n
}

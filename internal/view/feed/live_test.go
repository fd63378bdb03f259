package feed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view/feed"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

func all(event.Envelope) bool { return true }

// TestReadersGetEachFactOnce lets two sessions work while readers of every
// scope break off at random and come back with the cursor they had.
// Guarantee: L1.
func TestReadersGetEachFactOnce(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Open(memory.Options{}), feed.Options{})
		const answers = 60
		scopes := map[string]feed.Scope{
			"store":   {},
			"session": {Session: "sess_a"},
			"thread":  {Session: "sess_a", Stream: "thread/thr_a"},
			"run":     {Session: "sess_a", Run: "run_a"},
		}
		var wg sync.WaitGroup
		results := map[string]*seen{}
		breaks := 0
		var mu sync.Mutex
		for name, scope := range scopes {
			s := newSeen(t)
			s.cursor = feed.Start
			results[name] = s
			random := rand.New(rand.NewPCG(seed, uint64(len(name))))
			wg.Go(func() {
				for s.last() != "turn.completed" {
					n := random.IntN(6)
					b.follow(scope, "", s.cursor, s, func() bool { n--; return n < 0 || s.last() == "turn.completed" })
					mu.Lock()
					breaks++
					mu.Unlock()
				}
			})
		}
		random := rand.New(rand.NewPCG(seed, 99))
		b.Pause = func() { time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond) }
		for range answers {
			pieces := make([]string, random.IntN(9))
			for i := range pieces {
				pieces[i] = strings.Repeat("ä", random.IntN(200))
			}
			b.Answer(feedtest.IDs([]string{"a", "b"}[random.IntN(2)]), pieces...)
		}
		b.Add(feedtest.IDs("a"), event.TurnCompleted{})
		wg.Wait()
		if breaks < 20 {
			t.Errorf("only %d readers came back", breaks)
		}
		ofA := func(e event.Envelope) bool { return e.IDs.Session == "sess_a" }
		for name, s := range results {
			want := feedtest.Log(t, b.st, all)
			if name != "store" {
				want = feedtest.Log(t, b.st, ofA)
			}
			if !slices.Equal(s.facts, want) {
				t.Errorf("%s: got %d facts, the log has %d", name, len(s.facts), len(want))
			}
		}
	})
}

func (s *seen) last() string {
	if len(s.types) == 0 {
		return ""
	}
	return s.types[len(s.types)-1]
}

// TestTextIsABeginningOfTheAnswer: whoever comes whenever gets the text so far,
// then what flows, and in the end the answer.
// Guarantee: L2.
func TestTextIsABeginningOfTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Open(memory.Options{}), feed.Options{})
		ids := feedtest.IDs("a")
		var wg sync.WaitGroup
		pieces := strings.SplitAfter(strings.Repeat("so flows a text, ", 300), " ")
		for i := range 40 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 25 * time.Millisecond)
				s, texts := newSeen(t), 0
				b.follow(feed.Scope{Session: ids.Session}, "", feed.Start, s, func() bool { texts = len(s.texts); return s.last() == "model.completed" })
				for key, whole := range s.whole {
					if texts > 0 && s.texts[key] != whole {
						t.Errorf("reader %d: %d bytes of %d", i, len(s.texts[key]), len(whole))
					}
				}
			})
		}
		ids.Step = "step_1"
		b.Add(ids, event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "p"})
		text, saved := "", 0
		for i, p := range pieces {
			b.hub.Show(event.Delta{Stream: ids.Thread.Stream(), IDs: ids, Kind: "text", Attempt: 1, Offset: int64(len(text)), Text: p})
			text += p
			if i%100 == 99 {
				b.Add(ids, event.ModelDelta{Attempt: 1, Offset: int64(saved), Text: text[saved:]})
				saved = len(text)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		b.Add(ids, event.ModelCompleted{Attempt: 1, Text: belay.Content{Text: text}})
		wg.Wait()
	})
}

// TestTextThatOutrunsTheFactsHasNoHole: the hub may read the log a whole request
// behind the text, and miss a piece; a reader sees neither.
func TestTextThatOutrunsTheFactsHasNoHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := restingBench(t, memory.Open(memory.Options{}), feed.Options{})
		one, two := feedtest.IDs("a"), feedtest.IDs("a")
		one.Step, two.Step = "step_1", "step_2"
		show := func(offset int, text string) {
			b.hub.Show(event.Delta{Stream: two.Thread.Stream(), IDs: two, Kind: "text", Attempt: 1, Offset: int64(offset), Text: text})
			time.Sleep(time.Second)
		}
		b.Add(one, event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "p"})
		b.Add(one, event.ModelCompleted{Attempt: 1})
		b.Add(two, event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "p"})
		show(0, "so ")
		b.run()
		s := newSeen(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			b.follow(feed.Scope{Session: two.Session}, "", feed.Start, s, func() bool { return s.last() == "turn.completed" })
		})
		has := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := s.texts[fmt.Sprint(two.Thread.Stream(), two.Step, 1)]; got != want {
				t.Errorf("the reader has %q, not %q", got, want)
			}
		}
		show(3, "flows ")
		has("so flows ")
		show(11, "text") // what was at 9 never came
		has("so flows ")
		b.Add(two, event.ModelDelta{Attempt: 1, Text: "so flows a text"})
		show(15, "!")
		has("so flows a text!")
		b.Add(two, event.ModelCompleted{Attempt: 1, Text: belay.Content{Text: "so flows a text!"}}, event.TurnCompleted{})
		wg.Wait()
	})
}

// A long text is kept in part; its beginning is in the log's checkpoints.
// Guarantee: L2.
func TestALongTextIsHeldInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Open(memory.Options{}), feed.Options{})
		ids := feedtest.IDs("a")
		ids.Step = "step_1"
		b.Add(ids, event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "p"})
		piece := strings.Repeat("längst ", 500)
		text := ""
		for range 200 {
			b.hub.Show(event.Delta{Stream: ids.Thread.Stream(), IDs: ids, Kind: "text", Attempt: 1, Offset: int64(len(text)), Text: piece})
			b.Add(ids, event.ModelDelta{Attempt: 1, Offset: int64(len(text)), Text: piece})
			text += piece
			synctest.Wait()
		}
		late := newSeen(t)
		late.resyncs = 1 // it joins late: a text may begin in its middle
		got := 0
		b.follow(feed.Scope{Session: ids.Session}, "text", feed.Now, late, func() bool { got++; return true })
		s := newSeen(t)
		b.follow(feed.Scope{Session: ids.Session}, "", feed.Start, s, func() bool { return s.texts["thread/thr_astep_11"] == text })
		if n := b.hub.Held(); n > 200<<10 {
			t.Errorf("the hub holds %d bytes of a text of %d", n, len(text))
		}
	})
}

// TestASlowReaderIsTold: one that stops reading holds nothing, gets a resync
// with a snapshot, and continues behind it without a gap.
// Guarantee: L3.
func TestASlowReaderIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		snapshot := func(ctx context.Context, s feed.Scope) (json.RawMessage, store.Position, error) {
			end, err := b.st.End(ctx)
			return json.RawMessage(`{"is":"` + string(s.Session) + `"}`), end, err
		}
		b = newBench(t, memory.Open(memory.Options{}), feed.Options{Ring: 64 << 10, Snapshot: snapshot})
		ids := feedtest.IDs("a")
		b.Add(ids, feedtest.Note(0))
		s := newSeen(t)
		var at []byte
		before, stalled, goOn := 0, make(chan bool), make(chan bool)
		var wg sync.WaitGroup
		wg.Go(func() {
			r, err := b.hub.Reader(t.Context(), feed.Scope{Session: ids.Session}, nil, feed.Start)
			if err != nil {
				t.Error(err)
				return
			}
			err = r.Follow(t.Context(), func(ms []feed.Message) error {
				s.take(ms)
				for _, m := range ms {
					if m.Type == feed.TypeResync {
						at = m.Data
					}
				}
				if len(s.facts) == 2 && before == 0 {
					before = len(s.facts)
					stalled <- true
					<-goOn
				}
				if s.last() == "turn.completed" {
					return errEnough
				}
				return nil
			})
			if !errors.Is(err, errEnough) {
				t.Error(err)
			}
		})
		synctest.Wait()
		b.Add(ids, feedtest.Note(1))
		<-stalled
		for i := range 1000 {
			b.Add(ids, feedtest.Note(2+i))
			b.Add(feedtest.IDs("b"), feedtest.Note(i))
		}
		goOn <- true
		time.Sleep(time.Second)
		b.Add(ids, event.TurnCompleted{})
		wg.Wait()
		want := feedtest.Log(t, b.st, func(e event.Envelope) bool { return e.IDs.Session == ids.Session })
		if s.resyncs != 1 || !strings.Contains(string(at), `"snapshot":{"is":"sess_a"}`) {
			t.Errorf("%d resyncs: %s", s.resyncs, at)
		}
		const read = 2 + 256 // those it had, and as many as are read for one that is late
		if !slices.Equal(s.facts, append(want[:read:read], want[len(want)-1])) {
			t.Errorf("got %d facts: %v", len(s.facts), s.types)
		}
		if s.cursor == "" {
			t.Error("it has no cursor to go on from")
		}
	})
}

// TestALateReaderOfAQuietSession: what others write lets the ring go on without
// a reader. It misses little itself, and gets that instead of a snapshot.
// Guarantee: L10.
func TestALateReaderOfAQuietSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Open(memory.Options{}), feed.Options{Ring: 64 << 10})
		ids := feedtest.IDs("a")
		b.Add(ids, feedtest.Note(0))
		s := newSeen(t)
		stalled, goOn := make(chan bool), make(chan bool)
		var wg sync.WaitGroup
		wg.Go(func() {
			r, err := b.hub.Reader(t.Context(), feed.Scope{Session: ids.Session}, nil, feed.Start)
			if err != nil {
				t.Error(err)
				return
			}
			err = r.Follow(t.Context(), func(ms []feed.Message) error {
				s.take(ms)
				if len(s.facts)%10 == 2 {
					stalled <- true
					<-goOn
				}
				if s.last() == "turn.completed" {
					return errEnough
				}
				return nil
			})
			if !errors.Is(err, errEnough) {
				t.Error(err)
			}
		})
		synctest.Wait()
		b.Add(ids, feedtest.Note(1))
		for round := range 3 {
			<-stalled
			for i := range 1000 {
				b.Add(feedtest.IDs("b"), feedtest.Note(i))
			}
			for i := range 10 {
				b.Add(ids, feedtest.Note(10*round+i))
			}
			for i := range 1000 {
				b.Add(feedtest.IDs("b"), feedtest.Note(i))
			}
			goOn <- true
			synctest.Wait()
		}
		<-stalled
		goOn <- true
		b.Add(ids, event.TurnCompleted{})
		wg.Wait()
		want := feedtest.Log(t, b.st, func(e event.Envelope) bool { return e.IDs.Session == ids.Session })
		if s.resyncs != 0 || !slices.Equal(s.facts, want) {
			t.Errorf("%d resyncs and %d of %d facts", s.resyncs, len(s.facts), len(want))
		}
	})
}

// TestStalledReadersHoldNothing measures what 50 readers hold that stopped.
// Guarantee: L4.
func TestStalledReadersHoldNothing(t *testing.T) { synctest.Test(t, stalledReaders) }

func stalledReaders(t *testing.T) {
	b := newBench(t, memory.Open(memory.Options{}), feed.Options{Ring: 1 << 20})
	ids := feedtest.IDs("a")
	b.Add(ids, feedtest.Note(0))
	const readers = 50
	ctx, cancel := context.WithCancel(t.Context())
	var reading, done sync.WaitGroup
	reading.Add(readers)
	for range readers {
		done.Go(func() {
			r, err := b.hub.Reader(ctx, feed.Scope{}, nil, feed.Start)
			if err != nil {
				t.Error(err)
				return
			}
			_ = r.Follow(ctx, func(ms []feed.Message) error {
				reading.Done()
				<-ctx.Done()
				return ctx.Err()
			})
		})
	}
	reading.Wait()
	large := strings.Repeat("x", 10<<10)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var log uint64
	before := heap()
	for i := range 2000 { // 20 MB
		b.Add(ids, event.RuntimeWarning{Code: "N", Message: fmt.Sprint(i) + large})
		log += uint64(len(large)) + 512
	}
	synctest.Wait()
	after := heap()
	cancel()
	done.Wait()
	if each := (int64(after) - int64(before) - int64(log)) / readers; each > 256<<10 {
		t.Errorf("each stalled reader holds %d bytes", each)
	}
}

// Guarantee: L5.
func TestCursorsAreOfOneScopeOfOneStore(t *testing.T) {
	st := memory.Open(memory.Options{})
	b := newBench(t, st, feed.Options{})
	ids := feedtest.IDs("a")
	b.Add(ids, feedtest.Note(1), feedtest.Note(2))
	other := newBench(t, memory.Open(memory.Options{}), feed.Options{})
	other.Add(feedtest.IDs("x"), feedtest.Note(1), feedtest.Note(2), feedtest.Note(3))
	scope, cursor := feed.Scope{Session: ids.Session}, feed.Cursor{}
	for rec, err := range st.Scan(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		cursor = feed.CursorOf(rec)
	}
	good := scope.Text(st.Runtime(), cursor)
	flipped := []byte(good)
	if flipped[20]++; good[20] == 'Z' || good[20] == 'z' || good[20] == '9' || good[20] == '-' || good[20] == '_' {
		flipped[20] = 'A'
	}
	for name, c := range map[string]struct {
		scope feed.Scope
		text  string
		says  string
	}{
		"of another store":        {scope, scope.Text(other.st.Runtime(), cursor), "another store"},
		"of another scope":        {scope, feed.Scope{}.Text(st.Runtime(), cursor), "another stream"},
		"of one stream":           {scope, feed.Scope{Session: ids.Session, Stream: "thread/thr_a"}.Text(st.Runtime(), cursor), "another stream"},
		"a position to come":      {scope, "3", "hasn't come so far"},
		"a negative position":     {scope, "-1", "no cursor"},
		"damaged":                 {scope, string(flipped), "damaged"},
		"cut":                     {scope, good[:20], "no cursor"},
		"garbage":                 {scope, "%%%\x00", "no cursor"},
		"a number without an end": {scope, strings.Repeat("9", 40), "no cursor"},
	} {
		_, err := b.hub.Reader(t.Context(), c.scope, nil, c.text)
		if belay.CodeOf(err) != belay.CodeBadCursor || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for says, c := range map[string]feed.Cursor{"hasn't come so far": {Position: 3}, "another history": {Position: 2, Event: cursor.Event, Time: cursor.Time.Add(1)}} {
		if _, err := feed.Place(t.Context(), st, scope, scope.Text(st.Runtime(), c)); belay.CodeOf(err) != belay.CodeBadCursor || !strings.Contains(err.Error(), says) {
			t.Errorf("a window at %+v: %v", c, err)
		}
	}
	for _, text := range []string{good, "2", "0", feed.Start, feed.Now} {
		r, err := b.hub.Reader(t.Context(), scope, nil, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		r.Close()
	}
}

// TestACursorOfAHistoryThatIsGoneIsResynced: a reader that has facts which the
// store has no more, or others at their place, gets a snapshot first, and then
// only what comes behind it.
// Guarantee: L22.
func TestACursorOfAHistoryThatIsGoneIsResynced(t *testing.T) {
	st := memory.Open(memory.Options{})
	b := newBench(t, st, feed.Options{Snapshot: func(context.Context, feed.Scope) (json.RawMessage, store.Position, error) {
		return json.RawMessage(`"the session"`), 2, nil
	}})
	ids := feedtest.IDs("a")
	b.Add(ids, feedtest.Note(1), feedtest.Note(2))
	gone, other := feed.Cursor{Position: 9, Event: belay.EventIDOf("thread/thr_a", 9)}, feed.Cursor{Position: 2, Event: belay.EventIDOf("thread/thr_a", 2)}
	for name, c := range map[string]struct {
		scope feed.Scope
		at    feed.Cursor
		shown string
	}{
		"of facts that are gone":   {feed.Scope{Session: ids.Session}, gone, `"the session"`},
		"of another history":       {feed.Scope{Session: ids.Session}, other, `"the session"`},
		"of everything in a store": {feed.Scope{}, gone, ""},
	} {
		r, err := b.hub.Reader(t.Context(), c.scope, nil, c.scope.Text(st.Runtime(), c.at))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []feed.Message
		err = r.Follow(ctx, func(ms []feed.Message) error {
			got = append(got, ms...)
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) || len(got) == 0 || got[0].Type != feed.TypeResync {
			t.Errorf("%s: %v %s", name, err, got)
			continue
		}
		var told feed.Resync
		if err := json.Unmarshal(got[0].Data, &told); err != nil || string(told.Snapshot) != c.shown || c.shown != "" && told.Position != 2 || told.Position > 2 {
			t.Errorf("%s: %s, %v", name, got[0].Data, err)
		}
		if at, err := feed.Place(t.Context(), st, c.scope, got[0].Cursor); err != nil || at != told.Position {
			t.Errorf("%s: it goes on at %d, %v", name, at, err)
		}
	}
}

func TestFiltersChooseTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Open(memory.Options{}), feed.Options{})
		b.Answer(feedtest.IDs("a"), "x", "y", "z")
		b.Add(feedtest.IDs("a"), event.TurnCompleted{})
		for types, want := range map[string]string{
			"":                              "model.requested model.delta model.completed turn.completed",
			"turn.completed":                "turn.completed",
			"model.*, turn.completed,":      "model.requested model.delta model.completed turn.completed",
			"model.completed,turn.*,text.*": "model.completed turn.completed",
		} {
			s := newSeen(t)
			b.follow(feed.Scope{}, types, feed.Start, s, func() bool { return s.last() == "turn.completed" })
			if got := strings.Join(s.types, " "); got != want {
				t.Errorf("%q: got %s", types, got)
			}
		}
	})
	for _, bad := range []string{"*", "mod*el", strings.Repeat("x", 99), strings.Repeat("a,", 99)} {
		if _, err := feed.NewFilter(bad); belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestAReaderOfADeletedSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Open(memory.Options{}), feed.Options{})
		b.Add(feedtest.IDs("a"), feedtest.Note(1))
		s := newSeen(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			b.follow(feed.Scope{Session: "sess_a"}, "", feed.Start, s, func() bool { return false })
		})
		time.Sleep(40 * time.Second)
		b.Delete("sess_a")
		wg.Wait()
		if !s.deleted || s.beats != 2 || len(s.facts) != 1 {
			t.Errorf("deleted %v, %d beats, %d facts", s.deleted, s.beats, len(s.facts))
		}
	})
}

// TestAnotherProcessIsFollowed appends through another handle on the same file.
// Guarantee: L6.
func TestAnotherProcessIsFollowed(t *testing.T) {
	dir := t.TempDir()
	open := func() store.Store {
		st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		return st
	}
	b, writer := newBench(t, open(), feed.Options{Pace: time.Millisecond}), open()
	away := feedtest.New(t, writer, b.hub.Show)
	s, got := newSeen(t), make(chan int)
	var wg sync.WaitGroup
	wg.Go(func() {
		b.follow(feed.Scope{Session: "sess_a"}, "", feed.Start, s, func() bool { got <- len(s.facts); return len(s.facts) >= 30 })
	})
	for i := range 30 {
		away.Add(feedtest.IDs("a"), feedtest.Note(i))
		if n := <-got; n != i+1 {
			t.Fatalf("after %d facts it has %d", i+1, n)
		}
	}
	wg.Wait()
	if want := feedtest.Log(t, b.st, all); !slices.Equal(s.facts, want) {
		t.Errorf("got %d facts, the log has %d", len(s.facts), len(want))
	}
}

// What a running call prints comes after the fact that it started and not after its
// end, in order; who comes late gets the end of it, and a new attempt begins anew.
func TestOutputFlowsWhileItsCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Open(memory.Options{}), feed.Options{})
		ids := feedtest.IDs("a")
		ids.Step, ids.Call = "step_1", "call_1"
		at := int64(0)
		show := func(attempt int, text string) {
			b.hub.Show(event.Delta{Stream: ids.Thread.Stream(), IDs: ids, Kind: "progress", Attempt: attempt, Offset: at, Text: text})
			at += int64(len(text))
		}
		got := func(types string) (lines []string) {
			r, err := b.hub.Reader(t.Context(), feed.Scope{Session: ids.Session}, feed.Filter(strings.Split(types, ",")), feed.Start)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			r.Follow(ctx, func(ms []feed.Message) error { //nolint:errcheck // its time is up
				for _, m := range ms {
					switch {
					case m.Type == feed.TypeOutput && m.Cursor == "":
						var o feed.Output
						if err := json.Unmarshal(m.Data, &o); err != nil || o.Call != ids.Call || o.Session != ids.Session {
							t.Errorf("%s: %v", m.Data, err)
						}
						if len(o.Contents) > 40 {
							o.Contents = fmt.Sprintf("%d bytes", len(o.Contents))
						}
						lines = append(lines, fmt.Sprintf("%d %d %s", o.Attempt, o.Offset, o.Contents))
					default:
						lines = append(lines, m.Type)
					}
				}
				return nil
			})
			return lines
		}
		want := func(types, want string) {
			t.Helper()
			synctest.Wait() // the hub has seen the facts
			if got := strings.Join(got(types), ", "); got != want {
				t.Errorf("a reader gets %q, want %q", got, want)
			}
		}
		show(1, "early")
		want("output", "")
		b.Add(ids, event.ToolStarted{Name: "exec", Attempt: 1})
		show(1, " and on")
		want("tool.*,output", "tool.started, 1 0 early and on")
		want("tool.*", "tool.started")
		at += 100 // pieces are left out
		show(1, "later")
		want("output", "1 112 later")
		show(1, strings.Repeat("x", 40<<10))
		if n := b.hub.Held(); n > 64<<10 {
			t.Errorf("%d bytes are held", n)
		}
		if lines := got("output"); len(lines) != 1 || !strings.HasSuffix(lines[0], "16384 bytes") {
			t.Errorf("late: %q", lines)
		}
		b.Add(ids, event.ToolFailed{Name: "exec", Attempt: 1})
		want("output", "")
		at = 0
		b.Add(ids, event.ToolStarted{Name: "exec", Attempt: 2})
		show(2, "again")
		want("output", "2 0 again")
		b.Add(ids, event.ToolResult{Name: "exec", Attempt: 2})
		want("output", "")
		show(2, "from the background")
		b.Add(ids, event.ProcessCompleted{})
		if n := b.hub.Held(); n > 16<<10 {
			t.Errorf("%d bytes are held when nothing runs", n)
		}
	})
}

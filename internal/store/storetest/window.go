package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

var windowLaws = []law{
	// Guarantee: L7.
	{"a window is what a scan of the log has of it", windows},
	{"a window of what isn't there is empty", func(l *lab) {
		l.put(l.session("a"), "one")
		for _, w := range []store.Window{{Session: "sess_none"}, {Stream: "thread/thr_none"}, {}, {Session: "sess_a", After: 1}, {Session: "sess_a", Before: 1}, {Session: "sess_a", After: 99}} {
			if got := l.window(w); len(got) != 0 {
				l.Fatalf("%+v has %v", w, got)
			}
		}
		if got := l.window(store.Window{Session: "sess_a", After: -5, Before: 99}); len(got) != 1 {
			l.Fatalf("got %v", got)
		}
	}},
	{"a window ends where the log ended when it was asked for", func(l *lab) {
		b := l.session("a")
		l.put(b, "one", "two")
		n := 0
		for _, err := range l.Window(l.Context(), store.Window{Session: b.Session}) {
			l.must(err)
			l.put(b, "more")
			n++
		}
		if n != 2 {
			l.Fatalf("got %d facts, want 2", n)
		}
	}},
}

func (l *lab) window(w store.Window) (all []string) {
	l.Helper()
	for r, err := range l.Window(l.Context(), w) {
		l.must(err)
		all = append(all, placed(r))
	}
	return all
}

func placed(r store.Record) string {
	return fmt.Sprint(r.Position, " ", r.Event.Stream, " ", r.Event.Seq)
}

// windows asks for parts of a log in which the streams of sessions alternate and
// one session was deleted.
func windows(l *lab) {
	random := rand.New(rand.NewPCG(1, 2))
	var streams []*store.Batch
	for _, name := range []string{"a", "b", "gone"} {
		b := l.session(name)
		for i := range 4 {
			c := *b
			c.Stream = belay.ThreadID(fmt.Sprint("thr_", name, i)).Stream()
			streams = append(streams, &c)
		}
	}
	for range 150 {
		b := streams[random.IntN(len(streams))]
		l.put(b, slices.Repeat([]string{"x"}, 1+random.IntN(8))...)
	}
	gone := streams[len(streams)-1]
	l.must(l.Release(l.Context(), gone.Session, gone.Epoch))
	l.remove(l, gone.Session)
	log := l.log(l, 0)
	end := int(log[len(log)-1].Position) + 2
	for range 400 {
		w := store.Window{Session: streams[random.IntN(len(streams))].Session, After: store.Position(random.IntN(end)), Newest: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			w.Stream = streams[random.IntN(len(streams))].Stream
		}
		if random.IntN(2) == 0 {
			w.Before = store.Position(random.IntN(end))
		}
		var want []string
		for _, r := range log {
			mine := r.Event.IDs.Session == w.Session
			if w.Stream != "" {
				mine = r.Event.Stream == w.Stream
			}
			if mine && r.Position > w.After && (w.Before == 0 || r.Position < w.Before) {
				want = append(want, placed(r))
			}
		}
		if w.Newest {
			slices.Reverse(want)
		}
		same(l, fmt.Sprintf("%+v", w), l.window(w), want)
	}
}

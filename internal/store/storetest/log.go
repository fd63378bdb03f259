package storetest

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

func matches(got, want error) bool { return errors.Is(got, want) }

// logLaws are what is read, by whom and when.
var logLaws = []law{
	{"a batch is read back in order, numbered from one", func(l *lab) {
		b := l.session("a")
		pos := l.put(b, "one", "two")
		l.put(b, "three")
		same(l, "texts", l.texts(b.Stream), []string{"one", "two", "three"})
		for i, e := range l.stream(l, b.Stream, 0) {
			if e.Seq != int64(i+1) || e.Stream != b.Stream || e.Runtime != l.Runtime() {
				l.Fatalf("fact %d stands at %s %d of %s", i, e.Stream, e.Seq, e.Runtime)
			}
		}
		if all := l.log(l, 0); len(all) != 3 || all[1].Position != pos {
			l.Fatalf("the batch ended at %d, the log says %v", pos, all)
		}
	}},
	{"reading after a sequence begins behind it", func(l *lab) {
		b := l.session("a")
		l.put(b, "one", "two", "three")
		for after, want := range map[int64]int{-1: 3, 0: 3, 1: 2, 3: 0, 9: 0} {
			if got := l.stream(l, b.Stream, after); len(got) != want {
				l.Fatalf("after %d: got %d facts, want %d", after, len(got), want)
			}
		}
		if got := l.stream(l, "thread/thr_none", 0); len(got) != 0 {
			l.Fatalf("a stream that isn't there has %d facts", len(got))
		}
	}},
	{"every type of fact comes back as it was", func(l *lab) {
		b := l.session("a")
		want := everyEvent(l, b)
		for i := range want {
			b.Events = want[i : i+1]
			_, err := l.Append(l.Context(), *b)
			l.must(err)
			b.After++
			want[i].Stream, want[i].Seq = b.Stream, b.After
		}
		l.reopen()
		for i, got := range l.stream(l, b.Stream, 0) {
			if !reflect.DeepEqual(got, want[i]) {
				l.Errorf("%s:\n got %+v\nwant %+v", want[i].Type(), got, want[i])
			}
		}
		for i, got := range l.log(l, 0) {
			got.Event.Keep(nil) // what saves encoding it again
			if !reflect.DeepEqual(got.Event, want[i]) {
				l.Errorf("scanned %s:\n got %+v\nwant %+v", want[i].Type(), got.Event, want[i])
			}
		}
	}},
	{"the head's hash can be recomputed from what is read", func(l *lab) {
		b := l.session("a")
		l.put(b, "one")
		first, err := l.Head(l.Context(), b.Stream)
		l.must(err)
		l.put(b, "two", "three")
		head, err := l.Head(l.Context(), b.Stream)
		l.must(err)
		hash := store.Genesis(b.Session, b.Stream)
		var buf []byte
		for _, e := range l.stream(l, b.Stream, 0) {
			row, err := store.Pack(b.Session, b.Stream, &e)
			l.must(err)
			hash, buf = store.Link(hash, &row, buf)
			if e.Seq == 1 && hash != first.Hash {
				l.Fatal("the chain after one fact isn't the head's")
			}
		}
		if head.Hash != hash || head.Seq != 3 || head.Session != b.Session || !head.Time.Equal(l.env.Now()) {
			l.Fatalf("head: got %+v, want hash %x", head, hash)
		}
	}},
	// Guarantee: S9.
	{"a follower sees every fact once, in order, and none behind its cursor", follow},
	{"positions grow with the log's end", func(l *lab) {
		b := l.session("a")
		last, err := l.End(l.Context())
		l.must(err)
		for range 5 {
			pos := l.put(b, "x", "y")
			end, err := l.End(l.Context())
			l.must(err)
			if end != pos || pos <= last {
				l.Fatalf("appended up to %d after %d, the end is %d", pos, last, end)
			}
			last = end
		}
	}},
	{"who reads may write before the reading is over", func(l *lab) {
		b := l.session("a")
		l.put(b, "one", "two")
		n := 0
		for _, err := range l.Read(l.Context(), b.Stream, 0) {
			l.must(err)
			if n++; n <= 2 {
				l.put(b, "more")
			}
		}
		for range l.Scan(l.Context(), 0) {
			l.put(b, "last")
			break
		}
		if got := len(l.texts(b.Stream)); got != 5 {
			l.Fatalf("got %d facts, want 5", got)
		}
	}},
	{"long streams are read whole", func(l *lab) {
		b := l.session("a")
		for range 13 {
			l.put(b, strings.Split(strings.Repeat("x,", 99)+"x", ",")...)
		}
		if got := len(l.texts(b.Stream)); got != 1300 {
			l.Fatalf("read %d facts, want 1300", got)
		}
		if got := len(l.log(l, 0)); got != 1300 {
			l.Fatalf("scanned %d facts, want 1300", got)
		}
	}},
	// Guarantee: L6.
	{"commits wake those who wait, also through another handle", func(l *lab) {
		b := l.session("a")
		for _, s := range []store.Store{l.Store, l.again()} {
			end, err := s.End(l.Context())
			l.must(err)
			changed := s.Changed(l.Context())
			want := l.put(b, "news")
			for end < want {
				select {
				case <-changed:
				case <-time.After(5 * time.Second):
					l.Fatal("nobody was woken")
				}
				changed = s.Changed(l.Context())
				end, err = s.End(l.Context())
				l.must(err)
			}
		}
	}},
}

// follow lets writers append to their sessions through two handles while a
// third reads behind the end of the log.
func follow(l *lab) {
	const writers, batches = 4, 25
	handles := []store.Store{l.Store, l.again()}
	var wg sync.WaitGroup
	for w := range writers {
		b := l.session(number("w", w))
		wg.Go(func() {
			for i := range batches {
				c := *b
				c.After = int64(2 * i)
				c.Events = []event.Envelope{l.fact(b, "x"), l.fact(b, "y")}
				if _, err := handles[w%2].Append(l.Context(), c); err != nil {
					l.Error(err)
					return
				}
			}
		})
	}
	reader := l.again()
	seen := map[belay.StreamID]int64{}
	cursor, total := store.Position(0), 0
	for total < writers*batches*2 && !l.Failed() {
		changed := reader.Changed(l.Context())
		for _, r := range l.log(reader, cursor) {
			if r.Position <= cursor || r.Event.Seq != seen[r.Event.Stream]+1 {
				l.Errorf("%s %d at %d, after %d at %d", r.Event.Stream, r.Event.Seq, r.Position, seen[r.Event.Stream], cursor)
			}
			cursor, seen[r.Event.Stream] = r.Position, r.Event.Seq
			total++
		}
		if total < writers*batches*2 {
			<-changed
		}
	}
	wg.Wait()
	all := l.log(l, 0)
	if len(all) != total || all[len(all)-1].Position != cursor {
		l.Fatalf("followed %d facts up to %d, the log has %d", total, cursor, len(all))
	}
}

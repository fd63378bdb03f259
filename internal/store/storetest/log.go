package storetest

import (
	"context"
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
	{"a stale append writes nothing", func(l *lab) {
		b := l.session("a")
		l.put(b, "one", "two")
		for _, after := range []int64{0, 1, 3} {
			late := *b
			late.After, late.Events, late.Lane.Runnable = after, []event.Envelope{l.fact(b, "late")}, true
			_, err := l.Append(l.Context(), late)
			l.is(err, store.ErrConflict)
		}
		same(l, "texts", l.texts(b.Stream), []string{"one", "two"})
		if len(l.lanes("")) != 0 {
			l.Fatal("the lane was changed")
		}
	}},
	{"a first append behind nothing begins at one", func(l *lab) {
		b := l.session("a")
		b.After = 1
		b.Events = []event.Envelope{l.fact(b, "early")}
		_, err := l.Append(l.Context(), *b)
		l.is(err, store.ErrConflict)
		_, err = l.Head(l.Context(), b.Stream)
		l.is(err, store.ErrNotFound)
	}},
	{"an append of another epoch writes nothing", func(l *lab) {
		b := l.session("a")
		for _, epoch := range []int64{0, b.Epoch - 1, b.Epoch + 1} {
			other := *b
			other.Epoch, other.Events = epoch, []event.Envelope{l.fact(b, "stale")}
			_, err := l.Append(l.Context(), other)
			l.is(err, store.ErrStale)
		}
		if all := l.log(l, 0); len(all) != 0 {
			l.Fatalf("the log has %v", all)
		}
	}},
	{"a key that is present makes an append a no-op with the old position", func(l *lab) {
		b := l.session("a")
		first := *b
		first.Key, first.Events = "answer/1", []event.Envelope{l.fact(b, "one")}
		pos, err := l.Append(l.Context(), first)
		l.must(err)
		b.After = 1
		l.put(b, "two")
		again, err := l.Append(l.Context(), first)
		l.must(err)
		if again != pos {
			l.Fatalf("position: got %d, want %d", again, pos)
		}
		same(l, "texts", l.texts(b.Stream), []string{"one", "two"})
	}},
	{"long keys are told apart, and so are the streams they are in", func(l *lab) {
		b, c := l.session("a"), l.session("b")
		for i, key := range []string{strings.Repeat("k", 40) + "1", strings.Repeat("k", 40) + "2", strings.Repeat("k", 16)} {
			b.Key, b.After = key, int64(i)
			l.put(b, key)
		}
		c.Key = b.Key
		l.put(c, "other stream")
		if n := len(l.log(l, 0)); n != 4 {
			l.Fatalf("got %d facts, want 4", n)
		}
	}},
	{"a batch without facts changes the lane and stays at its place", func(l *lab) {
		b := l.session("a")
		l.put(b, "one")
		b.Lane.Runnable = true
		if pos := l.put(b); pos != 0 {
			l.Fatalf("position: got %d, want 0", pos)
		}
		if got := l.lanes("")[b.Stream]; !got.Runnable {
			l.Fatalf("lane: got %+v", got)
		}
	}},
	{"consumed commands leave and sent ones arrive with the facts", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "x")))
		l.must(l.Enqueue(l.Context(), l.order("c2", b, "y")))
		b.Consumed, b.Sends = []belay.CommandID{"c1"}, []belay.Order{l.order("s1", other, "z")}
		l.put(b, "answer")
		same(l, "inbox", l.waiting(b.Stream), []belay.CommandID{"c2"})
		same(l, "sent", l.waiting(other.Stream), []belay.CommandID{"s1"})
	}},
	{"a refused append consumes and sends nothing", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "x")))
		b.Consumed, b.Sends, b.After = []belay.CommandID{"c1"}, []belay.Order{l.order("s1", other, "z")}, 7
		_, err := l.Append(l.Context(), *b)
		l.is(err, store.ErrConflict)
		same(l, "inbox", l.waiting(b.Stream), []belay.CommandID{"c1"})
		same(l, "sent", l.waiting(other.Stream), nil)
	}},
	{"a send whose id is taken by another command refuses the batch", func(l *lab) {
		b := l.session("a")
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "x")))
		bad := *b
		bad.Events, bad.Sends = []event.Envelope{l.fact(b, "no")}, []belay.Order{l.order("c2", b, "fine"), l.order("c1", b, "other")}
		_, err := l.Append(l.Context(), bad)
		l.code(err, belay.CodeIDConflict)
		bad.Sends = []belay.Order{l.order("c3", b, "one"), l.order("c3", b, "two")}
		_, err = l.Append(l.Context(), bad)
		l.code(err, belay.CodeIDConflict)
		same(l, "texts", l.texts(b.Stream), nil)
		same(l, "inbox", l.waiting(b.Stream), []belay.CommandID{"c1"})
	}},
	{"a stream stays in its session", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.put(b, "one")
		other.Stream, other.After = b.Stream, 1
		other.Events = []event.Envelope{l.fact(b, "two")}
		_, err := l.Append(l.Context(), *other)
		l.code(err, belay.CodeBadState)
		o := l.order("c1", b, "x")
		o.Session = other.Session
		l.code(l.Enqueue(l.Context(), o), belay.CodeBadState)
	}},
	{"times of a stream never go back, and a missing time is now", func(l *lab) {
		b := l.session("a")
		start := l.env.Now()
		l.put(b, "noon")
		early := *b
		early.Events = []event.Envelope{l.fact(b, "earlier"), l.fact(b, "later"), l.fact(b, "between"), l.fact(b, "none")}
		for i, at := range []time.Time{start.Add(-time.Hour), start.Add(time.Second), start.Add(time.Millisecond), {}} {
			early.Events[i].Time = at
		}
		l.env.Pass(time.Minute)
		_, err := l.Append(l.Context(), early)
		l.must(err)
		for i, want := range []time.Time{start, start, start.Add(time.Second), start.Add(time.Second), start.Add(time.Minute)} {
			if got := l.stream(l, b.Stream, 0)[i].Time; !got.Equal(want) {
				l.Fatalf("time of fact %d: got %v, want %v", i+1, got, want)
			}
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
	{"a fact that is too large is refused with its whole batch", func(l *lab) {
		b := l.session("a")
		b.Events = []event.Envelope{l.fact(b, "small"), l.fact(b, strings.Repeat("x", store.MaxEvent))}
		_, err := l.Append(l.Context(), *b)
		l.code(err, belay.CodeTooLarge)
		same(l, "texts", l.texts(b.Stream), nil)
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
	{"nothing is written for a context that has ended", func(l *lab) {
		b := l.session("a")
		ctx, cancel := context.WithCancel(l.Context())
		cancel()
		b.Events = []event.Envelope{l.fact(b, "no")}
		_, err := l.Append(ctx, *b)
		l.is(err, context.Canceled)
		l.is(l.Enqueue(ctx, l.order("c1", b, "x")), context.Canceled)
		for _, err := range l.Read(ctx, b.Stream, 0) {
			l.is(err, context.Canceled)
		}
		if all := l.log(l, 0); len(all) != 0 {
			l.Fatalf("the log has %v", all)
		}
	}},
	{"a closed store refuses", func(l *lab) {
		b := l.session("a")
		l.must(l.Close())
		b.Events = []event.Envelope{l.fact(b, "no")}
		_, err := l.Append(l.Context(), *b)
		l.code(err, belay.CodeBadState)
		_, err = l.End(l.Context())
		l.code(err, belay.CodeBadState)
		_, err = l.Put(l.Context(), []byte("x"), "")
		l.code(err, belay.CodeBadState)
		<-l.Changed(l.Context())
		l.must(l.Close())
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

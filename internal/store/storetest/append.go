package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// appendLaws are what an append writes, and when it writes nothing.
var appendLaws = []law{
	// Guarantee: S2.
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
	// Guarantee: S6.
	{"a key that is present makes an append a no-op", func(l *lab) {
		b := l.session("a")
		first := *b
		first.Key, first.Events = "answer/1", []event.Envelope{l.fact(b, "one")}
		_, err := l.Append(l.Context(), first)
		l.must(err)
		b.After = 1
		l.put(b, "two")
		again, err := l.Append(l.Context(), first)
		l.must(err)
		if len(again) != 0 {
			l.Fatalf("positions: got %d, want none", again)
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
	// Guarantee: S1.
	{"consumed commands leave and sent ones arrive with the facts", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "x")))
		l.must(l.Enqueue(l.Context(), l.order("c2", b, "y")))
		b.Consumed, b.Sends = []belay.CommandID{"c1"}, []belay.Order{l.order("s1", other, "z")}
		l.put(b, "answer")
		same(l, "inbox", l.waiting(b.Stream), []belay.CommandID{"c2"})
		same(l, "sent", l.waiting(other.Stream), []belay.CommandID{"s1"})
	}},
	// Guarantee: S1.
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
	// Guarantee: O10.
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
	// Guarantee: S19.
	{"a fact that is too large is refused with its whole batch", func(l *lab) {
		b := l.session("a")
		b.Events = []event.Envelope{l.fact(b, "small"), l.fact(b, strings.Repeat("x", store.MaxEvent))}
		_, err := l.Append(l.Context(), *b)
		l.code(err, belay.CodeTooLarge)
		same(l, "texts", l.texts(b.Stream), nil)
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

package storetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// founding is a session of two streams: its command c/NAME made two facts and
// sent s/NAME to the other stream, where it made one.
func (l *lab) founding(name string) store.NewSession {
	session := belay.SessionID("sess_" + name)
	first := store.Batch{Session: session, Stream: session.Stream()}
	second := store.Batch{Session: session, Stream: belay.ThreadID("thr_" + name).Stream(), Lane: store.Lane{Runnable: true}}
	told := l.order("c/"+name, &first, "x")
	first.Events = []event.Envelope{l.fact(&first, "one"), l.fact(&first, "two")}
	first.Sends = []belay.Order{l.order("s/"+name, &second, "y")}
	second.Events = []event.Envelope{l.fact(&second, "three")}
	second.State = &store.State{Seq: 1, Version: "v/1", Data: []byte(`{"three":3}`)}
	return store.NewSession{Session: session, Owner: owner("one"), Orders: []belay.Order{told}, Batches: []store.Batch{first, second}}
}

// longWay does with a founding what it says it is.
func (l *lab) longWay(f store.NewSession) (end store.Position) {
	l.must(l.Enqueue(l.Context(), f.Orders...))
	epoch, err := l.Claim(l.Context(), f.Session, f.Owner, ttl)
	l.must(err)
	for i, b := range f.Batches {
		b.Epoch, b.Consumed = epoch, l.waiting(b.Stream)
		end, err = l.Append(l.Context(), b)
		l.must(err)
		f.Batches[i] = b
	}
	l.must(l.Release(l.Context(), f.Session, epoch))
	return end
}

// alike wants two sessions to be the same but for their names.
func (l *lab) alike(a, b store.NewSession) {
	l.Helper()
	for i := range a.Batches {
		one, other := a.Batches[i].Stream, b.Batches[i].Stream
		same(l, "texts", l.texts(one), l.texts(other))
		same(l, "waiting", l.waiting(one), l.waiting(other))
		x, err := l.Head(l.Context(), one)
		l.must(err)
		y, err := l.Head(l.Context(), other)
		l.must(err)
		if x.Seq != y.Seq || !x.Time.Equal(y.Time) {
			l.Fatalf("heads: %+v and %+v", x, y)
		}
		m, n := l.lanes(a.Session)[one], l.lanes(b.Session)[other]
		if m.Runnable != n.Runnable || m.Seq != n.Seq || m.Inbox != n.Inbox {
			l.Fatalf("lanes: %+v and %+v", m, n)
		}
		s, err := l.LoadState(l.Context(), one, "v/1")
		l.must(err)
		t, err := l.LoadState(l.Context(), other, "v/1")
		l.must(err)
		if (s == nil) != (t == nil) || s != nil && (s.Seq != t.Seq || string(s.Data) != string(t.Data)) {
			l.Fatalf("states: %+v and %+v", s, t)
		}
	}
	for _, s := range []belay.SessionID{a.Session, b.Session} {
		if o, err := l.OwnerOf(l.Context(), s); o != nil || err != nil {
			l.Fatalf("%s is owned by %v, %v", s, o, err)
		}
		if epoch := l.claim(l, s, owner("two")); epoch != 2 {
			l.Fatalf("the next epoch of %s is %d, want 2", s, epoch)
		}
	}
}

var foundingLaws = []law{
	// Guarantee: S46.
	{"a founded session is as one that was told, claimed and given back", func(l *lab) {
		short, long := l.founding("a"), l.founding("b")
		end, err := l.Found(l.Context(), short)
		l.must(err)
		all := l.log(l, 0)
		if len(all) != 3 || all[2].Position != end || all[0].Position != end-2 {
			l.Fatalf("it ended at %d, the log says %v", end, all)
		}
		l.longWay(long)
		l.reopen()
		l.alike(short, long)
	}},
	{"its commands are known when they come again", func(l *lab) {
		f := l.founding("a")
		_, err := l.Found(l.Context(), f)
		l.must(err)
		for told := range f.Told() {
			o := *told
			l.must(l.Enqueue(l.Context(), o))
			same(l, "waiting", l.waiting(o.Stream), nil)
			o.Command = belay.InterruptTurn{Reason: "other"}
			l.code(l.Enqueue(l.Context(), o), belay.CodeIDConflict)
		}
	}},
	// Guarantee: S46.
	{"what is known isn't founded, and nothing is written", func(l *lab) {
		for name, know := range map[string]func(f *store.NewSession){
			"claimed": func(f *store.NewSession) { l.claim(l, f.Session, owner("two")) },
			"waiting": func(f *store.NewSession) {
				b := &store.Batch{Session: f.Session, Stream: "thread/thr_other"}
				l.must(l.Enqueue(l.Context(), l.order("w/"+string(f.Session), b, "x")))
			},
			"founded": func(f *store.NewSession) {
				_, err := l.Found(l.Context(), *f)
				l.must(err)
			},
			"deleted": func(f *store.NewSession) {
				_, err := l.Found(l.Context(), *f)
				l.must(err)
				_, err = l.DeleteSession(l.Context(), f.Session, "user:ada")
				l.must(err)
			},
			"stream of another": func(f *store.NewSession) { l.put(l.session(string(f.Session)[len("sess_"):]+"2"), "x") },
			"command":           func(f *store.NewSession) { l.must(l.Enqueue(l.Context(), f.Orders...)) },
			"sent":              func(f *store.NewSession) { l.must(l.Enqueue(l.Context(), f.Batches[0].Sends...)) },
		} {
			f := l.founding(number("k", len(name)) + name[:1])
			if name == "stream of another" {
				f.Batches[1].Stream = belay.StreamID("thread/thr_" + string(f.Session)[len("sess_"):] + "2")
				f.Batches[0].Sends = nil
			}
			if name == "command" || name == "sent" { // by a session that isn't this one
				other := l.founding("else" + name)
				f.Orders[0].ID, f.Batches[0].Sends[0].ID = other.Orders[0].ID, other.Batches[0].Sends[0].ID
				know(&other)
			} else {
				know(&f)
			}
			before := len(l.log(l, 0))
			_, err := l.Found(l.Context(), f)
			if !errors.Is(err, store.ErrConflict) {
				l.Fatalf("%s: got %v", name, err)
			}
			if n := len(l.log(l, 0)); n != before {
				l.Fatalf("%s: %d facts became %d", name, before, n)
			}
		}
	}},
	// Guarantee: S46.
	{"of several who found a session one does", func(l *lab) {
		other := l.again()
		var wg sync.WaitGroup
		var did atomic.Int64
		for i := range 8 {
			s := []store.Store{l.Store, other}[i%2]
			wg.Go(func() {
				switch _, err := s.Found(l.Context(), l.founding("a")); {
				case err == nil:
					did.Add(1)
				case !errors.Is(err, store.ErrConflict):
					l.Error(err)
				}
			})
		}
		wg.Wait()
		if n := did.Load(); n != 1 || len(l.log(l, 0)) != 3 {
			l.Fatalf("%d did, and there are %d facts", n, len(l.log(l, 0)))
		}
	}},
	{"content put before a founding is durable with it", func(l *lab) {
		ref, err := l.Put(l.Context(), []byte("small"), "text/plain")
		l.must(err)
		_, err = l.Found(l.Context(), l.founding("a"))
		l.must(err)
		other := l.again()
		got, err := other.Get(l.Context(), ref.Digest)
		l.must(err)
		if string(got) != "small" {
			l.Fatalf("another process reads %q", got)
		}
	}},
	// Guarantee: S46.
	{"a founded session that is kept is its owner's", func(l *lab) {
		f := l.founding("a")
		f.Keep = ttl
		_, err := l.Found(l.Context(), f)
		l.must(err)
		other := l.again()
		if o, err := other.OwnerOf(l.Context(), f.Session); err != nil || o == nil || o.ID != f.Owner.ID || o.Epoch != 1 {
			l.Fatalf("it is owned by %+v, %v", o, err)
		}
		var owned *store.OwnedError
		if _, err := other.Claim(l.Context(), f.Session, owner("two"), ttl); !errors.As(err, &owned) {
			l.Fatalf("another claims it: %v", err)
		}
		more := store.Batch{Session: f.Session, Stream: f.Session.Stream(), After: 2, Epoch: 1}
		more.Events = []event.Envelope{l.fact(&more, "four")}
		_, err = l.Append(l.Context(), more)
		l.must(err)
		l.must(l.Release(l.Context(), f.Session, 1))
		if epoch := l.claim(other, f.Session, owner("two")); epoch != 2 {
			l.Fatalf("the next epoch is %d, want 2", epoch)
		}
	}},
	{"a kept session is given back when its store is closed, and taken when its owner died", func(l *lab) {
		f, g := l.founding("a"), l.founding("b")
		f.Keep, g.Keep, g.Owner = ttl, ttl, owner("dead")
		_, err := l.Found(l.Context(), f)
		l.must(err)
		_, err = l.again().Found(l.Context(), g)
		l.must(err)
		l.env.Dies(g.Owner)
		l.reopen()
		for _, s := range []belay.SessionID{f.Session, g.Session} {
			if epoch := l.claim(l, s, owner("two")); epoch != 2 {
				l.Fatalf("the next epoch of %s is %d, want 2", s, epoch)
			}
		}
	}},
	// Guarantee: S46.
	{"a founded session is a writer, or isn't founded where another is one", func(l *lab) {
		first, second, third := l.founding("a"), l.founding("b"), l.founding("c")
		for _, f := range []*store.NewSession{&first, &second, &third} {
			f.Keep, f.Writes = ttl, "/w"
		}
		third.Writes, third.Shared = "/w/in", true
		_, err := l.Found(l.Context(), first)
		l.must(err)
		before := len(l.log(l, 0))
		_, err = l.again().Found(l.Context(), second)
		l.writtenBy(err, first.Session, "/w")
		if n := len(l.log(l, 0)); n != before {
			l.Fatalf("%d facts became %d", before, n)
		}
		_, err = l.Found(l.Context(), third)
		l.must(err)
		l.must(l.Release(l.Context(), first.Session, 1))
		_, err = l.Found(l.Context(), second)
		l.writtenBy(err, third.Session, "/w/in")
		l.must(l.Release(l.Context(), third.Session, 1))
		_, err = l.again().Found(l.Context(), second)
		l.must(err)
		l.writtenBy(l.writes(l, "sess_d", owner("four"), "/w"), second.Session, "/w")
	}},
	{"a founding without facts, twice the same or of two sessions is refused", func(l *lab) {
		empty, twice, foreign, again, writer := l.founding("a"), l.founding("b"), l.founding("c"), l.founding("d"), l.founding("e")
		writer.Writes = "/w" // and isn't kept
		empty.Batches = nil
		twice.Batches = append(twice.Batches, twice.Batches[0])
		foreign.Batches[1].Session = "sess_other"
		again.Orders = append(again.Orders, again.Orders[0])
		for _, f := range []store.NewSession{empty, twice, foreign, again, writer} {
			_, err := l.Found(l.Context(), f)
			l.code(err, belay.CodeInternal)
		}
		if all := l.log(l, 0); len(all) != 0 {
			l.Fatalf("the log has %v", all)
		}
	}},
}

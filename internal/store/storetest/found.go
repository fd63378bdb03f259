package storetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// founding is a session of two streams that comes with its claim: its command
// c/NAME made two facts and sent s/NAME to the other stream, where it made one.
func (l *lab) founding(name string) []store.Batch {
	session := belay.SessionID("sess_" + name)
	first := store.Batch{Session: session, Stream: session.Stream(), Epoch: 1, Claim: &store.Claim{Owner: owner("one")}}
	second := store.Batch{Session: session, Stream: belay.ThreadID("thr_" + name).Stream(), Epoch: 1, Lane: store.Lane{Runnable: true}}
	told, sent := l.order("c/"+name, &first, "x"), l.order("s/"+name, &second, "y")
	first.Events = []event.Envelope{l.fact(&first, "one"), l.fact(&first, "two")}
	first.Sends, first.Consumed = []belay.Order{told, sent}, []belay.CommandID{told.ID}
	second.Events, second.Consumed = []event.Envelope{l.fact(&second, "three")}, []belay.CommandID{sent.ID}
	second.State = &store.State{Seq: 1, Version: "v/1", Data: []byte(`{"three":3}`)}
	return []store.Batch{first, second}
}

// longWay does with a founding what it says it is.
func (l *lab) longWay(all []store.Batch) {
	l.must(l.Enqueue(l.Context(), all[0].Sends[0]))
	epoch, err := l.Claim(l.Context(), all[0].Session, all[0].Claim.Owner, ttl)
	l.must(err)
	for _, b := range all {
		if b.Claim, b.Epoch = nil, epoch; len(b.Sends) > 0 {
			b.Sends = b.Sends[1:]
		}
		_, err = l.Append(l.Context(), b)
		l.must(err)
	}
	l.must(l.Release(l.Context(), all[0].Session, epoch))
}

// alike wants two sessions to be the same but for their names.
func (l *lab) alike(a, b []store.Batch) {
	l.Helper()
	for i := range a {
		one, other := a[i].Stream, b[i].Stream
		same(l, "texts", l.texts(one), l.texts(other))
		same(l, "waiting", l.waiting(one), l.waiting(other))
		x, err := l.Head(l.Context(), one)
		l.must(err)
		y, err := l.Head(l.Context(), other)
		l.must(err)
		if x.Seq != y.Seq || !x.Time.Equal(y.Time) {
			l.Fatalf("heads: %+v and %+v", x, y)
		}
		m, n := l.lanes(a[0].Session)[one], l.lanes(b[0].Session)[other]
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
	for _, s := range []belay.SessionID{a[0].Session, b[0].Session} {
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
	{"a session that comes with its claim is as one that was told, claimed and given back", func(l *lab) {
		short, long := l.founding("a"), l.founding("b")
		pos, err := l.Append(l.Context(), short...)
		l.must(err)
		var all []store.Position
		for _, r := range l.log(l, 0) {
			all = append(all, r.Position)
		}
		same(l, "positions", pos, all)
		if len(pos) != 3 {
			l.Fatalf("%d facts, want 3", len(pos))
		}
		l.longWay(long)
		l.reopen()
		l.alike(short, long)
	}},
	{"commands that come in with what answers them are known when they come again", func(l *lab) {
		f := l.founding("a")
		_, err := l.Append(l.Context(), f...)
		l.must(err)
		for _, o := range f[0].Sends {
			l.must(l.Enqueue(l.Context(), o))
			same(l, "waiting", l.waiting(o.Stream), nil)
			o.Command = belay.InterruptTurn{Reason: "other"}
			l.code(l.Enqueue(l.Context(), o), belay.CodeIDConflict)
		}
	}},
	{"streams of a session are written together, or none of them", func(l *lab) {
		f := l.founding("a")
		f[0].Claim.Keep = ttl
		_, err := l.Append(l.Context(), f...)
		l.must(err)
		more := func(text string) []store.Batch {
			one, other := store.Batch{Session: f[0].Session, Stream: f[0].Stream, After: 2, Epoch: 1}, store.Batch{Session: f[0].Session, Stream: f[1].Stream, After: 1, Epoch: 1}
			one.Events, other.Events = []event.Envelope{l.fact(&one, text)}, []event.Envelope{l.fact(&other, text)}
			return []store.Batch{one, other}
		}
		for name, wrong := range map[string]func(b []store.Batch){
			"moved on": func(b []store.Batch) { b[1].After = 7 },
			"known": func(b []store.Batch) {
				b[0].Sends, b[1].Consumed = f[0].Sends[1:], []belay.CommandID{f[0].Sends[1].ID}
			},
		} {
			b := more(name)
			wrong(b)
			_, err := l.Append(l.Context(), b...)
			l.is(err, store.ErrConflict)
		}
		_, err = l.Append(l.Context(), more("last")...)
		l.must(err)
		same(l, "texts", l.texts(f[0].Stream), []string{"one", "two", "last"})
		same(l, "texts", l.texts(f[1].Stream), []string{"three", "last"})
	}},
	// Guarantee: S46.
	{"what is known doesn't begin with a claim, and nothing is written", func(l *lab) {
		for name, know := range map[string]func(f []store.Batch){
			"claimed before": func(f []store.Batch) {
				l.must(l.Release(l.Context(), f[0].Session, l.claim(l, f[0].Session, owner("two"))))
			},
			"there is": func(f []store.Batch) {
				_, err := l.Append(l.Context(), f...)
				l.must(err)
			},
			"command": func(f []store.Batch) { l.must(l.Enqueue(l.Context(), f[0].Sends[0])) },
			"sent":    func(f []store.Batch) { l.must(l.Enqueue(l.Context(), f[0].Sends[1])) },
		} {
			f := l.founding(number("k", len(name)) + name[:1])
			know(f)
			before := len(l.log(l, 0))
			_, err := l.Append(l.Context(), f...)
			if !errors.Is(err, store.ErrConflict) {
				l.Fatalf("%s: got %v", name, err)
			}
			if n := len(l.log(l, 0)); n != before {
				l.Fatalf("%s: %d facts became %d", name, before, n)
			}
		}
		owned, gone, foreign := l.founding("o"), l.founding("g"), l.founding("f")
		l.claim(l, owned[0].Session, owner("two"))
		_, err := l.again().Append(l.Context(), owned...)
		l.taken(err, owner("two"))
		_, err = l.Append(l.Context(), gone...)
		l.must(err)
		_, err = l.DeleteSession(l.Context(), gone[0].Session, "user:ada")
		l.must(err)
		gone[0].Sends, gone[0].Consumed, gone[1].Consumed = nil, nil, nil // those are known
		_, err = l.Append(l.Context(), gone...)
		l.code(err, belay.CodeDeleted)
		l.put(l.session("f2"), "x")
		foreign[1].Stream, foreign[0].Sends, foreign[1].Consumed = "thread/thr_f2", foreign[0].Sends[:1], nil
		_, err = l.Append(l.Context(), foreign...)
		l.code(err, belay.CodeBadState)
	}},
	// Guarantee: S46.
	{"of several who begin a session one does", func(l *lab) {
		other := l.again()
		var wg sync.WaitGroup
		var did atomic.Int64
		for i := range 8 {
			s := []store.Store{l.Store, other}[i%2]
			wg.Go(func() {
				switch _, err := s.Append(l.Context(), l.founding("a")...); {
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
	// Guarantee: S46.
	{"a claim that is kept is its owner's", func(l *lab) {
		f := l.founding("a")
		f[0].Claim.Keep = ttl
		_, err := l.Append(l.Context(), f...)
		l.must(err)
		other := l.again()
		if o, err := other.OwnerOf(l.Context(), f[0].Session); err != nil || o == nil || o.ID != f[0].Claim.Owner.ID || o.Epoch != 1 {
			l.Fatalf("it is owned by %+v, %v", o, err)
		}
		_, err = other.Claim(l.Context(), f[0].Session, owner("two"), ttl)
		l.taken(err, f[0].Claim.Owner)
		more := store.Batch{Session: f[0].Session, Stream: f[0].Stream, After: 2, Epoch: 1}
		more.Events = []event.Envelope{l.fact(&more, "four")}
		_, err = l.Append(l.Context(), more)
		l.must(err)
		l.must(l.Release(l.Context(), f[0].Session, 1))
		if epoch := l.claim(other, f[0].Session, owner("two")); epoch != 2 {
			l.Fatalf("the next epoch is %d, want 2", epoch)
		}
	}},
	{"a kept session is given back when its store is closed, and taken when its owner died", func(l *lab) {
		f, g := l.founding("a"), l.founding("b")
		f[0].Claim.Keep, g[0].Claim.Keep, g[0].Claim.Owner = ttl, ttl, owner("dead")
		_, err := l.Append(l.Context(), f...)
		l.must(err)
		_, err = l.again().Append(l.Context(), g...)
		l.must(err)
		l.env.Dies(owner("dead"))
		l.reopen()
		for _, b := range []store.Batch{f[0], g[0]} {
			if epoch := l.claim(l, b.Session, owner("two")); epoch != 2 {
				l.Fatalf("the next epoch of %s is %d, want 2", b.Session, epoch)
			}
		}
	}},
	// Guarantee: S46.
	{"a session that begins is a writer, or doesn't begin where another is one", func(l *lab) {
		first, second, third := l.founding("a"), l.founding("b"), l.founding("c")
		for _, f := range [][]store.Batch{first, second, third} {
			f[0].Claim.Keep, f[0].Claim.Writes = ttl, "/w"
		}
		third[0].Claim.Writes, third[0].Claim.Shared = "/w/in", true
		_, err := l.Append(l.Context(), first...)
		l.must(err)
		before := len(l.log(l, 0))
		_, err = l.again().Append(l.Context(), second...)
		l.writtenBy(err, first[0].Session, "/w")
		if n := len(l.log(l, 0)); n != before {
			l.Fatalf("%d facts became %d", before, n)
		}
		_, err = l.Append(l.Context(), third...)
		l.must(err)
		l.must(l.Release(l.Context(), first[0].Session, 1))
		_, err = l.Append(l.Context(), second...)
		l.writtenBy(err, third[0].Session, "/w/in")
		l.must(l.Release(l.Context(), third[0].Session, 1))
		_, err = l.again().Append(l.Context(), second...)
		l.must(err)
		l.writtenBy(l.writes(l, "sess_d", owner("four"), "/w"), second[0].Session, "/w")
	}},
	{"batches of two sessions, two of a stream, and claims without an owner are refused", func(l *lab) {
		nobody, twice, foreign, late, writer := l.founding("a"), l.founding("b"), l.founding("c"), l.founding("d"), l.founding("e")
		writer[0].Claim.Writes = "/w" // and isn't kept
		nobody[0].Claim.Owner = store.Owner{}
		twice = append(twice, twice[0])
		foreign[1].Session = "sess_other"
		late[0], late[1] = late[1], late[0]
		for _, f := range [][]store.Batch{{}, nobody, twice, foreign, late, writer} {
			_, err := l.Append(l.Context(), f...)
			l.code(err, belay.CodeInternal)
		}
		if all := l.log(l, 0); len(all) != 0 {
			l.Fatalf("the log has %v", all)
		}
	}},
}

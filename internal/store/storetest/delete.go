package storetest

import (
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// naming appends a fact that names contents, small and large ones alike.
func (l *lab) naming(b *store.Batch, contents ...[]byte) {
	l.Helper()
	for _, c := range contents {
		ref, err := l.Put(l.Context(), c, "")
		l.must(err)
		e := l.fact(b, "names")
		e.Refs = map[string]belay.Ref{"content": ref}
		batch := *b
		batch.Events = []event.Envelope{e}
		_, err = l.Append(l.Context(), batch)
		l.must(err)
		b.After++
	}
}

func (l *lab) release(b *store.Batch) {
	l.Helper()
	l.must(l.Release(l.Context(), b.Session, b.Epoch))
}

func (l *lab) remove(s store.Deletion, session belay.SessionID) store.Deleted {
	l.Helper()
	d, err := s.DeleteSession(l.Context(), session, "user:ada")
	l.must(err)
	return d
}

func (l *lab) lacks(s store.Blobs, content []byte) {
	l.Helper()
	_, err := s.Get(l.Context(), belay.DigestOf(content))
	l.is(err, store.ErrNotFound)
}

var deletionLaws = []law{
	// Guarantee: S23.
	{"of a deleted session a tombstone is left, and nothing else", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		b.State, b.Lane = &store.State{Seq: 2, Version: "v1", Data: []byte("state")}, store.Lane{Runnable: true}
		l.put(b, "one", "two")
		head, err := l.Head(l.Context(), b.Stream)
		l.must(err)
		l.put(other, "theirs")
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "waits")))
		l.must(l.SaveView(l.Context(), "list", 0, 1, map[string]store.ViewRow{
			"1/sess_a":     {Data: []byte("mine"), In: []string{"all", "mine"}, Rank: 3, Adds: []store.Sum{{Kind: "n", Name: "mine", N: 2}, {Kind: "n", Name: "all", N: 5}}},
			"1/sess_b":     {Data: []byte("theirs"), In: []string{"all"}, Rank: 2, Adds: []store.Sum{{Kind: "n", Name: "all", N: 7}}},
			"1/not_sess_a": {Data: []byte("neither")}}))
		l.release(b)
		end, err := l.End(l.Context())
		l.must(err)
		d := l.remove(l, b.Session)
		if d.Facts != 2 || d.By != "user:ada" || d.Position <= end || !d.Time.Equal(l.env.Now()) || len(d.Heads) != 1 || d.Heads[0] != head {
			l.Fatalf("got %+v", d)
		}
		for _, s := range []store.Store{l.Store, l.again()} {
			same(l, "texts", textsOf(l, s, b.Stream), nil)
			same(l, "log", saidBy(l, s), []string{"theirs"})
			_, err = s.Head(l.Context(), b.Stream)
			l.is(err, store.ErrNotFound)
			st, err := s.LoadState(l.Context(), b.Stream, "v1")
			if st != nil || err != nil {
				l.Fatalf("state: %v, %v", st, err)
			}
			orders, err := s.Inbox(l.Context(), b.Stream)
			if len(orders) > 0 || err != nil {
				l.Fatalf("inbox: %v, %v", orders, err)
			}
			sameMap(l, "lanes", l.lanes(""), nil)
			sameMap(l, "rows", l.rows("list"), map[string]string{"1/sess_b": "theirs", "1/not_sess_a": "neither"})
			listed, err := s.ViewList(l.Context(), "list", store.ViewList{In: []string{"all"}, Most: 3})
			if mine, err := s.ViewCount(l.Context(), "list", "mine"); len(listed) != 1 || listed[0].Key != "1/sess_b" || mine != 0 || err != nil {
				l.Fatalf("listed: %v, mine: %d, %v", listed, mine, err)
			}
			l.must(err)
			sums, err := s.ViewSums(l.Context(), "list", store.ViewSums{Kind: "n"})
			l.must(err)
			same(l, "sums", sums, []store.Sum{{Kind: "n", Name: "all", N: 7}})
			sums, err = s.ViewSums(l.Context(), "list", store.ViewSums{Kind: store.ListSizes})
			l.must(err)
			same(l, "sizes", sums, []store.Sum{{Kind: store.ListSizes, Name: "all", N: 1}})
			all, err := s.Tombstones(l.Context(), 0)
			if err != nil || len(all) != 1 || all[0].Position != d.Position || all[0].Session != b.Session || all[0].Restored {
				l.Fatalf("tombstones: %+v, %v", all, err)
			}
		}
	}},
	// Guarantee: S30.
	{"a session of a live process isn't deleted", func(l *lab) {
		b := l.session("a")
		l.put(b, "one")
		_, err := l.again().DeleteSession(l.Context(), b.Session, "user:ada")
		l.taken(err, owner("a"))
		_, err = l.DeleteSession(l.Context(), b.Session, "user:ada")
		l.taken(err, owner("a"))
		same(l, "texts", l.texts(b.Stream), []string{"one"})
		l.env.Dies(owner("a"))
		l.remove(l, b.Session)
		b.Events = []event.Envelope{l.fact(b, "late")}
		_, err = l.Append(l.Context(), *b)
		l.is(err, store.ErrStale)
	}},
	{"deleting again changes nothing and answers the same", func(l *lab) {
		b := l.session("a")
		l.put(b, "one")
		l.release(b)
		first := l.remove(l, b.Session)
		l.env.Pass(time.Hour)
		l.reopen()
		again := l.remove(l, b.Session)
		if again.Position != first.Position || !again.Time.Equal(first.Time) || again.Facts != 1 || again.Contents != 0 {
			l.Fatalf("got %+v, then %+v", first, again)
		}
		_, err := l.DeleteSession(l.Context(), "sess_none", "user:ada")
		l.is(err, store.ErrNotFound)
		_, err = l.DeleteSession(l.Context(), belay.SystemSession, "user:ada")
		l.code(err, belay.CodeBadState)
	}},
	// Guarantee: S30.
	{"a deleted session takes no commands and no owner", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.put(b, "one")
		l.release(b)
		l.remove(l, b.Session)
		l.code(l.Enqueue(l.Context(), l.order("c1", b, "late")), belay.CodeDeleted)
		_, err := l.Claim(l.Context(), b.Session, owner("a"), ttl)
		l.code(err, belay.CodeDeleted)
		other.Sends = []belay.Order{l.order("c2", b, "nobody is there"), l.order("c3", other, "x")}
		l.put(other, "goes on")
		same(l, "inbox", l.waiting(b.Stream), nil)
		same(l, "inbox", l.waiting(other.Stream), []belay.CommandID{"c3"})
	}},
	// Guarantee: S23.
	{"cursors of followers stay valid", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.put(b, "a1")
		at := l.put(other, "b1")
		l.put(b, "a2")
		l.release(b)
		before, err := l.End(l.Context())
		l.must(err)
		d := l.remove(l, b.Session)
		end, err := l.End(l.Context())
		l.must(err)
		last := l.put(other, "b2")
		if end < before || end < d.Position || last <= d.Position {
			l.Fatalf("the end was %d, then %d; deleted at %d, then a fact at %d", before, end, d.Position, last)
		}
		if got := l.log(l, at); len(got) != 1 || got[0].Position != last {
			l.Fatalf("after %d: got %v", at, got)
		}
		for after, want := range map[store.Position]int{0: 1, d.Position - 1: 1, d.Position: 0} {
			if got, err := l.Tombstones(l.Context(), after); err != nil || len(got) != want {
				l.Fatalf("tombstones after %d: %v, %v, want %d", after, got, err, want)
			}
		}
	}},
	// Guarantee: S23.
	{"content that only a deleted session named is gone", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		for _, size := range sizes {
			l.naming(b, content(size), append(content(size), "mine"...))
			l.naming(other, content(size))
		}
		l.release(b)
		l.release(other)
		if d := l.remove(l, b.Session); d.Contents != len(sizes) || d.Left != 0 {
			l.Fatalf("got %d contents gone, %d left", d.Contents, d.Left)
		}
		for _, s := range []store.Store{l.Store, l.again()} {
			for _, size := range sizes {
				l.has(s, content(size))
				l.lacks(s, append(content(size), "mine"...))
			}
		}
	}},
	{"content that is named by a waiting command, a state or a document stays", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		named := [][]byte{content(10), content(20), content(40 << 10), content(30)}
		l.naming(b, named...)
		ref := func(i int) belay.Ref { return belay.Ref{Digest: belay.DigestOf(named[i]), Size: int64(len(named[i]))} }
		o := l.order("c1", other, "")
		o.Command = belay.ResumeThread{Rules: ref(0)}
		l.must(l.Enqueue(l.Context(), o))
		state, err := json.Marshal(ref(1))
		l.must(err)
		other.State = &store.State{Seq: 1, Version: "v1", Data: state}
		list, err := json.Marshal([]belay.Ref{ref(2)})
		l.must(err)
		l.naming(b, list)
		l.naming(other, list)
		l.release(b)
		l.release(other)
		if d := l.remove(l, b.Session); d.Contents != 1 {
			l.Fatalf("got %+v", d)
		}
		for _, c := range append(named[:3:3], list) {
			l.has(l, c)
		}
		l.lacks(l, named[3])
	}},
	{"content that a running session may be about to name is left to collection", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.naming(b, content(10), content(100<<10))
		l.release(b)
		if d := l.remove(l, b.Session); d.Contents != 0 || d.Left != 2 {
			l.Fatalf("got %+v", d)
		}
		l.naming(other, content(10), content(100<<10))
		l.has(l.again(), content(100<<10))
	}},
	{"a restored session is what it was, behind its deletion, and its epochs go on", func(l *lab) {
		b := l.session("a")
		l.put(b, "one", "two")
		head, err := l.Head(l.Context(), b.Stream)
		l.must(err)
		var facts []store.Stored
		for f, err := range l.Stored(l.Context(), b.Session, 1<<60) {
			l.must(err)
			facts = append(facts, f)
		}
		l.release(b)
		first := l.remove(l, b.Session)
		back := store.Restoration{Session: b.Session, Heads: first.Heads, Facts: func(yield func(store.Stored, error) bool) {
			for _, f := range facts {
				if !yield(f, nil) {
					return
				}
			}
		}}
		l.must(l.Restore(l.Context(), back))
		if again, err := l.Head(l.Context(), b.Stream); err != nil || again != head {
			l.Fatalf("got %+v, %v, want %+v", again, err, head)
		}
		if all, err := l.Tombstones(l.Context(), 0); err != nil || len(all) != 1 || !all[0].Restored {
			l.Fatalf("tombstones %+v, %v", all, err)
		}
		for _, r := range l.log(l, 0) {
			if r.Position <= first.Position {
				l.Fatalf("a fact came back at %d, behind the deletion at %d", r.Position, first.Position)
			}
		}
		epoch := l.claim(l, b.Session, owner("a"))
		if epoch <= b.Epoch {
			l.Fatalf("epoch %d after %d", epoch, b.Epoch)
		}
		b.Epoch = epoch
		l.put(b, "three")
		l.must(l.Release(l.Context(), b.Session, epoch))
		second := l.remove(l, b.Session)
		all, err := l.Tombstones(l.Context(), 0)
		if err != nil || len(all) != 1 || all[0].Position != second.Position || second.Position <= first.Position || all[0].Restored {
			l.Fatalf("tombstones %+v, %v", all, err)
		}
		l.must(l.Restore(l.Context(), back))
		if next := l.claim(l, b.Session, owner("a")); next <= epoch {
			l.Fatalf("epoch %d after %d", next, epoch)
		}
	}},
}

// saidBy is what all facts of the log say.
func saidBy(l *lab, s store.Log) (all []string) {
	l.Helper()
	for _, r := range l.log(s, 0) {
		all = append(all, r.Event.Data.(event.ModelDelta).Text)
	}
	return all
}

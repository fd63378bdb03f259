package storetest

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// anchorAt is an anchor of a batch's stream behind a fact, with a state.
func (l *lab) anchorAt(b *store.Batch, seq int64) store.Anchor {
	l.Helper()
	chains := store.NewChains(b.Session)
	a := store.Anchor{Session: b.Session, Stream: b.Stream, Seq: seq, Version: "v1"}
	for f, err := range l.Stored(l.Context(), b.Session, 1<<60) {
		l.must(err)
		if f.Stream != b.Stream || f.Row.Seq > seq {
			continue
		}
		h, err := chains.Add(&f)
		l.must(err)
		a.Hash = h.Hash
	}
	var err error
	a.State, err = l.Put(l.Context(), []byte("folded up to "+number("", int(seq))), "application/json")
	l.must(err)
	return a
}

var anchorLaws = []law{
	{"behind an anchor a stream goes on as it was", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.put(b, "one", "two")
		l.put(other, "theirs")
		last := l.put(b, "three", "four")
		head, err := l.Head(l.Context(), b.Stream)
		l.must(err)
		a := l.anchorAt(b, 3)
		l.must(l.SetAnchor(l.Context(), a, b.Epoch))
		l.must(l.SetAnchor(l.Context(), a, b.Epoch))
		a.Time = l.env.Now()
		for _, s := range []store.Store{l.Store, l.again()} {
			got, err := s.AnchorOf(l.Context(), b.Stream)
			if err != nil || got == nil || *got != a {
				l.Fatalf("got %+v, %v, want %+v", got, err, a)
			}
			same(l, "texts", textsOf(l, s, b.Stream), []string{"four"})
			same(l, "log", saidBy(l, s), []string{"theirs", "four"})
			for after, want := range map[int64]int{0: 1, 2: 1, 3: 1, 4: 0} {
				if facts := l.stream(s, b.Stream, after); len(facts) != want || want > 0 && facts[0].Seq != 4 {
					l.Fatalf("after %d: %v", after, facts)
				}
			}
			again, err := s.Head(l.Context(), b.Stream)
			if err != nil || again != head {
				l.Fatalf("head: %+v, %v, want %+v", again, err, head)
			}
			l.has(s, []byte("folded up to 3"))
		}
		if pos := l.put(b, "five"); pos <= last {
			l.Fatalf("at %d after %d", pos, last)
		}
		same(l, "texts", l.texts(b.Stream), []string{"four", "five"})
		next := l.anchorAfter(b, a, 4)
		l.must(l.SetAnchor(l.Context(), next, b.Epoch))
		same(l, "texts", l.texts(b.Stream), []string{"five"})
	}},
	{"an anchor that doesn't fit is refused and nothing goes", func(l *lab) {
		b := l.session("a")
		l.put(b, "one", "two", "three")
		good := l.anchorAt(b, 2)
		for name, c := range map[string]struct {
			change func(*store.Anchor, *int64)
			want   error
		}{
			"another epoch":     {func(_ *store.Anchor, epoch *int64) { *epoch-- }, store.ErrStale},
			"another hash":      {func(a *store.Anchor, _ *int64) { a.Hash[0]++ }, store.ErrConflict},
			"the last fact":     {func(a *store.Anchor, _ *int64) { a.Seq, a.Hash = 3, l.anchorAt(b, 3).Hash }, store.ErrConflict},
			"nothing":           {func(a *store.Anchor, _ *int64) { a.Seq = 0 }, store.ErrConflict},
			"behind the end":    {func(a *store.Anchor, _ *int64) { a.Seq = 9 }, store.ErrConflict},
			"no state":          {func(a *store.Anchor, _ *int64) { a.State.Digest = belay.DigestOf([]byte("never put")) }, store.ErrNotFound},
			"no such stream":    {func(a *store.Anchor, _ *int64) { a.Stream = "thread/none" }, store.ErrNotFound},
			"nobody's sessions": {func(a *store.Anchor, _ *int64) { a.Session = "sess_none" }, store.ErrStale},
		} {
			a, epoch := good, b.Epoch
			c.change(&a, &epoch)
			if err := l.SetAnchor(l.Context(), a, epoch); !matches(err, c.want) {
				l.Fatalf("%s: got %v, want %v", name, err, c.want)
			}
		}
		same(l, "texts", l.texts(b.Stream), []string{"one", "two", "three"})
		l.must(l.SetAnchor(l.Context(), good, b.Epoch))
		l.is(l.SetAnchor(l.Context(), l.anchorAfter(b, store.Anchor{}, 1), b.Epoch), store.ErrConflict)
	}},
	{"a session with an anchor isn't taken out, and is deleted as others are", func(l *lab) {
		b := l.session("a")
		l.put(b, "one", "two", "three")
		a := l.anchorAt(b, 2)
		l.must(l.SetAnchor(l.Context(), a, b.Epoch))
		for _, err := range l.Stored(l.Context(), b.Session, 1<<60) {
			l.code(err, belay.CodeBadState)
		}
		l.release(b)
		if d := l.remove(l, b.Session); d.Facts != 3 || d.Contents != 1 {
			l.Fatalf("got %+v", d)
		}
		if got, err := l.AnchorOf(l.Context(), b.Stream); got != nil || err != nil {
			l.Fatalf("got %+v, %v", got, err)
		}
		l.lacks(l, []byte("folded up to 2"))
	}},
}

// anchorAfter is an anchor further on than another.
func (l *lab) anchorAfter(b *store.Batch, old store.Anchor, seq int64) store.Anchor {
	l.Helper()
	a := store.Anchor{Session: b.Session, Stream: b.Stream, Seq: seq, Hash: old.Hash, Version: "v1"}
	var buf []byte
	for _, e := range l.stream(l, b.Stream, old.Seq) {
		if e.Seq <= seq {
			row, err := store.Pack(b.Session, b.Stream, &e)
			l.must(err)
			a.Hash, buf = store.Link(a.Hash, &row, buf)
		}
	}
	var err error
	a.State, err = l.Put(l.Context(), []byte("folded up to "+number("", int(seq))), "application/json")
	l.must(err)
	return a
}

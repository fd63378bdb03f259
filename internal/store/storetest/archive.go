package storetest

import (
	"errors"
	"iter"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// archiveLaws are about sessions that are moved from store to store.
var archiveLaws = []law{
	{"stored facts come in the order they were appended, and no others", func(l *lab) {
		_, all := l.mixed()
		var got []string
		for _, f := range all {
			got = append(got, store.RowName(f.Stream, f.Row.Seq))
		}
		same(l, "facts", got, []string{"thread/thr_a#1", "task/task_a#1", "thread/thr_a#2", "thread/thr_a#3", "task/task_a#2"})
	}},
	{"stored facts end at the position asked for", func(l *lab) {
		b, _ := l.mixed()
		end, err := l.End(l.Context())
		l.must(err)
		l.put(b, "later")
		if n := len(l.stored(l, b.Session, end)); n != 5 {
			l.Fatalf("%d facts up to %d", n, end)
		}
		if n := len(l.stored(l, "sess_none", end)); n != 0 {
			l.Fatalf("%d facts of no session", n)
		}
	}},
	// Guarantee: S40.
	{"a restored session is what was stored", func(l *lab) {
		r, to := l.moved()
		l.must(to.Restore(l.Context(), r))
		to = l.openOther(to)
		end, err := to.End(l.Context())
		l.must(err)
		same(l, "facts", places(l.stored(to, r.Session, end)), places(l.stored(l, r.Session, 1<<40)))
		for _, h := range r.Heads {
			got, err := to.Head(l.Context(), h.Stream)
			l.must(err)
			if got.Hash != h.Hash || got.Seq != h.Seq || !got.Time.Equal(h.Time) || got.Session != h.Session {
				l.Fatalf("head: got %+v, want %+v", got, h)
			}
			same(l, "facts read", textsOf(l, to, h.Stream), textsOf(l, l, h.Stream))
		}
	}},
	// Guarantee: S40.
	{"a restored session has its lanes and its waiting commands", func(l *lab) {
		r, to := l.moved()
		wake := l.env.Now().Add(time.Hour)
		r.Lanes = map[belay.StreamID]store.Lane{"thread/thr_a": {Runnable: true}, "task/task_a": {Wake: wake}}
		b := store.Batch{Session: r.Session, Stream: "thread/thr_a"}
		fresh := store.Batch{Session: r.Session, Stream: "task/task_new"}
		r.Inbox = []belay.Order{l.order("c1", &b, "first"), l.order("c2", &b, "second"), l.order("c3", &fresh, "third")}
		l.must(to.Restore(l.Context(), r))
		rows, err := to.Lanes(l.Context(), "")
		l.must(err)
		got := map[belay.StreamID]store.LaneRow{}
		for _, row := range rows {
			got[row.Stream] = row
		}
		sameMap(l, "lanes", got, map[belay.StreamID]store.LaneRow{
			"thread/thr_a":  {Session: r.Session, Stream: "thread/thr_a", Lane: store.Lane{Runnable: true}, Seq: 3, Inbox: 2},
			"task/task_a":   {Session: r.Session, Stream: "task/task_a", Lane: store.Lane{Wake: wake}, Seq: 2},
			"task/task_new": {Session: r.Session, Stream: "task/task_new", Inbox: 1},
		})
		l.code(to.Enqueue(l.Context(), l.order("c1", &b, "other")), belay.CodeIDConflict)
	}},
	// Guarantee: S40.
	{"a restored session takes facts", func(l *lab) {
		r, to := l.moved()
		l.must(to.Restore(l.Context(), r))
		epoch, err := to.Claim(l.Context(), r.Session, owner("next"), time.Hour)
		l.must(err)
		b := store.Batch{Session: r.Session, Stream: "thread/thr_a", After: 3, Epoch: epoch}
		b.Events = append(b.Events, l.fact(&b, "goes on"))
		_, err = to.Append(l.Context(), b)
		l.must(err)
		same(l, "texts", textsOf(l, to, b.Stream), []string{"1", "3", "4", "goes on"})
	}},
	// Guarantee: S42.
	{"a session is restored once", func(l *lab) {
		r, to := l.moved()
		l.must(to.Restore(l.Context(), r))
		end, err := to.End(l.Context())
		l.must(err)
		l.code(to.Restore(l.Context(), r), belay.CodeIDConflict)
		if now, err := to.End(l.Context()); now != end || err != nil {
			l.Fatalf("the log went from %d to %d, %v", end, now, err)
		}
	}},
	// Guarantee: S41.
	{"a session that can't be restored whole leaves nothing", func(l *lab) {
		good, to := l.moved()
		for what, spoil := range map[string]func(*store.Restoration){
			"a fact with another byte": func(r *store.Restoration) {
				r.Facts = edited(r.Facts, 4, func(f *store.Stored) { f.Row.Data = []byte(`{}`) })
			},
			"a fact out of sequence": func(r *store.Restoration) { r.Facts = edited(r.Facts, 4, func(f *store.Stored) { f.Row.Seq++ }) },
			"a time that goes back":  func(r *store.Restoration) { r.Facts = edited(r.Facts, 4, func(f *store.Stored) { f.Row.Time = 1 }) },
			"a new type, then damage": func(r *store.Restoration) {
				r.Facts = edited(r.Facts, 3, func(f *store.Stored) { f.Row.Type = "made.up" })
			},
			"a stream that no head names":    func(r *store.Restoration) { r.Heads = r.Heads[:1] },
			"a head without facts":           func(r *store.Restoration) { r.Heads = append(r.Heads[:2:2], store.Head{Stream: "task/task_x", Seq: 1}) },
			"fewer facts than the heads say": func(r *store.Restoration) { r.Facts = cut(r.Facts, 4, nil) },
			"facts that end with an error":   func(r *store.Restoration) { r.Facts = cut(r.Facts, 4, errBroken) },
		} {
			r := good
			spoil(&r)
			if err := to.Restore(l.Context(), r); err == nil {
				l.Errorf("%s: restored", what)
			}
			if all := l.log(to, 0); len(all) != 0 {
				l.Errorf("%s: left %d facts", what, len(all))
			}
			if rows, err := to.Lanes(l.Context(), ""); len(rows) != 0 || err != nil {
				l.Errorf("%s: left lanes %v, %v", what, rows, err)
			}
		}
		good.Inbox = []belay.Order{l.order("c1", &store.Batch{Session: good.Session, Stream: "thread/thr_a"}, "waits")}
		l.must(to.Restore(l.Context(), good))
	}},
	// Guarantee: S41.
	{"a restored session takes no other session's stream", func(l *lab) {
		r, to := l.moved()
		other := &lab{tester: l.tester, t: l.t, Store: to, env: l.env, c: l.c}
		b := other.session("b")
		b.Stream = "task/task_a"
		other.put(b, "theirs")
		l.code(to.Restore(l.Context(), r), belay.CodeIDConflict)
		same(l, "texts", textsOf(l, to, "task/task_a"), []string{"theirs"})
		if _, err := to.Head(l.Context(), "thread/thr_a"); !errors.Is(err, store.ErrNotFound) {
			l.Fatalf("half a session: %v", err)
		}
	}},
}

var errBroken = errors.New("the bundle is broken")

// mixed is a session whose streams alternate in the log, beside another one.
func (l *lab) mixed() (*store.Batch, []store.Stored) {
	l.Helper()
	thread, other := l.session("a"), l.session("b")
	task := *thread
	task.Stream = "task/task_a"
	task.Lane.Runnable = true
	l.put(thread, "1")
	l.put(other, "x")
	l.put(&task, "2")
	l.put(thread, "3", "4")
	l.put(other, "y")
	l.put(&task, "5")
	return thread, l.stored(l, thread.Session, 1<<40)
}

// moved is a session and an empty store for it.
func (l *lab) moved() (store.Restoration, store.Store) {
	l.Helper()
	b, all := l.mixed()
	chains := store.NewChains(b.Session)
	for i := range all {
		_, err := chains.Add(&all[i])
		l.must(err)
	}
	r := store.Restoration{Session: b.Session, Heads: chains.Heads(), Facts: cut(func(yield func(store.Stored, error) bool) {
		for _, f := range all {
			if !yield(f, nil) {
				return
			}
		}
	}, len(all), nil)}
	return r, open(l.t, l.c.Open(l.t, l.env))
}

// openOther opens the data of another store again.
func (l *lab) openOther(s store.Store) store.Store {
	l.Helper()
	l.must(s.Close())
	return open(l.t, l.c.Again(l.t, l.env, s))
}

func (l *lab) stored(s store.Archive, session belay.SessionID, upTo store.Position) (all []store.Stored) {
	l.Helper()
	for f, err := range s.Stored(l.Context(), session, upTo) {
		l.must(err)
		all = append(all, f)
	}
	return all
}

func places(all []store.Stored) (out []string) {
	for _, f := range all {
		out = append(out, store.RowName(f.Stream, f.Row.Seq)+string(f.Row.Canonical(nil)))
	}
	return out
}

func textsOf(l *lab, s store.Log, id belay.StreamID) []string {
	l.Helper()
	var out []string
	for _, e := range l.stream(s, id, 0) {
		out = append(out, e.Data.(event.ModelDelta).Text)
	}
	return out
}

// edited changes the n-th fact, from 0.
func edited(facts iter.Seq2[store.Stored, error], n int, change func(*store.Stored)) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		i := 0
		for f, err := range facts {
			if i == n {
				change(&f)
			}
			if i++; !yield(f, err) {
				return
			}
		}
	}
}

// cut ends after n facts, with an error if there is one.
func cut(facts iter.Seq2[store.Stored, error], n int, end error) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		i := 0
		for f, err := range facts {
			if i == n {
				break
			}
			if i++; !yield(f, err) {
				return
			}
		}
		if end != nil {
			yield(store.Stored{}, end)
		}
	}
}

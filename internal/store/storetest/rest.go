package storetest

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// restLaws are about what can be rebuilt: lanes, states, views.
var restLaws = []law{
	{"lanes are as written last", func(l *lab) {
		b, c := l.session("a"), l.session("b")
		wake := l.env.Now().Add(time.Hour)
		b.Lane = store.Lane{Runnable: true}
		c.Lane = store.Lane{Wake: wake}
		l.put(b, "x")
		l.put(c, "x")
		l.reopen()
		b.Epoch, c.Epoch = l.claim(l, b.Session, owner("a")), l.claim(l, c.Session, owner("b"))
		sameMap(l, "lanes", l.lanes(""), map[belay.StreamID]store.LaneRow{
			b.Stream: {Session: b.Session, Stream: b.Stream, Lane: store.Lane{Runnable: true}, Seq: 1},
			c.Stream: {Session: c.Session, Stream: c.Stream, Lane: store.Lane{Wake: wake}, Seq: 1},
		})
		l.must(l.Enqueue(l.Context(), l.order("c1", c, "")))
		if got := l.lanes("")[c.Stream]; !got.Wake.Equal(wake) || got.Inbox != 1 {
			l.Fatalf("lane with a command: got %+v", got)
		}
		b.Lane = store.Lane{}
		l.put(b, "rests")
		if got := l.lanes(""); len(got) != 1 {
			l.Fatalf("lanes: got %v", got)
		}
	}},
	{"lanes of one session are its own", func(l *lab) {
		b, c := l.session("a"), l.session("b")
		for _, x := range []*store.Batch{b, c} {
			x.Lane.Runnable = true
			l.put(x, "x")
			l.must(l.Enqueue(l.Context(), l.order("c-"+x.Stream.ID(), x, "")))
		}
		rest := *c
		rest.Stream = "task/task_c"
		l.must(l.Enqueue(l.Context(), l.order("c3", &rest, "")))
		sameMap(l, "lanes", l.lanes(c.Session), map[belay.StreamID]store.LaneRow{
			c.Stream:    {Session: c.Session, Stream: c.Stream, Lane: store.Lane{Runnable: true}, Seq: 1, Inbox: 1},
			rest.Stream: {Session: c.Session, Stream: rest.Stream, Inbox: 1},
		})
		if len(l.lanes("")) != 3 || len(l.lanes("sess_none")) != 0 {
			l.Fatalf("all lanes: %v", l.lanes(""))
		}
	}},
	{"streams with waiting commands are found among those that want something", func(l *lab) {
		b, c := l.session("a"), l.session("b")
		b.Lane.Runnable = true
		l.put(b, "x", "y")
		l.must(l.Enqueue(l.Context(), l.order("c1", c, "1"), l.order("c2", c, "2")))
		rows, err := l.Waiting(l.Context())
		l.must(err)
		same(l, "waiting", rows, []store.LaneRow{{Session: c.Session, Stream: c.Stream, Inbox: 2}})
		l.must(l.Enqueue(l.Context(), l.order("c3", b, "3")))
		c.Consumed = []belay.CommandID{"c1", "c2"}
		l.put(c, "begun")
		rows, err = l.Waiting(l.Context())
		l.must(err)
		same(l, "waiting", rows, []store.LaneRow{{Session: b.Session, Stream: b.Stream, Lane: store.Lane{Runnable: true}, Seq: 2, Inbox: 1}})
	}},
	{"the newest state of a version is found", func(l *lab) {
		b := l.session("a")
		for i := range 3 {
			b.State = &store.State{Seq: int64(i + 1), Version: "v1", Data: []byte{0, byte(i)}}
			l.put(b, "x")
		}
		b.State = nil
		l.put(b, "without")
		l.reopen()
		got, err := l.LoadState(l.Context(), b.Stream, "v1")
		l.must(err)
		if got == nil || got.Seq != 3 || got.Version != "v1" || string(got.Data) != "\x00\x02" {
			l.Fatalf("got %+v", got)
		}
		for _, version := range []string{"v2", ""} {
			if got, err = l.LoadState(l.Context(), b.Stream, version); got != nil || err != nil {
				l.Fatalf("version %q: %+v, %v", version, got, err)
			}
		}
		if got, err = l.LoadState(l.Context(), "thread/none", "v1"); got != nil || err != nil {
			l.Fatalf("of no stream: %+v, %v", got, err)
		}
	}},
	{"a view moves only from where it is", func(l *lab) {
		save := func(from, to store.Position, rows map[string][]byte) error {
			return l.SaveView(l.Context(), "tasks", from, to, DataRows(rows))
		}
		l.must(save(0, 5, map[string][]byte{"a": []byte("1"), "b": []byte("2")}))
		l.is(save(0, 9, map[string][]byte{"a": []byte("lost")}), store.ErrConflict)
		l.is(save(6, 9, map[string][]byte{"a": nil}), store.ErrConflict)
		l.must(l.SaveView(l.Context(), "other", 0, 1, DataRows(map[string][]byte{"a": []byte("theirs")})))
		l.must(save(5, 8, map[string][]byte{"b": nil, "c": {}}))
		l.reopen()
		at, err := l.ViewPosition(l.Context(), "tasks")
		l.must(err)
		sameMap(l, fmt.Sprint("rows at ", at), l.rows("tasks"), map[string]string{"a": "1", "c": ""})
		if empty, err := l.ViewRow(l.Context(), "tasks", "c"); at != 8 || empty == nil || err != nil {
			l.Fatalf("at %d, empty row %v, %v", at, empty, err)
		}
	}},
	{"a view that is reset has no rows and begins again", func(l *lab) {
		l.must(l.SaveView(l.Context(), "tasks", 0, 5, DataRows(map[string][]byte{"a": []byte("1")})))
		l.must(l.SaveView(l.Context(), "other", 0, 5, DataRows(map[string][]byte{"a": []byte("1")})))
		l.must(l.SaveView(l.Context(), "tasks", 5, 0, nil))
		at, err := l.ViewPosition(l.Context(), "tasks")
		l.must(err)
		sameMap(l, "rows", l.rows("tasks"), map[string]string{})
		sameMap(l, "other rows", l.rows("other"), map[string]string{"a": "1"})
		if row, err := l.ViewRow(l.Context(), "tasks", "a"); at != 0 || row != nil || err != nil {
			l.Fatalf("at %d, row %q, %v", at, row, err)
		}
		l.must(l.SaveView(l.Context(), "tasks", 0, 2, DataRows(map[string][]byte{"b": []byte("2")})))
		sameMap(l, "rows", l.rows("tasks"), map[string]string{"b": "2"})
	}},
	{"views of any size come in key order", func(l *lab) {
		rows := map[string][]byte{"": []byte("first")}
		for i := range 1200 {
			rows[fmt.Sprintf("%04d", i*7919%1200)] = []byte("x")
		}
		l.must(l.SaveView(l.Context(), "big", 0, 1, DataRows(rows)))
		if got := l.rows("big"); len(got) != 1201 {
			l.Fatalf("got %d rows", len(got))
		}
		n := 0
		for key := range l.ViewRows(l.Context(), "big", "0600") {
			if n++; key != fmt.Sprintf("%04d", 599+n) {
				l.Fatalf("row %d from 0600 on is %s", n, key)
			}
			if n == 3 {
				break
			}
		}
	}},
	{"what was written is there after reopening", func(l *lab) {
		b := l.session("a")
		runtime := l.Runtime()
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "x")))
		b.Key = "k"
		l.put(b, "one")
		head, err := l.Head(l.Context(), b.Stream)
		l.must(err)
		l.reopen()
		again, err := l.Head(l.Context(), b.Stream)
		l.must(err)
		if again != head || l.Runtime() != runtime {
			l.Fatalf("got %+v of %s, want %+v of %s", again, l.Runtime(), head, runtime)
		}
		same(l, "texts", l.texts(b.Stream), []string{"one"})
		same(l, "inbox", l.waiting(b.Stream), []belay.CommandID{"c1"})
		b.Epoch, b.After = l.claim(l, b.Session, owner("a")), 0
		l.put(b, "one") // its key is known
		same(l, "texts", l.texts(b.Stream), []string{"one"})
	}},
}

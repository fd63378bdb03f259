package storetest

import (
	"reflect"

	"github.com/belay-run/belay"
)

var inboxLaws = []law{
	// Guarantee: S7.
	{"commands come out as they went in, first in first out", func(l *lab) {
		b := l.session("a")
		var want []belay.Order
		for i := range 12 {
			o := l.order(number("c", i), b, number("reason ", i))
			want = append(want, o)
			l.must(l.Enqueue(l.Context(), o))
		}
		l.reopen()
		got, err := l.Inbox(l.Context(), b.Stream)
		l.must(err)
		if !reflect.DeepEqual(got, want) {
			l.Fatalf("got %+v\nwant %+v", got, want)
		}
	}},
	{"orders that come together wait in their order, or none of them does", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.must(l.Enqueue(l.Context()))
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "x"), l.order("c2", other, "y"), l.order("c3", b, "z"), l.order("c1", b, "x")))
		l.code(l.Enqueue(l.Context(), l.order("c4", b, "new"), l.order("c2", other, "another")), belay.CodeIDConflict)
		l.code(l.Enqueue(l.Context(), l.order("c5", b, "new"), l.order("", b, "no id")), belay.CodeBadCommand)
		l.code(l.Enqueue(l.Context(), l.order("c6", b, "one"), l.order("c6", b, "two")), belay.CodeIDConflict)
		l.reopen()
		same(l, "inbox", l.waiting(b.Stream), []belay.CommandID{"c1", "c3"})
		same(l, "other inbox", l.waiting(other.Stream), []belay.CommandID{"c2"})
	}},
	{"a command for a stream that isn't there waits for it", func(l *lab) {
		b := l.session("new")
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "x")))
		if got := l.lanes(b.Session)[b.Stream]; got.Inbox != 1 || got.Runnable {
			l.Fatalf("lane: got %+v", got)
		}
		b.Consumed = []belay.CommandID{"c1"}
		l.put(b, "begun")
		same(l, "inbox", l.waiting(b.Stream), nil)
		same(l, "texts", l.texts(b.Stream), []string{"begun"})
	}},
	{"the same command twice waits once", func(l *lab) {
		b := l.session("a")
		o := l.order("c1", b, "x")
		l.must(l.Enqueue(l.Context(), o))
		o.Time, o.Principal = o.Time.AddDate(0, 0, 1), "user:eve"
		l.must(l.again().Enqueue(l.Context(), o))
		same(l, "inbox", l.waiting(b.Stream), []belay.CommandID{"c1"})
	}},
	// Guarantee: S7.
	{"a consumed command doesn't come back", func(l *lab) {
		b := l.session("a")
		o := l.order("c1", b, "x")
		l.must(l.Enqueue(l.Context(), o))
		b.Consumed = []belay.CommandID{"c1"}
		l.put(b, "done")
		l.must(l.Enqueue(l.Context(), o))
		b.Consumed, b.Sends = nil, []belay.Order{o}
		l.put(b, "sent again")
		same(l, "inbox", l.waiting(b.Stream), nil)
	}},
	// Guarantee: S7.
	{"an id with another body is refused, also after the first was consumed", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.must(l.Enqueue(l.Context(), l.order("c1", b, "x")))
		l.code(l.Enqueue(l.Context(), l.order("c1", b, "y")), belay.CodeIDConflict)
		b.Consumed = []belay.CommandID{"c1"}
		l.put(b, "done")
		l.reopen()
		l.code(l.Enqueue(l.Context(), l.order("c1", b, "y")), belay.CodeIDConflict)
		l.code(l.Enqueue(l.Context(), l.order("c1", other, "x")), belay.CodeIDConflict)
		wrong := l.order("c1", b, "x")
		wrong.Command = belay.CancelTask{Reason: "x"}
		l.code(l.Enqueue(l.Context(), wrong), belay.CodeIDConflict)
	}},
	{"only commands of the stream are consumed", func(l *lab) {
		b, other := l.session("a"), l.session("b")
		l.must(l.Enqueue(l.Context(), l.order("c1", other, "x")))
		b.Consumed = []belay.CommandID{"c1", "never seen"}
		l.put(b, "mine")
		same(l, "inbox", l.waiting(other.Stream), []belay.CommandID{"c1"})
	}},
	{"a command without id, stream, session or body is refused", func(l *lab) {
		b := l.session("a")
		for i := range 4 {
			o := l.order("c1", b, "x")
			switch i {
			case 0:
				o.ID = ""
			case 1:
				o.Stream = ""
			case 2:
				o.Session = ""
			case 3:
				o.Command = nil
			}
			l.code(l.Enqueue(l.Context(), o), belay.CodeBadCommand)
		}
	}},
}

package storetest

import (
	"reflect"
	"strconv"
	"sync"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// listener keeps what a store tells.
type listener struct {
	mu    sync.Mutex
	facts []store.Written
}

// listen makes a store tell; nil: it is one that tells nothing, and has no law of
// these to hold.
func (l *lab) listen() *listener {
	t, ok := l.Store.(store.CommitNotifier)
	if !ok {
		return nil
	}
	heard := &listener{}
	t.OnCommit(func(facts []store.Written) {
		heard.mu.Lock()
		defer heard.mu.Unlock()
		heard.facts = append(heard.facts, facts...)
	})
	return heard
}

// upTo is the position of the last fact that was told.
func (h *listener) upTo() store.Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.facts) == 0 {
		return 0
	}
	return h.facts[len(h.facts)-1].Position
}

// records are what was told, as a reader has it.
func (h *listener) records(l *lab) (all []store.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.facts {
		ev, err := f.Row.Unpack(l.Runtime(), f.Session, f.Stream)
		l.must(err)
		all = append(all, store.Record{Position: f.Position, Event: ev})
	}
	return all
}

var tellLaws = []law{
	{"what it tells is what its log has, in order", func(l *lab) {
		heard := l.listen()
		if heard == nil {
			return
		}
		var wg sync.WaitGroup
		for n := range 4 {
			b := l.session("w" + strconv.Itoa(n))
			wg.Go(func() {
				for i := range 12 {
					b.Events = nil
					for text := range 1 + 4*(i%4) { // more than one statement takes
						b.Events = append(b.Events, l.fact(b, strconv.Itoa(text)))
					}
					pos, err := l.Append(l.Context(), *b)
					if told := heard.upTo(); err != nil || told < pos[len(pos)-1] {
						l.Errorf("at %d the last that was told is %d, %v", pos, told, err)
					}
					b.After += int64(len(b.Events))
				}
			})
			wg.Go(func() {
				for i := range 4 {
					if _, err := l.Append(l.Context(), l.founding("f"+strconv.Itoa(n)+"x"+strconv.Itoa(i))...); err != nil {
						l.Errorf("found: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if told, log := heard.records(l), l.log(l, 0); !reflect.DeepEqual(told, log) {
			l.Fatalf("%d facts were told, the log has %d", len(told), len(log))
		}
	}},
	{"it tells nothing of what wasn't written, nor of what another wrote", func(l *lab) {
		heard := l.listen()
		if heard == nil {
			return
		}
		b := l.session("a")
		b.Key = "once"
		l.put(b, "x")
		old := *b
		old.After, old.Events = 0, []event.Envelope{l.fact(b, "x")}
		_, err := l.Append(l.Context(), old) // its key is present
		l.must(err)
		old.Key = "other"
		_, err = l.Append(l.Context(), old)
		l.is(err, store.ErrConflict)
		old.Epoch++
		_, err = l.Append(l.Context(), old)
		l.is(err, store.ErrStale)
		f := l.founding("b")
		_, err = l.again().Append(l.Context(), f...)
		l.must(err)
		_, err = l.Append(l.Context(), f...)
		l.is(err, store.ErrConflict)
		if told := heard.records(l); len(told) != 1 || !reflect.DeepEqual(told, l.log(l, 0)[:1]) {
			l.Fatalf("it told %v", told)
		}
	}},
}

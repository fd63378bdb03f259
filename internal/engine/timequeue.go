package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/belay-run/belay"
)

// line holds sessions in an order: by a time, and of those with the same one by
// who came first. The first is found at once: a choice must not look at all that
// wait.
type line struct {
	places []*place // in order
	of     map[belay.SessionID]*place
	came   int64
}

// place is a session in a line.
type place struct {
	id    belay.SessionID
	at    time.Time // its order
	order int64     // who came first
	since time.Time // when it came
}

func (p *place) compare(o *place) int {
	return cmp.Or(p.at.Compare(o.at), cmp.Compare(p.order, o.order))
}

func newLine() *line { return &line{of: map[belay.SessionID]*place{}} }

// first is the place in front, or nil.
func (l *line) first() *place {
	if len(l.places) == 0 {
		return nil
	}
	return l.places[0]
}

// put gives a session a place. One that has a place already moves there if that
// is further to the front; it never loses its turn.
func (l *line) put(id belay.SessionID, at, now time.Time) {
	p := l.of[id]
	switch {
	case p == nil:
		l.came++
		p = &place{id: id, order: l.came, since: now}
	case at.Before(p.at):
		l.remove(id)
	default:
		return
	}
	p.at, l.of[id] = at, p
	i, _ := slices.BinarySearchFunc(l.places, p, (*place).compare)
	l.places = slices.Insert(l.places, i, p)
}

// remove takes a session out, if it is there.
func (l *line) remove(id belay.SessionID) {
	if p := l.of[id]; p != nil {
		delete(l.of, id)
		i, _ := slices.BinarySearchFunc(l.places, p, (*place).compare)
		l.places = slices.Delete(l.places, i, i+1)
	}
}

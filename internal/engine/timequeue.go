package engine

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/belay-run/belay"
)

// line holds sessions in an order: by a time, and of those with the same one by
// who came first. Putting one in, taking it out and finding the first cost the
// logarithm of how many there are; with ten thousand waiting a choice must not
// look at them all.
type line struct {
	places placesByTime
	of     map[belay.SessionID]*place
	came   int64
}

// place is a session in a line.
type place struct {
	id    belay.SessionID
	at    time.Time // its order
	order int64     // who came first
	since time.Time // when it came
	index int       // in the heap
}

func newLine() *line { return &line{of: map[belay.SessionID]*place{}} }

func (l *line) len() int { return len(l.places) }

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
	if p := l.of[id]; p != nil {
		if at.Before(p.at) {
			p.at = at
			heap.Fix(&l.places, p.index)
		}
		return
	}
	l.came++
	p := &place{id: id, at: at, order: l.came, since: now}
	l.of[id] = p
	heap.Push(&l.places, p)
}

// remove takes a session out, if it is there.
func (l *line) remove(id belay.SessionID) {
	p := l.of[id]
	if p == nil {
		return
	}
	delete(l.of, id)
	heap.Remove(&l.places, p.index)
}

// placesByTime is the heap, for container/heap alone.
type placesByTime []*place

func (h placesByTime) Len() int { return len(h) }

func (h placesByTime) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}

func (h placesByTime) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *placesByTime) Push(x any) {
	p := x.(*place)
	p.index = len(*h)
	*h = append(*h, p)
}

func (h *placesByTime) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return p
}

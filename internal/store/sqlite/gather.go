package sqlite

import (
	"slices"
	"time"
)

// gatherTime is how long after its begin a transaction still lets others come
// first. Later it only takes what is queued already.
const gatherTime = 2 * time.Millisecond

// gather takes into the open transaction what was queued while it ran, because
// a transaction that waits for its sync anyway can take it along. In a crowd it
// lets others come first, once for each time that nothing is queued: those who
// are about to write. It waits for nobody: with nothing else to run it continues
// at once.
func (w *writer) gather(group []*request, blobs []smallBlob) ([]*request, []smallBlob, error) {
	until, yielded := w.now().Add(gatherTime), false
	for {
		more := w.late(len(group))
		if len(more) == 0 {
			if yielded || !w.recent.crowd() || !w.now().Before(until) {
				return group, blobs, nil
			}
			yielded = true
			w.db.o.yield()
			continue
		}
		yielded = false
		before := len(blobs)
		blobs = w.db.small.waiting()
		w.putting = blobs
		group = append(group, more...)
		if err := w.inside(more, blobs[before:]); err != nil {
			return group, blobs, err
		}
	}
}

// late is what was queued since a group of n was taken.
func (w *writer) late(n int) []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := w.queue[:min(len(w.queue), groupLimit-n)]
	w.queue = w.queue[len(more):]
	return more
}

// appenders are the streams of the last appends, by number.
type appenders struct {
	streams [8]int64
	next    int
}

func (a *appenders) add(stream int64) {
	a.streams[a.next] = stream
	a.next = (a.next + 1) % len(a.streams)
}

// crowd reports whether there are more streams than a session has that runs one
// thread: its own, a task's and the thread's.
func (a *appenders) crowd() bool {
	different := 0
	for i, s := range a.streams {
		if s != 0 && !slices.Contains(a.streams[:i], s) {
			different++
		}
	}
	return different > 3
}

package engine

import (
	"maps"
	"slices"
	"sync"

	"github.com/belay-run/belay"
)

// mailbox says which inboxes of a claimed session may have something. The commands
// themselves are in the store.
type mailbox struct {
	kick chan struct{} // capacity 1: there is something for a stream without a drive

	mu     sync.Mutex
	drives map[belay.StreamID]*drive // that run
	dirty  map[belay.StreamID]bool   // streams without a drive whose inboxes may have something; the empty one: any of the session
}

func newMailbox() mailbox {
	return mailbox{kick: make(chan struct{}, 1), drives: map[belay.StreamID]*drive{}, dirty: map[belay.StreamID]bool{}}
}

// signal makes the receiver of a channel look; it has capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// begin makes a drive known, and lets it look if its inbox may have something.
func (m *mailbox) begin(v *drive) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drives[v.stream] = v
	if m.dirty[v.stream] {
		delete(m.dirty, v.stream)
		signal(v.nudge)
	}
}

// end takes a drive out; what came too late waits for the next one.
func (m *mailbox) end(v *drive) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.drives, v.stream)
	select {
	case <-v.nudge:
		m.dirty[v.stream] = true
	default:
	}
}

// notify says that a stream's inbox may have something. Without a stream it is any
// of the session.
func (m *mailbox) notify(s belay.StreamID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.drives[s]; v != nil {
		signal(v.nudge)
	} else {
		m.dirty[s] = true
		signal(m.kick)
	}
}

// take reports whether a stream was notified, and forgets it.
func (m *mailbox) take(s belay.StreamID) (dirty bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dirty = m.dirty[s]
	delete(m.dirty, s)
	return dirty
}

// streams are those that were notified, in a fixed order.
func (m *mailbox) streams() []belay.StreamID {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Sorted(maps.Keys(m.dirty))
	return slices.DeleteFunc(all, func(s belay.StreamID) bool { return s == "" })
}

// clear reports whether any was notified, and forgets it.
func (m *mailbox) clear() (dirty bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dirty = len(m.dirty) > 0
	clear(m.dirty)
	return dirty
}

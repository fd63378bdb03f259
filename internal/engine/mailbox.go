package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
)

// A command that a stream sends another one is in the receiver's inbox when it
// is handed over here: handing it over only saves reading it from there. What
// is dropped on the way is still in the inbox; what is read from the inbox
// isn't taken again when it is handed over.

// post is what waits for a stream.
type post struct {
	mail []belay.Order // durable, and sent by a stream of this engine
	look bool          // the inbox may have more
}

// mailbox is the mailbox of a claimed session. Its lock guards the post of its
// drives, too.
type mailbox struct {
	kick chan struct{} // capacity 1: there is post, for a stream without a drive

	mu     sync.Mutex
	drives map[belay.StreamID]*drive        // that run
	look   bool                             // the lanes may have more than this process knows
	mail   map[belay.StreamID][]belay.Order // of streams without a drive
	read   map[belay.CommandID]bool         // taken from an inbox before it was handed over
}

func newMailbox() mailbox {
	return mailbox{kick: make(chan struct{}, 1), drives: map[belay.StreamID]*drive{}, mail: map[belay.StreamID][]belay.Order{}, read: map[belay.CommandID]bool{}}
}

// signal makes the receiver of a channel look; it has capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// begin makes a drive known, with the post that waits for its stream.
func (m *mailbox) begin(v *drive, look bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v.post = post{mail: m.mail[v.stream], look: look}
	delete(m.mail, v.stream)
	m.drives[v.stream] = v
}

// end takes a drive out; post that came too late waits for the next one.
func (m *mailbox) end(v *drive) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.drives, v.stream)
	if len(v.post.mail) > 0 {
		m.mail[v.stream] = append(m.mail[v.stream], v.post.mail...)
	}
	m.look = m.look || v.post.look
}

// deliver gives durable commands to the streams that they are for.
func (m *mailbox) deliver(orders []belay.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range orders {
		if m.read[o.ID] {
			delete(m.read, o.ID)
		} else if v := m.drives[o.Stream]; v != nil {
			v.post.mail = append(v.post.mail, o)
			signal(v.nudge)
		} else {
			m.mail[o.Stream] = append(m.mail[o.Stream], o)
			signal(m.kick)
		}
	}
}

// notify says that a stream's inbox may have something that wasn't handed over.
// Without a stream it is any of the session.
func (m *mailbox) notify(s belay.StreamID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.drives[s]; v != nil {
		v.post.look = true
		signal(v.nudge)
	} else {
		m.look = true
		signal(m.kick)
	}
}

// takeDirty reports whether the lanes are to be read, and forgets it.
func (m *mailbox) takeDirty() (look bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	look, m.look = m.look, false
	return look
}

// streams are those without a drive that have mail, in a fixed order.
func (m *mailbox) streams() []belay.StreamID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.mail))
}

// collect takes a stream's commands: those handed over, or all that wait.
func (m *mailbox) collect(ctx context.Context, v *drive) ([]belay.Order, error) {
	m.mu.Lock()
	has := v.post
	v.post = post{}
	m.mu.Unlock()
	if !has.look {
		return has.mail, nil
	}
	orders, err := v.e.c.Store.Inbox(ctx, v.stream) // has what was handed over too
	if err != nil || v.passive {
		return orders, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range orders {
		is := func(h belay.Order) bool { return h.ID == o.ID }
		switch i := slices.IndexFunc(v.post.mail, is); {
		case i >= 0: // handed over while the inbox was read
			v.post.mail = slices.Delete(v.post.mail, i, i+1)
		case strings.HasPrefix(o.Principal, fromStream) && !slices.ContainsFunc(has.mail, is):
			// It may still be handed over. One that a process before this sent never
			// will be, so not all of these notes are used up.
			m.read[o.ID] = true
		}
	}
	return orders, nil
}

// fromStream begins the principal of commands that streams send.
const fromStream = "stream:"

package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// A command that a stream sends another one is in the receiver's inbox when it
// is handed over here: handing it over only saves reading it from there. What
// is dropped on the way is still in the inbox; what is read from the inbox
// isn't taken again when it is handed over.

// post is what waits for a stream. The engine's lock guards it.
type post struct {
	mail []belay.Order // durable, and sent by a stream of this engine
	look bool          // the inbox may have more
}

// mailbox is the mailbox of a session's streams that have no drive.
type mailbox struct {
	look bool // the lanes may have more than this process knows
	mail map[belay.StreamID][]belay.Order
	read map[belay.CommandID]bool // taken from an inbox before it was handed over
}

// notify makes a drive look at its post.
func (v *drive) notify() {
	select {
	case v.nudge <- struct{}{}:
	default:
	}
}

// begin makes a drive known, with the post that waits for its stream.
func (e *Engine) begin(v *drive, look bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v.post = post{mail: v.own.post.mail[v.stream], look: look}
	delete(v.own.post.mail, v.stream)
	e.drives[v.stream] = v
}

// end takes a drive out; post that came too late waits for the next one.
func (e *Engine) end(v *drive) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.drives, v.stream)
	if len(v.post.mail) > 0 {
		v.own.post.put(v.stream, v.post.mail...)
	}
	v.own.post.look = v.own.post.look || v.post.look
}

func (p *mailbox) put(s belay.StreamID, orders ...belay.Order) {
	if p.mail == nil {
		p.mail = map[belay.StreamID][]belay.Order{}
	}
	p.mail[s] = append(p.mail[s], orders...)
}

// deliverLocal gives durable commands to the streams of this engine that they are for.
func (e *Engine) deliverLocal(orders []belay.Order) {
	if len(orders) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range orders {
		own := e.owned[o.Session]
		if own == nil || own.passive {
			continue
		}
		if own.post.read[o.ID] {
			delete(own.post.read, o.ID)
			continue
		}
		if v := e.drives[o.Stream]; v != nil {
			v.post.mail = append(v.post.mail, o)
			v.notify()
		} else {
			own.post.put(o.Stream, o)
			own.notify()
		}
	}
}

// notify tells a stream of this engine that its inbox may have something that
// wasn't handed over. Without a stream it is any of the session.
func (e *Engine) notify(id belay.SessionID, s belay.StreamID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v := e.drives[s]; v != nil {
		v.post.look = true
		v.notify()
	} else if own := e.owned[id]; own != nil {
		own.post.look = true
		own.notify()
	}
}

// takeDirty reports whether the lanes are to be read, and forgets it.
func (e *Engine) takeDirty(own *ownership) (look bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	look, own.post.look = own.post.look, false
	return look
}

// streamsWithMail are the streams without a drive that have mail, in a fixed order.
func (e *Engine) streamsWithMail(own *ownership) (streams []belay.StreamID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range own.post.mail {
		streams = append(streams, s)
	}
	slices.Sort(streams)
	return streams
}

// collect takes a stream's commands: those handed over, or all that wait.
func (e *Engine) collect(ctx context.Context, v *drive) ([]belay.Order, error) {
	e.mu.Lock()
	p := v.post
	v.post = post{}
	e.mu.Unlock()
	if !p.look {
		return p.mail, nil
	}
	orders, err := e.c.Store.Inbox(ctx, v.stream) // has what was handed over too
	if err != nil || v.passive {
		return orders, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range orders {
		is := func(h belay.Order) bool { return h.ID == o.ID }
		switch i := slices.IndexFunc(v.post.mail, is); {
		case i >= 0: // handed over while the inbox was read
			v.post.mail = slices.Delete(v.post.mail, i, i+1)
		case strings.HasPrefix(o.Principal, fromStream) && !slices.ContainsFunc(p.mail, is):
			v.own.post.expect(o.ID)
		}
	}
	return orders, nil
}

// expect notes a command that may still be handed over. One that a process
// before this sent never will be, so not all notes are used up.
func (p *mailbox) expect(id belay.CommandID) {
	if p.read == nil {
		p.read = map[belay.CommandID]bool{}
	}
	p.read[id] = true
}

// fromStream begins the principal of commands that streams send.
const fromStream = "stream:"

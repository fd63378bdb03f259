package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Begin handles the first commands of a new session. Its streams handle them,
// and those that they send one another, before anything is written; then all of
// it becomes durable at once. What follows is left to the session's driver.
// false: the session, a stream or a command of it exists already, or a command
// was refused. Nothing was written then, and SubmitAll is the way.
func (e *Engine) Begin(ctx context.Context, orders ...belay.Order) (Answer, bool, error) {
	clean := e.cleaned(orders)
	id := clean[0].Session
	defer e.trackSubmit(id)()
	own := e.claims.reserve(id)
	if own == nil {
		return Answer{}, false, nil
	}
	defer e.claims.disown(own)
	b := &newSession{e: e, own: own}
	end, begun, err := b.found(ctx, store.NewSession{Session: id, Owner: e.c.Owner, Orders: clean})
	if !begun {
		return Answer{}, false, err
	}
	return b.result(clean[len(clean)-1].ID, end), true, nil
}

// Founded is a session that began and is still this engine's.
type Founded struct {
	From    store.Position // what was there before it
	Release func() error   // ends the claim, as that of Own
}

// Found is Begin for a caller that drives the session next: the session stays
// this engine's until Release is called, as after Own, and becomes a writer of a
// workspace if one is named. What the streams are after their first commands is
// known when the session is driven. nil: nothing was written, and Own and the
// inbox are the way. *store.WriterError: nothing was written, because another
// session is a writer there.
func (e *Engine) Found(ctx context.Context, workspace string, shared bool, orders ...belay.Order) (*Founded, error) {
	clean := e.cleaned(orders)
	id := clean[0].Session
	own := e.claims.reserve(id)
	if own == nil {
		return nil, nil
	}
	k := e.claims.acquireLease(ctx) // what others bring from now on is seen
	b := &newSession{e: e, own: own}
	end, begun, err := b.found(ctx, store.NewSession{Session: id, Owner: e.c.Owner, Orders: clean, Keep: Lease, Writes: workspace, Shared: shared && workspace != ""})
	if !begun {
		e.claims.disown(own)
		e.claims.releaseLease(k)
		return nil, err
	}
	b.retain()
	return &Founded{From: end - store.Position(b.count()), Release: func() error {
		e.claims.releaseLease(k)
		return e.claims.release(context.WithoutCancel(ctx), own, hold)
	}}, nil
}

// newSession is a session whose first commands are handled in memory.
type newSession struct {
	e       *Engine
	own     *ownership
	streams []*newStream // in the order of the log
}

// newStream is a stream of a new session, with all that it decided.
type newStream struct {
	*drive
	batch batch
}

// found lets the streams handle the commands and makes it durable. false, without
// an error: that isn't possible, and nothing was written.
func (b *newSession) found(ctx context.Context, f store.NewSession) (end store.Position, begun bool, err error) {
	if !b.handle(f.Orders) {
		return 0, false, nil
	}
	f.Batches = b.storeBatches()
	b.e.c.Point("append/before")
	end, err = retryAppend(ctx, func(ctx context.Context) (store.Position, error) { return b.e.c.Store.Found(ctx, f) })
	if err != nil {
		if errors.Is(err, store.ErrConflict) {
			err = nil
		}
		return 0, false, err
	}
	b.e.c.Point("append/after")
	for _, v := range b.streams {
		b.e.c.Performers.Recorded(context.WithoutCancel(ctx), v.stream, v.batch.events)
	}
	if b.e.c.Recorded != nil {
		b.e.c.Recorded(end, b.facts())
	}
	return end, true, nil
}

// count is how many facts the streams have.
func (b *newSession) count() (n int) {
	for _, v := range b.streams {
		n += len(v.batch.events)
	}
	return n
}

// facts are those of all streams, in the order of the log.
func (b *newSession) facts() []event.Envelope {
	all := make([]event.Envelope, 0, b.count())
	for _, v := range b.streams {
		all = append(all, v.batch.events...)
	}
	return all
}

// handle lets the streams handle the commands and what they send. false: something
// was refused.
func (b *newSession) handle(orders []belay.Order) bool {
	mail := map[belay.StreamID][]belay.Order{}
	put := func(orders []belay.Order) {
		for _, o := range orders {
			mail[o.Stream] = append(mail[o.Stream], o)
		}
	}
	for put(orders); len(mail) > 0; {
		for _, s := range slices.Sorted(maps.Keys(mail)) {
			post := mail[s]
			delete(mail, s)
			sent, ok := b.stream(s, post)
			if !ok {
				return false
			}
			put(sent)
		}
	}
	return len(b.streams) > 0
}

// firstFacts is how many facts a new stream begins with, at most as a rule.
const firstFacts = 3

// stream lets a stream, which had no facts before the session, handle commands.
func (b *newSession) stream(s belay.StreamID, post []belay.Order) (sent []belay.Order, ok bool) {
	if post[0].Session != b.own.session {
		return nil, false
	}
	v, err := b.visit(s)
	if err != nil {
		return nil, false
	}
	facts, sends := len(v.batch.events), len(v.batch.sends)
	for _, o := range post {
		v.handle(&v.batch, o)
		v.batch.consumed = append(v.batch.consumed, o.ID)
	}
	made := v.batch.events[facts:]
	if len(made) == 0 || slices.ContainsFunc(made, func(ev event.Envelope) bool { return refusedBy(ev) != nil }) {
		return nil, false
	}
	return v.batch.sends[sends:], true
}

// visit returns a stream of the session, a new one at its first visit.
func (b *newSession) visit(s belay.StreamID) (*newStream, error) {
	if i := slices.IndexFunc(b.streams, func(v *newStream) bool { return v.stream == s }); i >= 0 {
		return b.streams[i], nil
	}
	v := &newStream{drive: b.e.newDrive(b.own, s)}
	v.passive = true
	v.room = make([]event.Envelope, 0, firstFacts)
	var err error
	if v.d, v.vers, err = NewDecider(s); err != nil {
		return nil, err
	}
	b.streams = append(b.streams, v)
	return v, nil
}

// storeBatches are the batches. A stream that decides something next, or wants
// content for that, is runnable: its drive decides that again. It keeps the
// cached rules, however many sessions begin meanwhile.
func (b *newSession) storeBatches() []store.Batch {
	out := make([]store.Batch, len(b.streams))
	for i, v := range b.streams {
		out[i] = store.Batch{Session: v.session, Stream: v.stream, Events: v.batch.events, Sends: v.batch.sends}
		missing := v.d.Missing()
		for _, ref := range missing {
			b.e.c.Performers.Supply(v.d, ref, nil)
		}
		if v.wants = len(missing) > 0; !v.wants {
			rd := v.d.Next(v.now())
			v.wants, v.wake = len(rd.Decided)+len(rd.Effects) > 0, rd.Wake
		}
		if out[i].Lane.Runnable = v.wants; !v.wants {
			out[i].Lane.Wake = v.wake
		}
	}
	return out
}

// result notes what was made durable, up to a position, and is the answer to one
// of the commands.
func (b *newSession) result(order belay.CommandID, end store.Position) Answer {
	to := &reply{order: order}
	known := map[belay.StreamID]streamState{}
	wants := false
	end -= store.Position(b.count())
	for _, v := range b.streams {
		end += store.Position(len(v.batch.events))
		to.take(&v.batch, end)
		known[v.stream] = v.streamState
		wants = wants || v.wants
	}
	if to.answer == nil {
		to.answer = &Answer{}
	}
	to.answer.Rests, to.answer.Wants = !wants, wants
	for _, v := range b.streams {
		to.answer.Wake = earliest(to.answer.Wake, v.wake)
	}
	b.e.resting.remember(b.own.session, 1, known)
	return *to.answer
}

// retain lets the session be driven from where its streams stand. Those that
// decide something next are due at once.
func (b *newSession) retain() {
	known := map[belay.StreamID]*streamState{}
	for _, v := range b.streams {
		at := v.streamState
		if v.wants {
			at.wake = alreadyDue
		}
		known[v.stream] = &at
	}
	b.e.claims.keep(b.own, known)
}

// alreadyDue is when something was due that is due at once, whatever the clock says.
var alreadyDue = time.Unix(0, 0)

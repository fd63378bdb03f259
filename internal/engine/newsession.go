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
	own := e.reserve(id)
	if own == nil {
		return Answer{}, false, nil
	}
	defer e.disown(own)
	b := &newSession{e: e, own: own, drives: map[belay.StreamID]*drive{}}
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
	own := e.reserve(id)
	if own == nil {
		return nil, nil
	}
	k := e.acquireLease(ctx) // what others bring from now on is seen
	b := &newSession{e: e, own: own, drives: map[belay.StreamID]*drive{}}
	end, begun, err := b.found(ctx, store.NewSession{Session: id, Owner: e.c.Owner, Orders: clean, Keep: Lease, Writes: workspace, Shared: shared && workspace != ""})
	if !begun {
		e.disown(own)
		e.releaseLease(k)
		return nil, err
	}
	b.retain()
	return &Founded{From: end - store.Position(b.count()), Release: func() error {
		e.releaseLease(k)
		return e.release(context.WithoutCancel(ctx), own, hold)
	}}, nil
}

// reserve claims a session that begins, against others in this process; nil: it
// is claimed.
func (e *Engine) reserve(id belay.SessionID) *ownership {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.owned[id] != nil {
		return nil
	}
	own := &ownership{session: id, passive: true, users: 1, kick: make(chan struct{}, 1)}
	e.owned[id] = own
	return own
}

// disown ends what reserve began.
func (e *Engine) disown(own *ownership) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.owned, own.session)
}

// newSession is a session whose first commands are handled in memory.
type newSession struct {
	e       *Engine
	own     *ownership
	drives  map[belay.StreamID]*drive
	streams []*drive // in the order of the log
	batches []*batch // theirs
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
	for i, v := range b.streams {
		b.e.c.Performers.Recorded(context.WithoutCancel(ctx), v.stream, b.batches[i].events)
	}
	if b.e.c.Recorded != nil {
		b.e.c.Recorded(end, b.facts())
	}
	return end, true, nil
}

// count is how many facts the streams have.
func (b *newSession) count() (n int) {
	for _, of := range b.batches {
		n += len(of.events)
	}
	return n
}

// facts are those of all streams, in the order of the log.
func (b *newSession) facts() []event.Envelope {
	all := make([]event.Envelope, 0, b.count())
	for _, of := range b.batches {
		all = append(all, of.events...)
	}
	return all
}

// handle lets the streams handle the commands and what they send, each stream
// once. false: that isn't enough, or something was refused.
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

// stream lets a stream, which has no facts yet, handle its commands.
func (b *newSession) stream(s belay.StreamID, post []belay.Order) (sent []belay.Order, ok bool) {
	if b.drives[s] != nil || post[0].Session != b.own.session {
		return nil, false
	}
	v := b.e.newDrive(b.own, s)
	v.room = make([]event.Envelope, 0, firstFacts)
	var err error
	if v.d, v.vers, err = NewDecider(s); err != nil {
		return nil, false
	}
	facts := &batch{}
	for _, o := range post {
		v.handle(facts, o)
		facts.consumed = append(facts.consumed, o.ID)
	}
	if len(facts.events) == 0 || slices.ContainsFunc(facts.events, func(ev event.Envelope) bool { return refusedBy(ev) != nil }) {
		return nil, false
	}
	b.drives[s] = v
	b.streams, b.batches = append(b.streams, v), append(b.batches, facts)
	return facts.sends, true
}

// storeBatches are the batches. A stream that decides something next, or wants
// content for that, is runnable: its drive decides that again. It keeps the
// cached rules, however many sessions begin meanwhile.
func (b *newSession) storeBatches() []store.Batch {
	out := make([]store.Batch, len(b.streams))
	for i, v := range b.streams {
		out[i] = store.Batch{Session: v.session, Stream: v.stream, Events: b.batches[i].events, Sends: b.batches[i].sends}
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
	for i, v := range b.streams {
		facts := b.batches[i]
		end += store.Position(len(facts.events))
		to.take(facts, end)
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
	b.e.mu.Lock()
	b.own.epoch = 1 // the founding's
	b.e.mu.Unlock()
	b.e.remember(b.own, known)
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
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	b.own.epoch, b.own.passive, b.own.founded = 1, false, known
}

// alreadyDue is when something was due that is due at once, whatever the clock says.
var alreadyDue = time.Unix(0, 0)

// takeInitialStates returns the stream states of a session that began here and wasn't
// changed since. nil: the store has to be read.
func (e *Engine) takeInitialStates(own *ownership) map[belay.StreamID]*streamState {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := own.founded
	own.founded = nil
	return known
}

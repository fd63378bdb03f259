package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Begin brings the first commands of a session that nobody knows yet. Its
// streams handle them, and those that they send one another, before anything is
// written; then all of it becomes durable at once. What follows is left to who
// drives the session. false: the session, a stream or a command of it is known,
// or a command was refused. Nothing was written then, and SubmitAll is the way.
func (e *Engine) Begin(ctx context.Context, orders ...belay.Order) (Answer, bool, error) {
	clean := e.cleaned(orders)
	id := clean[0].Session
	defer e.comes(id)()
	own, ended := e.reserve(id)
	if own == nil {
		return Answer{}, false, nil
	}
	defer ended()
	b := &beginning{e: e, own: own, drives: map[belay.StreamID]*drive{}}
	if !b.handle(clean) {
		return Answer{}, false, nil
	}
	f := store.Founding{Session: id, Owner: e.c.Owner, Orders: clean, Batches: b.founded()}
	e.c.Point("append/before")
	end, err := trying(ctx, func(ctx context.Context) (store.Position, error) { return e.c.Store.Found(ctx, f) })
	if errors.Is(err, store.ErrConflict) {
		return Answer{}, false, nil
	}
	if err != nil {
		return Answer{}, false, err
	}
	e.c.Point("append/after")
	return b.begun(ctx, clean[len(clean)-1].ID, end), true, nil
}

// reserve keeps others here from a session that begins, until ended is called;
// nil: somebody has it.
func (e *Engine) reserve(id belay.SessionID) (own *ownership, ended func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.owned[id] != nil {
		return nil, nil
	}
	own = &ownership{session: id, passive: true, users: 1, kick: make(chan struct{}, 1)}
	e.owned[id] = own
	return own, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.owned, id)
	}
}

// beginning is a session whose first commands are handled in memory.
type beginning struct {
	e       *Engine
	own     *ownership
	drives  map[belay.StreamID]*drive
	streams []*drive // in the order of the log
	batches []*batch // theirs
}

// handle lets the streams handle the commands and what they send, each stream
// once. false: that isn't enough, or something was refused.
func (b *beginning) handle(orders []belay.Order) bool {
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

// stream lets a stream, which has no facts yet, handle its commands.
func (b *beginning) stream(s belay.StreamID, post []belay.Order) (sent []belay.Order, ok bool) {
	if b.drives[s] != nil || post[0].Session != b.own.session {
		return nil, false
	}
	v := b.e.newDrive(b.own, s)
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

// founded are the batches. A stream that decides something next, or wants
// content for that, is runnable: whoever drives it decides that again.
func (b *beginning) founded() []store.Batch {
	out := make([]store.Batch, len(b.streams))
	for i, v := range b.streams {
		out[i] = store.Batch{Session: v.session, Stream: v.stream, Events: b.batches[i].events, Sends: b.batches[i].sends}
		if v.wants = len(v.d.Missing()) > 0; !v.wants {
			rd := v.d.Next(v.now())
			v.wants, v.wake = len(rd.Decided)+len(rd.Effects) > 0, rd.Wake
		}
		if out[i].Lane.Runnable = v.wants; !v.wants {
			out[i].Lane.Wake = v.wake
		}
	}
	return out
}

// begun notes what was made durable, up to a position, and is the answer to one
// of the commands.
func (b *beginning) begun(ctx context.Context, order belay.CommandID, end store.Position) Answer {
	to := &reply{order: order}
	known := map[belay.StreamID]standing{}
	wants := false
	for _, facts := range b.batches {
		end -= store.Position(len(facts.events))
	}
	for i, v := range b.streams {
		facts := b.batches[i]
		end += store.Position(len(facts.events))
		to.take(facts, end)
		b.e.convs.feed(context.WithoutCancel(ctx), b.e.c.Store, v.stream, facts.events)
		known[v.stream] = v.standing
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

package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

// handling lets streams of a session handle commands without starting effects.
// What they send one another is handled too, and what all of them decide becomes
// durable at once.
type handling struct {
	e       *Engine
	own     *ownership
	to      *reply                           // nil: no caller waits
	claim   *store.Claim                     // of a session that begins: it is claimed with what is decided, and no stream has facts before
	mail    map[belay.StreamID][]belay.Order // not handled yet
	streams []*visit                         // in the order in which they handled something first
	wants   bool                             // a stream isn't at rest
	wake    time.Time                        // of those that are, the earliest; zero is never
}

// visit is a stream with what it decided since the last commit.
type visit struct {
	*drive
	b  batch
	rd core.Ready
}

// reply is what becomes of a command that is handled here.
type reply struct {
	order   belay.CommandID
	answer  *Answer // nil: it wasn't handled
	refused error
}

func (e *Engine) newHandling(own *ownership, to *reply) *handling {
	return &handling{e: e, own: own, to: to, mail: map[belay.StreamID][]belay.Order{}}
}

func (h *handling) deliver(orders []belay.Order) {
	for _, o := range orders {
		h.mail[o.Stream] = append(h.mail[o.Stream], o)
	}
}

// run handles the mail. sends are commands of it that are in no inbox. It returns
// the positions of the facts.
func (h *handling) run(ctx context.Context, sends []belay.Order) ([]store.Position, error) {
	for len(h.mail) > 0 {
		for _, s := range slices.Sorted(maps.Keys(h.mail)) {
			orders := h.mail[s]
			delete(h.mail, s)
			if err := h.visit(ctx, s, orders); err != nil {
				return nil, err
			}
		}
	}
	at, err := h.commit(ctx, sends)
	if err == nil && h.to != nil && h.to.answer != nil {
		h.to.answer.Rests, h.to.answer.Wake, h.to.answer.Wants = !h.wants, h.wake, h.wants
	}
	return at, err
}

// visit lets a stream handle commands, for the first time or again.
func (h *handling) visit(ctx context.Context, s belay.StreamID, orders []belay.Order) (err error) {
	i := slices.IndexFunc(h.streams, func(v *visit) bool { return v.stream == s })
	if i < 0 {
		v := &visit{drive: h.e.newDrive(h.own, s)}
		v.passive = true
		if h.claim != nil {
			v.d, v.vers, err = NewDecider(s)
		} else {
			err = v.open(ctx, &v.b)
		}
		if err != nil {
			return err
		}
		i, h.streams = len(h.streams), append(h.streams, v)
	}
	v := h.streams[i]
	sent := len(v.b.sends)
	if err := v.take(ctx, &v.b, orders); err != nil {
		return err
	}
	if v.rd, err = v.decide(ctx, &v.b); err != nil {
		return err
	}
	v.wake = v.rd.Wake
	h.deliver(v.b.sends[sent:])
	return nil
}

// errRefused means that a session can't begin: one of its commands was refused.
var errRefused = errors.New("a command of a new session was refused")

// commit makes what the streams decided durable, and notes it.
func (h *handling) commit(ctx context.Context, sends []belay.Order) ([]store.Position, error) {
	var batches []store.Batch
	for _, v := range h.streams {
		if v.b.empty() {
			continue
		}
		sb, err := v.sealed(&v.b, v.rd)
		if err != nil {
			return nil, err
		}
		if h.claim != nil && slices.ContainsFunc(sb.Events, func(ev event.Envelope) bool { return refusedBy(ev) != nil }) {
			return nil, errRefused
		}
		batches = append(batches, sb)
	}
	var at []store.Position
	if len(batches) > 0 {
		var err error
		batches[0].Claim, batches[0].Sends = h.claim, slices.Concat(sends, batches[0].Sends)
		if at, err = h.e.commit(ctx, batches...); err != nil {
			return nil, err
		}
	}
	h.wants, h.wake = false, time.Time{}
	rest := at
	for _, v := range h.streams {
		if h.to != nil {
			h.to.take(&v.b, rest)
		}
		rest = rest[len(v.b.events):]
		v.b = batch{}
		h.wants = h.wants || len(v.rd.Effects) > 0 || v.d.InFlight()
		h.wake = earliest(h.wake, v.wake)
	}
	return at, nil
}

// take looks for the answer in what was written at some positions.
func (r *reply) take(b *batch, at []store.Position) {
	if !slices.Contains(b.consumed, r.order) {
		return
	}
	r.answer = &Answer{}
	for i, ev := range b.events {
		if ev.IDs.Request != r.order {
			continue
		}
		if r.refused = refusedBy(ev); r.refused != nil {
			return
		}
		r.answer.Events, r.answer.Position = append(r.answer.Events, ev), at[i]
	}
}

// refusedBy is the refusal that a fact records, or nil.
func refusedBy(ev event.Envelope) error {
	if m, ok := ev.Data.(event.ChannelMessage); ok && m.Kind == "audit" {
		return &belay.Error{Code: belay.Code(m.Code), Message: m.Message, Hint: m.Hint}
	}
	return nil
}

// handleHere claims a session, lets its streams handle what is in their inboxes,
// and gives it back; of a session that another process or call owns the owner does
// that. to is the reply that a caller waits for, if any.
func (e *Engine) handleHere(ctx context.Context, id belay.SessionID, to *reply) (err error) {
	own, err := e.claims.claim(ctx, id, bring)
	if _, live := errors.AsType[*store.OwnedError](err); live {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.claims.release(context.WithoutCancel(ctx), own, bring)) }()
	h := e.newHandling(own, to)
	for more := true; more; more = own.mailbox.clear() { // commands came meanwhile
		rows, err := e.c.Store.Lanes(ctx, id)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Inbox == 0 {
				continue
			}
			orders, err := e.c.Store.Inbox(ctx, row.Stream)
			if err != nil {
				return err
			}
			h.deliver(orders)
		}
		if _, err := h.run(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// Begun is a session that began.
type Begun struct {
	Answer                 // of the last command
	From    store.Position // what was there before it
	Release func() error   // ends the claim of a session that is kept, as that of Own
}

// Begin handles the first commands of a new session: they, the claim and what the
// session's streams decide become durable at once. A session that the claim keeps
// stays this engine's until Release is called, as after Own. What follows is left to
// the session's driver.
//
// nil: nothing was written, because the session, a stream or a command of it exists
// already, or a command was refused: Submit is the way, and tells why.
// *store.WriterError: nothing was written, because another session is a writer of
// the claim's workspace.
func (e *Engine) Begin(ctx context.Context, claim store.Claim, orders ...belay.Order) (*Begun, error) {
	clean := e.cleaned(orders)
	id := clean[0].Session
	own := e.claims.reserve(id)
	if own == nil {
		return nil, nil
	}
	claim.Owner = e.c.Owner
	release := func() {}
	if claim.Keep > 0 {
		keeper := e.claims.acquireLease(ctx) // what others bring from now on is seen
		release = func() { e.claims.releaseLease(keeper) }
	}
	h := e.newHandling(own, &reply{order: clean[len(clean)-1].ID})
	h.claim = &claim
	h.deliver(clean)
	at, err := h.run(ctx, clean)
	if err != nil {
		e.claims.begun(own, false)
		release()
		if _, ok := errors.AsType[*store.WriterError](err); ok {
			return nil, err
		}
		return nil, nil
	}
	e.claims.begun(own, claim.Keep > 0)
	return &Begun{Answer: *h.to.answer, From: at[0] - 1, Release: func() error {
		release()
		return e.claims.release(context.WithoutCancel(ctx), own, hold)
	}}, nil
}

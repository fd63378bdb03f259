package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
)

// Answer is the outcome of a command.
type Answer struct {
	Events   []event.Envelope // the facts it caused
	Position store.Position   // of the last of them; 0 is none
	Pending  bool             // accepted, and not handled within the time given
	Rests    bool             // it was handled here, and nothing follows until something else comes
	Wake     time.Time        // of Rests: or until then, if it isn't zero
	Wants    bool             // it was handled here, and the session has something to do now
}

// answerWithin is how long Submit waits for the owner to act.
const answerWithin = 2 * time.Second

// Submit brings a command to its stream and waits for the facts that answer
// it. It is durable once it is accepted. A session that this engine or another
// live process drives gets it through its inbox; else the engine claims the
// session, handles the command, starts no effects and gives the session back.
// A refusal is the decider's *belay.Error.
func (e *Engine) Submit(ctx context.Context, o belay.Order) (Answer, error) {
	if c, ok := o.Command.(belay.RespondAction); ok {
		if err := RefuseSecrets(e.c.Secrets, c.Args); err != nil {
			return Answer{}, err
		}
	}
	return e.SubmitAll(ctx, o)
}

// SubmitAll brings several commands of a session together, or none of them, and
// waits for the facts that answer the last one.
func (e *Engine) SubmitAll(ctx context.Context, orders ...belay.Order) (Answer, error) {
	clean := e.cleaned(orders)
	defer e.trackSubmit(clean[0].Session)()
	from, err := e.c.Store.End(ctx)
	if err != nil {
		return Answer{}, err
	}
	if err := e.c.Store.Enqueue(ctx, clean...); err != nil {
		return Answer{}, err
	}
	return e.answer(ctx, from, clean[len(clean)-1])
}

// cleaned are orders as the store may have them.
func (e *Engine) cleaned(orders []belay.Order) []belay.Order {
	clean := make([]belay.Order, len(orders))
	for i, o := range orders {
		if o.Time.IsZero() {
			o.Time = e.c.Now().UTC()
		}
		clean[i] = e.scrubOrder(o)
	}
	return clean
}

// scrubOrder removes registered secrets from a command before it becomes durable.
func (e *Engine) scrubOrder(o belay.Order) belay.Order {
	name, body, err := belay.EncodeCommand(o.Command)
	if err != nil {
		return o
	}
	clean := e.c.Secrets.Bytes(body)
	if bytes.Equal(clean, body) {
		return o
	}
	if c, err := belay.DecodeCommand(name, clean); err == nil {
		o.Command = c
	}
	return o
}

// RefuseSecrets refuses arguments that a person gives a call if a registered
// secret is among them: it would be redacted, and the call would run with the
// placeholder.
func RefuseSecrets(s *secret.Scrubber, args []byte) error {
	if bytes.Equal(s.JSON(args), args) {
		return nil
	}
	return belay.Errorf(belay.CodeBadArguments, "the arguments hold a registered secret, which would be recorded").WithHint("let the tool read it from its environment or from a file")
}

// trackSubmit notes that Submit brings something to a session, until it is called.
func (e *Engine) trackSubmit(id belay.SessionID) (ended func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.coming[id]++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.coming[id]--; e.coming[id] == 0 {
			delete(e.coming, id)
		}
	}
}

// hasPendingSubmit reports whether Submit is at work for a session: its command may be in
// the inbox already, and doesn't need the session to be driven.
func (e *Engine) hasPendingSubmit(id belay.SessionID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.coming[id] > 0
}

// push has the command looked at: by the session's drive in this process, or by
// this process itself when the session isn't claimed elsewhere. A live owner
// finds it by itself, unless it is just giving the session back: so it is tried
// again.
//
// It returns this process's answer, nil if that isn't known.
func (e *Engine) push(ctx context.Context, o belay.Order) (*Answer, error) {
	if e.claims.has(o.Session) {
		e.claims.notify(o.Session, o.Stream)
		return nil, nil
	}
	to := &reply{order: o.ID}
	err := e.handleHere(ctx, o.Session, to)
	if _, live := errors.AsType[*store.OwnedError](err); live {
		return nil, nil
	}
	if err != nil || to.answer == nil {
		return nil, err
	}
	return to.answer, to.refused
}

// reply is what becomes of a command that is handled here.
type reply struct {
	order   belay.CommandID
	answer  *Answer // nil: it wasn't handled
	refused error
}

// take looks for the answer in what was written.
func (r *reply) take(b *batch, end store.Position) {
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
		r.answer.Events, r.answer.Position = append(r.answer.Events, ev), end-store.Position(len(b.events)-1-i)
	}
}

// refusedBy is the refusal that a fact records, or nil.
func refusedBy(ev event.Envelope) error {
	if m, ok := ev.Data.(event.ChannelMessage); ok && m.Kind == "audit" {
		return &belay.Error{Code: belay.Code(m.Code), Message: m.Message, Hint: m.Hint}
	}
	return nil
}

// handleHere claims a session, lets its streams handle their commands without
// starting effects, and gives it back. to is the reply that a caller waits for,
// if any.
func (e *Engine) handleHere(ctx context.Context, id belay.SessionID, to *reply) (err error) {
	own, err := e.claims.claim(ctx, id, bring)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.claims.release(context.WithoutCancel(ctx), own, bring)) }()
	h := &handling{e: e, own: own, to: to, known: e.resting.recall(id, own.epoch), mail: map[belay.StreamID][]belay.Order{}}
	for more := true; more; more = own.mailbox.takeDirty() { // commands came meanwhile
		rows, err := e.c.Store.Lanes(ctx, id)
		if err != nil {
			return err
		}
		if err := h.round(ctx, rows); err != nil {
			return err
		}
	}
	if to != nil && to.answer != nil {
		to.answer.Rests, to.answer.Wake, to.answer.Wants = !h.wants, h.wake, h.wants
	}
	if e.claims.alone(own) { // else another may write
		e.resting.remember(id, own.epoch, h.known)
	}
	return nil
}

// handling is one passive look at a session's commands. Streams that were looked
// at keep their deciders meanwhile, and what one sends another is handed over.
type handling struct {
	e     *Engine
	own   *ownership
	to    *reply // nil: no caller waits
	known map[belay.StreamID]streamState
	mail  map[belay.StreamID][]belay.Order // durable, and not handled yet
	fresh bool                             // the session is new: a stream that isn't known has no facts
	wants bool                             // a stream that was looked at isn't at rest
	wake  time.Time                        // of those that are, the earliest; zero is never
}

// round handles the commands of the streams in rows, and those that they send.
func (h *handling) round(ctx context.Context, rows []store.LaneRow) error {
	for _, row := range rows {
		if row.Inbox == 0 {
			continue
		}
		h.fresh = h.fresh || h.own.epoch == 1 && row.Stream == h.own.session.Stream() && row.Seq == 0
		delete(h.mail, row.Stream) // the inbox has it
		if err := h.stream(ctx, row.Stream, row.Seq == 0, post{look: true}); err != nil {
			return err
		}
	}
	for len(h.mail) > 0 {
		for _, s := range slices.Sorted(maps.Keys(h.mail)) {
			p := post{mail: h.mail[s], look: !h.fresh} // of an older session others may have sent something before
			delete(h.mail, s)
			if err := h.stream(ctx, s, h.fresh, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// stream lets one stream handle its post. One without facts has nothing to load.
func (h *handling) stream(ctx context.Context, s belay.StreamID, empty bool, p post) (err error) {
	v := h.e.newDrive(h.own, s)
	v.passive = true
	v.post, v.streamState = p, h.known[s]
	if v.d == nil && empty {
		if v.d, v.vers, err = NewDecider(s); err != nil {
			return err
		}
	}
	v.wrote = func(b *batch, end store.Position) {
		for _, o := range b.sends {
			if o.Session == h.own.session {
				h.mail[o.Stream] = append(h.mail[o.Stream], o)
			}
		}
		if h.to != nil {
			h.to.take(b, end)
		}
	}
	err = v.run(ctx)
	h.known[s] = v.streamState
	h.wants, h.wake = h.wants || v.wants, earliest(h.wake, v.wake)
	return err
}

// Settle lets a session that isn't driven handle its waiting commands, without
// starting effects.
func (e *Engine) Settle(ctx context.Context, id belay.SessionID) error {
	err := e.handleHere(ctx, id, nil)
	if _, live := errors.AsType[*store.OwnedError](err); live {
		return nil // its owner does
	}
	return err
}

// answer waits for the facts that carry the command's id.
func (e *Engine) answer(ctx context.Context, from store.Position, o belay.Order) (Answer, error) {
	deadline := time.NewTimer(answerWithin)
	defer deadline.Stop()
	var a Answer
	for first := true; ; first = false {
		changed := e.c.Store.Changed(ctx)
		if first || e.waits(ctx, o) {
			if done, err := e.push(ctx, o); done != nil || err != nil {
				return *cmp.Or(done, &a), err
			}
		}
		// Asked before the facts are read: what took it from the inbox is among them.
		waits := e.waits(ctx, o)
		for r, err := range e.c.Store.Window(ctx, store.Window{Stream: o.Stream, After: from}) { // others may write down that it was given
			if err != nil {
				return a, err
			}
			from = r.Position
			if r.Event.IDs.Request != o.ID {
				continue
			}
			if err := refusedBy(r.Event); err != nil {
				return a, err
			}
			a.Events, a.Position = append(a.Events, r.Event), r.Position
		}
		if len(a.Events) > 0 || !waits {
			return a, nil
		}
		select {
		case <-changed:
		case <-time.After(watchEvery): // an owner that leaves commits nothing that could be seen
		case <-deadline.C:
			a.Pending = true
			return a, nil
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// waits reports whether the command is still in its inbox.
func (e *Engine) waits(ctx context.Context, o belay.Order) bool {
	orders, err := e.c.Store.Inbox(ctx, o.Stream)
	if err != nil {
		return true
	}
	for _, w := range orders {
		if w.ID == o.ID {
			return true
		}
	}
	return false
}

package engine

import (
	"bytes"
	"cmp"
	"context"
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

// Submit brings commands of a session together, or none of them, and waits for
// the facts that answer the last one. They are durable once they are accepted. A
// session that this engine or another live process drives gets them through its
// inbox; else the engine claims the session, handles them, starts no effects and
// gives the session back. A refusal is the decider's *belay.Error.
func (e *Engine) Submit(ctx context.Context, orders ...belay.Order) (Answer, error) {
	for _, o := range orders {
		if c, ok := o.Command.(belay.RespondAction); ok {
			if err := RefuseSecrets(e.c.Secrets, c.Args); err != nil {
				return Answer{}, err
			}
		}
	}
	clean := e.cleaned(orders)
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
	if err := e.handleHere(ctx, o.Session, to); err != nil || to.answer == nil {
		return nil, err
	}
	return to.answer, to.refused
}

// Settle lets a session that isn't driven handle its waiting commands, without
// starting effects.
func (e *Engine) Settle(ctx context.Context, id belay.SessionID) error {
	return e.handleHere(ctx, id, nil)
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

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

// batch collects one decision.
type batch struct {
	events   []event.Envelope
	consumed []belay.CommandID
	sends    []belay.Order
	acks     []chan error
}

// How many events may lie between two cached states: of a stream that is driven,
// and of one that only handles commands, whose state may be large beside them.
const (
	saveEvery        = 256
	savePassiveEvery = 16
)

func (v *drive) saveEvery() int64 {
	if v.passive {
		return savePassiveEvery
	}
	return saveEvery
}

// handle answers one command with facts, or with the fact that it was refused.
func (v *drive) handle(b *batch, o belay.Order) { v.handleAs(b, o, o.Command) }

// handleAs is handle with the command as it was read.
func (v *drive) handleAs(b *batch, o belay.Order, read belay.Command) {
	as := o
	as.Command = read
	facts, sends, err := v.d.Handle(as, v.now())
	if err == nil {
		err = tooLarge(facts)
	}
	if err != nil {
		v.refuse(b, o, err)
		return
	}
	v.add(b, facts, sends, o.ID)
}

// refuse records that a command wasn't taken.
func (v *drive) refuse(b *batch, o belay.Order, err error) {
	v.add(b, []core.Fact{{IDs: belay.IDs{Session: v.session}, Data: refusal(o, err)}}, nil, o.ID)
}

// tooLarge refuses a command whose facts the log doesn't take.
func tooLarge(facts []core.Fact) error {
	for _, f := range facts {
		if raw, err := event.Encode(f.Data); err != nil || len(raw) > event.MaxPayload {
			return belay.Errorf(belay.CodeTooLarge, "it would make a fact of %d bytes; at most %d are taken", len(raw), event.MaxPayload)
		}
	}
	return nil
}

func refusal(o belay.Order, err error) event.ChannelMessage {
	m := event.ChannelMessage{Kind: "audit", Principal: o.Principal, Command: belay.CommandName(o.Command), Code: string(belay.CodeOf(err)), Message: err.Error()}
	if e, ok := errors.AsType[*belay.Error](err); ok {
		m.Hint = e.Hint
	}
	return m
}

// decide asks the decider what follows until nothing does. A passive drive
// keeps what follows only if no effect would be wanted then.
func (v *drive) decide(ctx context.Context, b *batch) (core.Ready, error) {
	mark := *b
	var before []byte
	seq, last := v.seq, v.last
	for range maxDecisions {
		if err := v.supply(ctx); err != nil {
			return core.Ready{}, err
		}
		rd := v.d.Next(v.now())
		if len(rd.Decided) > 0 {
			if err := v.inspect(ctx, &rd); err != nil {
				return core.Ready{}, err
			}
			if v.passive && before == nil {
				var err error
				if before, err = v.d.Save(); err != nil {
					return core.Ready{}, err
				}
			}
			v.add(b, rd.Decided, rd.Sends, "")
			continue
		}
		if before != nil && len(rd.Effects) > 0 {
			*b, v.seq, v.last = mark, seq, last
			d, _, err := NewDecider(v.stream)
			if err != nil {
				return core.Ready{}, err
			}
			v.d = d
			return rd, d.Load(before)
		}
		return rd, nil
	}
	panic("engine: " + string(v.stream) + ": the decider decides without end")
}

// maxDecisions bounds the decisions that follow from one another without any
// effect between them; a decider that passes it has a bug.
const maxDecisions = 10_000

// supply hands the decider the content it needs.
func (v *drive) supply(ctx context.Context) error {
	get := func(d belay.Digest) ([]byte, error) { return v.e.c.Store.Get(ctx, d) }
	return supply(v.d, get, v.e.c.Performers.Supply)
}

// supply hands a decider the content it needs, and what that content names.
// shared is asked first whether it can do so with what others have; nil can't.
func supply(d core.Decider, get func(belay.Digest) ([]byte, error), shared func(core.Decider, belay.Ref, func() ([]byte, error)) bool) error {
	for refs := d.Missing(); len(refs) > 0; refs = d.Missing() {
		for _, ref := range refs {
			read := func() ([]byte, error) { return get(ref.Digest) }
			if shared != nil && shared(d, ref, read) {
				continue
			}
			content, err := read()
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if content == nil && err == nil {
				content = []byte{}
			}
			if err := d.Supply(ref, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// add gives facts their place and time and folds them. Sends are named after the place of
// the first fact; those of a command that made none after the command, since the place is
// that of the next fact.
func (v *drive) add(b *batch, facts []core.Fact, sends []core.Send, request belay.CommandID) {
	source, first := v.stream, v.seq+1
	if len(facts) == 0 && request != "" {
		source, first = belay.StreamID(request), 0
	}
	for _, f := range facts {
		v.seq++
		v.last = v.now()
		ids := f.IDs
		ids.Request = request
		ev := event.Envelope{Stream: v.stream, Seq: v.seq, Time: v.last, Runtime: v.e.c.Store.Runtime(), IDs: ids, Refs: f.Refs,
			Version: event.VersionOf(f.Data), Data: v.name(f.Data)}
		v.e.scrub(&ev)
		v.d.Apply(ev)
		b.events = append(b.events, ev)
	}
	for i, s := range sends {
		b.sends = append(b.sends, belay.Order{
			ID:        belay.CommandID(belay.DeriveID(belay.PrefixCommand, source, first, i)),
			Principal: fromStream + string(v.stream), Time: v.last, Session: v.session, Stream: s.To, Command: s.Command,
		})
	}
}

// name gives an answer's calls their ids, which follow from the fact's place.
func (v *drive) name(p event.Payload) event.Payload {
	if m, ok := p.(event.ModelCompleted); ok {
		for i := range m.Calls {
			m.Calls[i].ID = belay.CallID(belay.DeriveID(belay.PrefixCall, v.stream, v.seq, i))
		}
	}
	return p
}

// fromStream begins the principal of commands that streams send.
const fromStream = "stream:"

// now never goes back within a stream, whatever the clock does, and has the
// precision that the store keeps.
func (v *drive) now() time.Time {
	t := v.e.c.Now().UTC().Truncate(time.Microsecond)
	if t.Before(v.last) {
		return v.last
	}
	return t
}

// append makes the batch durable.
func (v *drive) append(ctx context.Context, b *batch, rd core.Ready) error {
	if b.empty() {
		return nil
	}
	sb, err := v.sealed(b, rd)
	if err == nil {
		_, err = v.e.commit(ctx, sb)
	}
	b.answer(err)
	if err != nil {
		return err
	}
	for _, o := range b.sends {
		v.own.mailbox.notify(o.Stream)
	}
	return nil
}

func (b *batch) empty() bool { return len(b.events) == 0 && len(b.consumed) == 0 }

// sealed is the batch as the store takes it: with the stream's lane and, now and
// then, the decider's state.
func (v *drive) sealed(b *batch, rd core.Ready) (store.Batch, error) {
	// What runs and isn't wanted any more still has to be recorded: who takes over must come for it.
	runnable := len(rd.Effects) > 0 || v.d.InFlight()
	lane := store.Lane{Runnable: runnable}
	if !runnable {
		lane.Wake = rd.Wake
	}
	sb := store.Batch{Session: v.session, Stream: v.stream, After: v.seq - int64(len(b.events)), Epoch: v.own.epoch,
		Events: b.events, Lane: lane, Consumed: b.consumed, Sends: b.sends}
	if len(b.events) > 0 && (!runnable && !v.passive || v.seq-v.saved >= v.saveEvery()) {
		data, err := v.d.Save()
		if err != nil {
			return sb, err
		}
		sb.State = &store.State{Seq: v.seq, Version: v.vers, Data: data}
		v.saved = v.seq
	}
	return sb, nil
}

// commit makes batches durable, tells performers of their facts and returns their positions.
// After a full or busy disk it tries again for a moment: giving up costs an
// at-most-once call its known outcome.
func (e *Engine) commit(ctx context.Context, batches ...store.Batch) ([]store.Position, error) {
	e.c.Point("append/before")
	ctx = context.WithoutCancel(ctx) // a known result must be recorded even while the process shuts down
	at, err := e.c.Store.Append(ctx, batches...)
	for try := 1; try <= 3 && (belay.CodeOf(err) == belay.CodeStoreFull || belay.CodeOf(err) == belay.CodeStoreBusy); try++ {
		time.Sleep(time.Duration(try) * 200 * time.Millisecond)
		at, err = e.c.Store.Append(ctx, batches...)
	}
	if err != nil {
		return nil, err
	}
	e.c.Point("append/after")
	for _, b := range batches {
		e.c.Performers.Recorded(ctx, b.Stream, b.Events)
	}
	return at, nil
}

// answer tells effects that wait for a commit what came of it.
func (b *batch) answer(err error) {
	for _, a := range b.acks {
		a <- err
	}
	b.acks = nil
}

// scrub removes registered secrets from a fact.
func (e *Engine) scrub(ev *event.Envelope) {
	raw, err := event.Encode(ev.Data)
	if err != nil {
		panic("engine: " + err.Error()) // payloads are plain data
	}
	clean := e.c.Secrets.Bytes(raw)
	if &clean[0] == &raw[0] {
		ev.Keep(raw)
		return
	}
	if ev.Data, err = event.Decode(ev.Type(), event.VersionOf(ev.Data), clean); err != nil {
		ev.Data = event.RuntimeWarning{Code: "REDACTED", Message: "a fact held a secret in a place where it could not be removed, so the fact was left out"}
	}
}

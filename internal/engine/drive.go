package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

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

// drive is the loop of one stream. All its fields belong to the goroutine that
// runs it, but for the channels.
type drive struct {
	e       *Engine
	own     *ownership
	session belay.SessionID
	stream  belay.StreamID
	passive bool // handle commands, start no effects

	standing

	flying map[string]*flight
	wg     sync.WaitGroup
	landed chan landing
	facts  chan emission
	room   []event.Envelope // for the next decision's facts
	post   post
	nudge  chan struct{}                      // capacity 1: there is post
	lone   atomic.Bool                        // nothing is wanted but that processes of the background go on
	wrote  func(b *batch, end store.Position) // of a passive drive: the batch is durable
	wants  bool                               // of a passive drive: something follows now

	inForce atomic.Pointer[ruling] // for the effects
	pins    pinned                 // for the effects
}

// standing is a stream as its last driver left it.
type standing struct {
	d     core.Decider // nil: to be loaded
	vers  string
	seq   int64
	last  time.Time
	saved int64     // the sequence of the cached state
	wake  time.Time // when something may be wanted next; zero is never
}

// landing is an effect that ended. No facts means that its driver was told to
// leave and the next one decides what became of it.
type landing struct {
	key   string
	facts []core.Fact
}

// emission is a fact that an effect records while it runs.
type emission struct {
	fact core.Fact
	ack  chan error // nil: nobody waits
}

// batch collects one decision.
type batch struct {
	events   []event.Envelope
	consumed []belay.CommandID
	sends    []belay.Order
	acks     []chan error
}

func (e *Engine) newDrive(own *ownership, stream belay.StreamID) *drive {
	return &drive{e: e, own: own, session: own.session, stream: stream, passive: own.passive,
		flying: map[string]*flight{}, landed: make(chan landing), facts: make(chan emission),
		nudge: make(chan struct{}, 1)}
}

// run drives the stream until it rests, ctx ends or the store refuses. When it
// returns, everything it started has ended and what is known of it is recorded.
func (v *drive) run(ctx context.Context) error {
	var err error
	b := &batch{}
	if v.d == nil {
		if v.standing, err = load(ctx, v.e.c.Store, v.stream); err != nil {
			return err
		}
		if v.d.InFlight() {
			v.handle(b, belay.Order{Principal: "runtime", Session: v.session, Stream: v.stream, Command: belay.TakeOver{Epoch: v.own.epoch}})
		}
	}
	inbox := true
	for {
		if inbox {
			if err := v.takeInbox(ctx, b); err != nil {
				return v.leave(ctx, b, err)
			}
		}
		rd, err := v.decide(ctx, b)
		if err == nil {
			err = v.append(ctx, b, rd)
		}
		if err != nil {
			return v.leave(ctx, b, err)
		}
		v.wake = rd.Wake
		if v.passive {
			v.wants = len(rd.Effects) > 0 || v.d.InFlight()
			return nil
		}
		timer := v.reconcile(ctx, rd)
		v.linger(rd)
		if len(v.flying) == 0 && timer.IsZero() {
			return nil
		}
		b = &batch{}
		if inbox = v.wait(ctx, b, earliest(timer, v.watchAt())); ctx.Err() != nil {
			return v.leave(ctx, b, context.Cause(ctx))
		}
		v.watch(b)
	}
}

// takeInbox handles the waiting commands in order.
func (v *drive) takeInbox(ctx context.Context, b *batch) error {
	orders, err := v.e.collect(ctx, v)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if c, ok := o.Command.(belay.RespondAction); ok { // what is allowed depends on the turn's rules
			if err := v.supply(ctx); err != nil {
				return err
			}
			if err := v.respond(ctx, b, o, c); err != nil {
				return err
			}
		} else {
			v.handle(b, o)
		}
		b.consumed = append(b.consumed, o.ID)
	}
	return nil
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
			if err := v.asksFor(ctx, rd.Decided); err != nil {
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
	return supply(v.d, get, v.e.supplyRules)
}

// supply hands a decider the content it needs, and what that content names.
// shared is asked first whether it can do so with what others have, once without
// the content, which saves reading it, and once with it; nil can't.
func supply(d core.Decider, get func(belay.Digest) ([]byte, error), shared func(core.Decider, belay.Ref, []byte) bool) error {
	for refs := d.Missing(); len(refs) > 0; refs = d.Missing() {
		for _, ref := range refs {
			if shared != nil && shared(d, ref, nil) {
				continue
			}
			content, err := get(ref.Digest)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if content == nil && err == nil {
				content = []byte{}
			}
			if content != nil && shared != nil && shared(d, ref, content) {
				continue
			}
			if err := d.Supply(ref, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// usualFacts is how many facts a decision has that has more than one.
const usualFacts = 6

// add gives facts their place and time and folds them.
func (v *drive) add(b *batch, facts []core.Fact, sends []core.Send, request belay.CommandID) {
	first := v.seq + 1
	if b.events == nil && len(facts) > 0 {
		if b.events, v.room = v.room, nil; cap(b.events) < len(facts) {
			b.events = make([]event.Envelope, 0, max(len(facts), usualFacts))
		}
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
			ID:        belay.CommandID(belay.DeriveID(belay.PrefixCommand, v.stream, first, i)),
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

// now never goes back within a stream, whatever the clock does, and has the
// precision that the store keeps.
func (v *drive) now() time.Time {
	t := v.e.c.Now().UTC().Truncate(time.Microsecond)
	if t.Before(v.last) {
		return v.last
	}
	return t
}

// append makes the batch durable. After a full or busy disk it tries again for
// a moment: giving up costs an at-most-once call its known outcome.
func (v *drive) append(ctx context.Context, b *batch, rd core.Ready) error {
	if len(b.events) == 0 && len(b.consumed) == 0 {
		return nil
	}
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
			return err
		}
		sb.State = &store.State{Seq: v.seq, Version: v.vers, Data: data}
		v.saved = v.seq
	}
	v.e.c.Point("append/before")
	end, err := trying(ctx, func(ctx context.Context) (store.Position, error) { return v.e.c.Store.Append(ctx, sb) })
	for _, a := range b.acks {
		a <- err
	}
	b.acks = nil
	if err != nil {
		return err
	}
	v.e.c.Point("append/after")
	v.e.convs.feed(context.WithoutCancel(ctx), v.e.c.Store, v.stream, b.events)
	v.e.hand(b.sends)
	if v.e.c.Recorded != nil && len(b.events) > 0 {
		v.e.c.Recorded(end, slices.Clone(b.events))
	}
	if v.passive {
		v.wrote(b, end)
	}
	clear(b.events) // the store and the conversation have what they keep
	v.room = b.events[:0]
	return nil
}

func trying(ctx context.Context, write func(context.Context) (store.Position, error)) (store.Position, error) {
	// What is known must be recorded even while the process is told to leave.
	ctx = context.WithoutCancel(ctx)
	for try := 0; ; try++ {
		end, err := write(ctx)
		switch belay.CodeOf(err) {
		case belay.CodeStoreFull, belay.CodeStoreBusy:
			if try < 3 {
				time.Sleep(time.Duration(try+1) * 200 * time.Millisecond)
				continue
			}
		}
		return end, err
	}
}

// reconcile starts what is wanted and not in flight, and cancels what is in
// flight and no longer wanted. It returns when to look again.
func (v *drive) reconcile(ctx context.Context, rd core.Ready) time.Time {
	wanted := map[string]bool{}
	waits := false
	for _, eff := range rd.Effects {
		if _, ok := eff.(core.Timer); ok {
			waits = true
			continue
		}
		key := eff.Key()
		wanted[key] = true
		if v.flying[key] == nil {
			v.start(ctx, key, eff)
		}
	}
	for key, f := range v.flying {
		if !wanted[key] {
			f.stop(v.e.c.Now())
		}
	}
	if waits || len(v.flying) > 0 {
		return rd.Wake
	}
	return time.Time{}
}

// start performs an effect in a goroutine of its own.
func (v *drive) start(ctx context.Context, key string, eff core.Effect) {
	mine, cancel := context.WithCancel(ctx)
	v.wg.Add(1)
	f := v.newFlight(eff, cancel)
	v.flying[key] = f
	mine = context.WithValue(mine, flightKey{}, f)
	leaving := func() bool { return ctx.Err() != nil } // the whole process, not just this effect
	v.noteRules()
	go func() {
		defer f.ended()
		roomy()
		v.e.c.Point("effect/start")
		facts := v.perform(mine, eff, leaving)
		v.e.c.Point("effect/end")
		select {
		case v.landed <- landing{key, facts}:
		case <-f.gone:
		}
	}()
}

// roomy makes the stack of a new goroutine as large as an effect needs it, at
// once: it would be made so in four steps, and copied in each.
//
//go:noinline
func roomy() {
	var room [effectStack]byte
	runtime.KeepAlive(&room)
}

// effectStack is more than half of what is wanted, for stacks double.
const effectStack = 9 << 10

func (v *drive) perform(ctx context.Context, eff core.Effect, leaving func() bool) []core.Fact {
	switch eff := eff.(type) {
	case core.CallModel:
		return v.callModel(ctx, eff)
	case core.RunTool:
		return v.runTool(ctx, eff, leaving)
	case core.CheckCall:
		return v.checkCall(ctx, eff, leaving)
	case core.TakeSnapshot:
		return v.takeSnapshot(ctx, eff)
	case core.GoBack:
		return v.goBack(ctx, eff)
	case core.RestoreFiles:
		return v.restoreFiles(ctx, eff)
	case core.KeepProcess:
		return v.keepProcess(ctx, eff, leaving)
	case core.SendInput:
		return v.sendInput(eff)
	}
	panic("engine: no performer for " + eff.Key())
}

// wait blocks until something happened and collects all that has. It tells
// whether the inbox may have something.
func (v *drive) wait(ctx context.Context, b *batch, at time.Time) (inbox bool) {
	due, stop := v.due(at)
	defer stop()
	select {
	case l := <-v.landed:
		v.land(b, l)
	case f := <-v.facts:
		v.emitted(b, f)
	case <-v.nudge:
		inbox = true
	case <-due:
	case <-ctx.Done():
	}
	for {
		select {
		case l := <-v.landed:
			v.land(b, l)
		case f := <-v.facts:
			v.emitted(b, f)
		case <-v.nudge:
			inbox = true
		default:
			return inbox
		}
	}
}

// due fires at a time; zero is never.
func (v *drive) due(at time.Time) (<-chan time.Time, func()) {
	if at.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(max(at.Sub(v.now()), 0))
	return t.C, func() { t.Stop() }
}

// earliest of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (v *drive) land(b *batch, l landing) {
	v.flying[l.key].cancel()
	delete(v.flying, l.key)
	v.add(b, l.facts, nil, "")
}

func (v *drive) emitted(b *batch, f emission) {
	v.add(b, []core.Fact{f.fact}, nil, "")
	if f.ack != nil {
		b.acks = append(b.acks, f.ack)
	}
}

// leave stops everything in flight, records what is known of it, and returns cause.
func (v *drive) leave(ctx context.Context, b *batch, cause error) error {
	broken := ctx.Err() == nil || errors.Is(cause, store.ErrStale)
	for _, f := range v.flying {
		f.stop(v.e.c.Now())
	}
	b.refuse(cause) // what came in the same moment waits for an append, too
	for len(v.flying) > 0 || v.strand(ctx) {
		look, stop := v.due(v.watchAt())
		select {
		case l := <-v.landed:
			v.land(b, l)
		case f := <-v.facts:
			v.emitted(b, f)
			b.refuse(cause) // it must not wait for the last append: that one waits for it
		case <-look:
			v.watch(b)
		}
		stop()
	}
	v.wg.Wait()
	if broken {
		return cause
	}
	rd := v.d.Next(v.now())
	if len(rd.Decided) > 0 || len(v.d.Missing()) > 0 { // something follows: whoever drives next decides it
		rd.Effects = append(rd.Effects, core.Timer{})
	}
	return errors.Join(cause, v.append(ctx, b, rd))
}

// refuse answers effects that wait for a commit, which may never come.
func (b *batch) refuse(err error) {
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

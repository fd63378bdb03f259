package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// auditor records in a store who asked the server for what, and what became of
// it. The facts are in a stream of this process in the system session; what
// comes at the same time is written together.
type auditor struct {
	st     store.Store
	owner  store.Owner
	stream belay.StreamID
	log    *slog.Logger
	in     chan written
	done   chan struct{}

	mu       sync.Mutex
	closed   bool
	senders  sync.WaitGroup
	refusals map[belay.Code]*tally
}

// entry is one line of the record.
type entry struct {
	principal string
	command   string
	code      belay.Code // "accepted", or why it was refused
	message   string
	request   belay.CommandID
	at        time.Time

	data event.Payload // instead of an audit entry: what happened to a channel
	ids  belay.IDs     // of that
}

// fact is the entry as it is recorded.
func (e *entry) fact() (belay.IDs, event.Payload) {
	ids := e.ids
	ids.Session, ids.Request = belay.SystemSession, e.request
	if e.data != nil {
		return ids, e.data
	}
	return ids, event.ChannelMessage{Kind: "audit", Principal: e.principal, Command: event.CutText(e.command, 200), Code: string(e.code), Message: event.CutText(e.message, 500)}
}

type written struct {
	entry
	ack chan error
}

// tally counts refusals of strangers of one kind: each may cost them nothing, so
// only one in a second is recorded, with how many there were since.
type tally struct {
	last  time.Time
	since int
}

// accepted is the code of a command that was done.
const accepted belay.Code = "accepted"

const (
	auditLease = 15 * time.Second
	auditBatch = 200
)

func newAuditor(st store.Store, log *slog.Logger) *auditor {
	owner := store.ThisProcess()
	a := &auditor{st: st, owner: owner, stream: belay.StreamID(belay.KindProcess + "/" + owner.ID), log: log,
		in: make(chan written, auditBatch), done: make(chan struct{}), refusals: map[belay.Code]*tally{}}
	return a
}

// run writes until close is called, and what came before that.
func (a *auditor) run(ctx context.Context) {
	defer close(a.done)
	w := &auditWriter{auditor: a}
	for first := range a.in {
		batch := []written{first}
	more:
		for len(batch) < auditBatch {
			select {
			case e, ok := <-a.in:
				if !ok {
					break more
				}
				batch = append(batch, e)
			default:
				break more
			}
		}
		err := w.write(ctx, batch)
		if err != nil {
			a.log.Error("audit", "error", err.Error(), "entries", len(batch))
		}
		for _, e := range batch {
			e.ack <- err
		}
	}
	w.release(ctx)
}

// close waits until everything is written.
func (a *auditor) close() {
	a.mu.Lock()
	already := a.closed
	a.closed = true
	a.mu.Unlock()
	if !already {
		a.senders.Wait()
		close(a.in)
	}
	<-a.done
}

// record returns when the entry is durable.
func (a *auditor) record(ctx context.Context, e entry) error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return belay.Errorf(belay.CodeDraining, "the server is about to end")
	}
	a.senders.Add(1)
	a.mu.Unlock()
	defer a.senders.Done()
	ack := make(chan error, 1)
	select {
	case a.in <- written{e, ack}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-ack:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refusal records that somebody was turned away. It doesn't fail: who was turned
// away learns nothing of the record.
func (a *auditor) refusal(ctx context.Context, e entry) {
	a.mu.Lock()
	t := a.refusals[e.code]
	if t == nil {
		t = &tally{}
		a.refusals[e.code] = t
	}
	if e.at.Sub(t.last) < time.Second {
		t.since++
		a.mu.Unlock()
		return
	}
	since := t.since
	*t = tally{last: e.at}
	a.mu.Unlock()
	if since > 0 {
		e.message = plural(since, "more request") + " refused with this code since the last entry"
	}
	if err := a.record(ctx, e); err != nil {
		a.log.Warn("audit", "error", err.Error())
	}
}

// auditWriter is the auditor's hold on its stream.
type auditWriter struct {
	*auditor
	seq     int64
	epoch   int64
	claimed time.Time
}

func (w *auditWriter) write(ctx context.Context, batch []written) error {
	ctx = context.WithoutCancel(ctx)
	err := w.try(ctx, batch)
	if errors.Is(err, store.ErrStale) {
		w.claimed = time.Time{}
		err = w.try(ctx, batch)
	}
	return err
}

func (w *auditWriter) try(ctx context.Context, batch []written) error {
	if time.Since(w.claimed) > auditLease/3 {
		epoch, err := w.st.Claim(ctx, belay.SessionID(w.stream), w.owner, auditLease)
		if err != nil {
			return err
		}
		w.epoch, w.claimed = epoch, time.Now()
	}
	b := store.Batch{Session: belay.SystemSession, Stream: w.stream, After: w.seq, Epoch: w.epoch}
	for i, e := range batch {
		ids, data := e.fact()
		b.Events = append(b.Events, event.Envelope{Stream: w.stream, Seq: w.seq + 1 + int64(i), Time: e.at.UTC().Truncate(time.Microsecond), Runtime: w.st.Runtime(), IDs: ids, Data: data})
	}
	if _, err := w.st.Append(ctx, b); err != nil {
		return err
	}
	w.seq += int64(len(batch))
	return nil
}

func (w *auditWriter) release(ctx context.Context) {
	if w.epoch != 0 {
		w.st.Release(context.WithoutCancel(ctx), belay.SessionID(w.stream), w.epoch) //nolint:errcheck // the lease ends by itself
	}
}

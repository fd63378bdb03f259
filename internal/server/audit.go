package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/store"
)

// auditor records requests to the server in a store: the caller, the operation
// and the outcome. The facts are in a stream of this process in the system
// session; what comes at the same time is written together.
type auditor struct {
	st     store.Store
	owner  store.Owner
	stream belay.StreamID
	log    *slog.Logger
	in     chan written
	done   chan struct{}

	mu      sync.Mutex
	closed  bool
	senders sync.WaitGroup
	refused refusals
	now     func() time.Time
}

// entry is one line of the record.
type entry struct {
	principal string
	command   string
	code      belay.Code // "accepted", or why it was refused
	message   string
	request   belay.CommandID
	at        time.Time
	count     int // how many requests it counts for, if several

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
	return ids, event.ChannelMessage{Kind: "audit", Principal: e.principal, Command: event.CutText(e.command, 200), Code: string(e.code), Message: event.CutText(e.message, 500), Count: e.count}
}

type written struct {
	entry
	ack chan error
}

const (
	auditLease = 15 * time.Second
	auditBatch = 200
)

func newAuditor(st store.Store, now func() time.Time, log *slog.Logger) *auditor {
	owner := store.ThisProcess()
	return &auditor{st: st, owner: owner, stream: belay.StreamID(belay.KindProcess + "/" + owner.ID), log: log,
		in: make(chan written, auditBatch), done: make(chan struct{}), refused: newRefusals(), now: now}
}

// run writes until close is called, and what came before that.
func (a *auditor) run(ctx context.Context) {
	defer close(a.done)
	w := &auditWriter{auditor: a}
	var over <-chan time.Time // of an interval in which refusals are added up
	for {
		select {
		case first, ok := <-a.in:
			if !ok {
				w.sums(ctx, true)
				w.release(ctx)
				return
			}
			w.group(ctx, first)
			continue
		case <-a.refused.begun:
		case <-over:
			w.sums(ctx, false)
		}
		over = nil
		if next := a.refused.next(); !next.IsZero() {
			over = time.After(max(next.Sub(a.now()), strangersEvery))
		}
	}
}

// group writes an entry with what waits behind it.
func (w *auditWriter) group(ctx context.Context, first written) {
	batch := []written{first}
	for more := true; more && len(batch) < auditBatch; {
		select {
		case e, ok := <-w.in:
			if more = ok; ok {
				batch = append(batch, e)
			}
		default:
			more = false
		}
	}
	entries := make([]entry, len(batch))
	for i, e := range batch {
		entries[i] = e.entry
	}
	err := w.write(ctx, entries)
	for _, e := range batch {
		e.ack <- err
	}
}

// sums writes the refusals that were added up in intervals that are over, or in
// all. What can't be written is kept for the next time.
func (w *auditWriter) sums(ctx context.Context, all bool) {
	due := w.refused.due(w.now(), all)
	for part := range slices.Chunk(due, auditBatch) {
		entries := make([]entry, len(part))
		for i := range part {
			entries[i] = part[i].entry()
		}
		if w.write(ctx, entries) != nil {
			w.refused.back(part)
		}
	}
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

// Note records a fact about a channel.
func (a *auditor) Note(ctx context.Context, ids belay.IDs, p event.Payload) error {
	return a.record(ctx, entry{at: a.now(), data: p, ids: ids})
}

// Done records how a command ended. Refused reads of a kind are recorded together.
func (a *auditor) Done(ctx context.Context, c *app.Call, d app.Outcome) error {
	e := entry{principal: c.By.String(), command: c.Command, code: d.Code, request: d.Request, message: cmp.Or(d.Subject, string(d.Session)), at: a.now()}
	if d.Reads {
		a.reader(ctx, e, c.Command)
		return nil
	}
	a.log.Info("command", "principal", e.principal, "command", e.command, "code", string(e.code), "request", string(e.request), "session", string(d.Session), "subject", d.Subject)
	return a.record(ctx, e)
}

// auditWriter is the auditor's hold on its stream.
type auditWriter struct {
	*auditor
	seq     int64
	epoch   int64
	claimed time.Time
}

func (w *auditWriter) write(ctx context.Context, batch []entry) (err error) {
	defer func() {
		if err != nil {
			w.log.Error("audit", "error", err.Error(), "entries", len(batch))
		}
	}()
	ctx = context.WithoutCancel(ctx)
	err = w.try(ctx, batch)
	if errors.Is(err, store.ErrStale) {
		w.claimed = time.Time{}
		err = w.try(ctx, batch)
	}
	return err
}

func (w *auditWriter) try(ctx context.Context, batch []entry) error {
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

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
	st      store.Store
	owner   store.Owner
	stream  belay.StreamID
	log     *slog.Logger
	in      chan written
	quit    chan struct{}
	close   func()        // takes no more, and waits until everything is written
	done    chan struct{} // closed: everything is written
	refused refusals
	now     func() time.Time

	// The hold on the stream, which run alone uses.
	seq     int64
	epoch   int64
	claimed time.Time
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
	a := &auditor{st: st, owner: owner, stream: belay.StreamID(belay.KindProcess + "/" + owner.ID), log: log,
		in: make(chan written), quit: make(chan struct{}), done: make(chan struct{}), refused: newRefusals(), now: now}
	a.close = sync.OnceFunc(func() {
		close(a.quit)
		<-a.done
	})
	return a
}

// run writes until close is called, and what came before that.
func (a *auditor) run(ctx context.Context) {
	defer close(a.done)
	var over <-chan time.Time // of an interval in which refusals are added up
	for {
		select {
		case first := <-a.in:
			a.group(ctx, first)
			continue
		case <-a.quit:
			for a.group(ctx) > 0 {
			}
			a.sums(ctx, true)
			a.release(ctx)
			return
		case <-a.refused.begun:
		case <-over:
			a.sums(ctx, false)
		}
		over = nil
		if next := a.refused.next(); !next.IsZero() {
			over = time.After(max(next.Sub(a.now()), strangersEvery))
		}
	}
}

// group writes entries with those that wait behind them, and returns how many it wrote.
func (a *auditor) group(ctx context.Context, batch ...written) int {
	for more := true; more && len(batch) < auditBatch; {
		select {
		case e := <-a.in:
			batch = append(batch, e)
		default:
			more = false
		}
	}
	if len(batch) == 0 {
		return 0
	}
	entries := make([]entry, len(batch))
	for i, e := range batch {
		entries[i] = e.entry
	}
	err := a.write(ctx, entries)
	for _, e := range batch {
		e.ack <- err
	}
	return len(batch)
}

// sums writes the refusals that were added up in intervals that are over, or in
// all. What can't be written is kept for the next time.
func (a *auditor) sums(ctx context.Context, all bool) {
	due := a.refused.due(a.now(), all)
	for part := range slices.Chunk(due, auditBatch) {
		entries := make([]entry, len(part))
		for i := range part {
			entries[i] = part[i].entry()
		}
		if a.write(ctx, entries) != nil {
			a.refused.back(part)
		}
	}
}

// record returns when the entry is durable.
func (a *auditor) record(ctx context.Context, e entry) error {
	ack := make(chan error, 1)
	select {
	case a.in <- written{e, ack}:
	case <-a.done:
		return belay.Errorf(belay.CodeDraining, "the server is about to end")
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

func (a *auditor) write(ctx context.Context, batch []entry) (err error) {
	defer func() {
		if err != nil {
			a.log.Error("audit", "error", err.Error(), "entries", len(batch))
		}
	}()
	ctx = context.WithoutCancel(ctx)
	err = a.try(ctx, batch)
	if errors.Is(err, store.ErrStale) {
		a.claimed = time.Time{}
		err = a.try(ctx, batch)
	}
	return err
}

func (a *auditor) try(ctx context.Context, batch []entry) error {
	if time.Since(a.claimed) > auditLease/3 {
		epoch, err := a.st.Claim(ctx, belay.SessionID(a.stream), a.owner, auditLease)
		if err != nil {
			return err
		}
		a.epoch, a.claimed = epoch, time.Now()
	}
	b := store.Batch{Session: belay.SystemSession, Stream: a.stream, After: a.seq, Epoch: a.epoch}
	for i, e := range batch {
		ids, data := e.fact()
		b.Events = append(b.Events, event.Envelope{Stream: a.stream, Seq: a.seq + 1 + int64(i), Time: e.at.UTC().Truncate(time.Microsecond), Runtime: a.st.Runtime(), IDs: ids, Data: data})
	}
	if _, err := a.st.Append(ctx, b); err != nil {
		return err
	}
	a.seq += int64(len(batch))
	return nil
}

func (a *auditor) release(ctx context.Context) {
	if a.epoch != 0 {
		a.st.Release(context.WithoutCancel(ctx), belay.SessionID(a.stream), a.epoch) //nolint:errcheck // the lease ends by itself
	}
}

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// Stored yields a session's facts in the order of the log.
func (l *factLog) Stored(ctx context.Context, session belay.SessionID, upTo store.Position) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		a := archived{db: l.access, chains: store.NewChains(session)}
		last, err := a.bounds(ctx, session, int64(upTo))
		if err != nil {
			yield(store.Stored{}, err)
			return
		}
		for e, err := range l.follow(ctx, "pos", "AND pos<=?2 AND +stream IN (SELECT id FROM streams WHERE session=?3)", a.after, last, string(session)) {
			var f store.Stored
			if err == nil {
				f, err = a.next(ctx, e)
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// archived walks the facts of one session.
type archived struct {
	db     *access
	chains *store.Chains
	after  int64
}

// bounds finds the part of the log in which the session's facts lie. Within it
// rows are read in order and those of other sessions left out: sorting a long
// session by position for each portion would cost more.
func (a *archived) bounds(ctx context.Context, session belay.SessionID, upTo int64) (last int64, err error) {
	const end = "(SELECT pos FROM events WHERE stream=s.id ORDER BY seq"
	var first, newest sql.NullInt64
	_, err = a.db.one(ctx, "SELECT min("+end+" LIMIT 1)), max("+end+" DESC LIMIT 1)) FROM streams s WHERE session=?", []any{string(session)}, &first, &newest)
	a.after = max(first.Int64-1, 0)
	return min(newest.Int64, upTo), err
}

func (a *archived) next(ctx context.Context, e *layout.Event) (f store.Stored, err error) {
	n, err := a.db.named(ctx, e)
	if err != nil {
		return f, err
	}
	f = store.Stored{Stream: n.stream, Row: e.Row}
	head, err := a.chains.Add(&f)
	if err == nil && string(head.Hash[:]) != string(e.Hash) {
		err = store.Damaged(store.RowName(f.Stream, f.Row.Seq), "a fact isn't what was written")
	}
	return f, err
}

// Restore makes a session of facts that another store kept.
func (del *deletions) Restore(ctx context.Context, r store.Restoration) error {
	orders, err := layout.PackOrders(r.Inbox)
	if err != nil {
		return err
	}
	if err := del.finishDeletion(ctx, r.Session); err != nil {
		return err
	}
	if r.Keep != nil {
		if err := r.Keep(ctx); err != nil {
			return err
		}
	}
	return del.do(ctx, &restoreOp{r: &r, orders: orders})
}

type restoreOp struct {
	r      *store.Restoration
	orders []layout.Order
	facts  int64
}

// apply writes everything or nothing: what it wrote before a refusal is taken
// back, while the rest of the transaction stays.
func (o *restoreOp) apply(w *writer) error {
	if err := w.exec("SAVEPOINT restore"); err != nil {
		return err
	}
	types := len(w.fresh)
	answer := o.write(w)
	if _, refused := errors.AsType[refusal](answer); refused {
		for _, name := range w.fresh[types:] {
			delete(w.types, name)
		}
		w.fresh = w.fresh[:types]
		if err := w.exec("ROLLBACK TO restore"); err != nil {
			return err
		}
	} else if answer != nil {
		return answer
	}
	return cmp.Or(w.exec("RELEASE restore"), answer)
}

func (o *restoreOp) write(w *writer) error {
	if err := w.lift(o.r.Session); err != nil {
		return err
	}
	streams, err := o.streams(w)
	if err != nil {
		return err
	}
	if err := o.writeFacts(w, streams); err != nil {
		return err
	}
	for _, s := range streams {
		if err := w.save(s); err != nil {
			return err
		}
	}
	return o.writeInbox(w)
}

// streams makes the rows of the session's streams, none of which may exist.
func (o *restoreOp) streams(w *writer) (map[belay.StreamID]*layout.Stream, error) {
	streams := map[belay.StreamID]*layout.Stream{}
	names := make([]belay.StreamID, 0, len(o.r.Heads)+len(o.orders))
	for _, h := range o.r.Heads {
		names = append(names, h.Stream)
	}
	for _, p := range o.orders {
		names = append(names, p.Order.Stream)
	}
	for _, name := range names {
		if streams[name] != nil {
			continue
		}
		_, found, err := w.stream(name)
		if err == nil && found {
			err = refusal{store.Exists(name)}
		}
		if err != nil {
			return nil, err
		}
		s := layout.NewStream(name, o.r.Session)
		lane := o.r.Lanes[name]
		s.Wake = store.Micros(lane.Wake)
		if lane.Runnable {
			s.Runnable = 1
		}
		if err := w.save(&s); err != nil {
			return nil, err
		}
		streams[name] = &s
	}
	return streams, nil
}

func (o *restoreOp) writeFacts(w *writer, streams map[belay.StreamID]*layout.Stream) error {
	chains := store.NewChains(o.r.Session)
	o.facts = 0
	for f, err := range o.r.Facts {
		if err != nil {
			return refusal{err}
		}
		s := streams[f.Stream]
		if s == nil {
			return refusal{store.Damaged(string(f.Stream), "no head names this stream")}
		}
		head, err := chains.Add(&f)
		if err != nil {
			return refusal{err}
		}
		s.Seq, s.Time, s.Hash = head.Seq, f.Row.Time, head.Hash
		w.grown += len(f.Row.Data)
		if _, err := w.insertEvents([]link{{s.ID, &f.Row, &head.Hash}}); err != nil {
			return err
		}
		o.facts++
	}
	if err := chains.End(o.r.Heads); err != nil {
		return refusal{err}
	}
	return nil
}

// writeInbox brings the commands back that wait for an answer. Their ids may be
// known here from the time before the session was deleted.
func (o *restoreOp) writeInbox(w *writer) error {
	for i := range o.orders {
		p := &o.orders[i]
		known, err := w.sameAs(*p, nil)
		switch {
		case err != nil || known == nil:
		case string(known) != string(p.Same):
			err = refusal{belay.Errorf(belay.CodeIDConflict, "the command id is taken by another command").At(string(p.Order.ID))}
		default:
			err = w.exec("DELETE FROM commands WHERE id=?", string(p.Order.ID))
		}
		if err == nil {
			err = w.enqueue(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *restoreOp) committed(w *writer) {
	w.db.stats.appends.Add(1)
	w.db.stats.events.Add(o.facts)
}

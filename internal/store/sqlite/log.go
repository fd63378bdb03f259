package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// factLog is the log of facts: the only way in, and what reads and follows it.
type factLog struct {
	*access
	watch watch
}

// A read takes at most this much per query, so that neither a read transaction
// nor much memory is held while the consumer works.
const (
	pageSize     = 512
	portionBytes = 1 << 20
)

// errEnough ends a query early.
var errEnough = errors.New("enough rows")

// query runs a read and hands over its rows. Queries are short, so they aren't
// interrupted half-way: ctx is looked at before.
func (a *access) query(ctx context.Context, query string, args []any, each func(*sql.Rows) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.reading.RLock()
	defer a.reading.RUnlock()
	if a.closed.Load() {
		return errClosed()
	}
	defer func() { err = a.wrap(err, "read") }()
	a.stats.reads.Add(1)
	st, err := a.stmts.get(a.life, a.readers, query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(a.life, args...)
	if err = layout.EachRow(rows, err, each); err == errEnough {
		return nil
	}
	return err
}

// events runs a query that selects eventColumns and takes one portion of it.
func (a *access) events(ctx context.Context, query string, args ...any) (part []layout.Event, more bool, err error) {
	size := 0
	err = a.query(ctx, query, args, func(rows *sql.Rows) error {
		var e layout.Event
		if err := e.Scan(rows.Scan); err != nil {
			return err
		}
		part = append(part, e)
		if size += len(e.Row.Data) + 128; size >= portionBytes {
			more = true
			return errEnough
		}
		return nil
	})
	return part, more || len(part) == pageSize, err
}

// one reads the one row of a query.
func (a *access) one(ctx context.Context, query string, args []any, into ...any) (found bool, err error) {
	err = a.query(ctx, query, args, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(into...)
	})
	return found, err
}

// follow yields facts in the order of a column, pos or seq, each behind the one
// before it. The condition may say more about them, in parameters from ?2 on.
func (a *access) follow(ctx context.Context, column, condition string, after int64, args ...any) iter.Seq2[*layout.Event, error] {
	query := "SELECT " + layout.EventColumns + " FROM events WHERE " + column + ">?1 " + condition + " ORDER BY " + column + " LIMIT 512"
	return func(yield func(*layout.Event, error) bool) {
		for more := true; more; {
			var part []layout.Event
			var err error
			if part, more, err = a.events(ctx, query, append([]any{after}, args...)...); err != nil {
				yield(nil, err)
				return
			}
			for i := range part {
				at := part[i].Pos
				if column == "seq" {
					at = part[i].Row.Seq
				}
				if at <= after { // it would never end
					yield(nil, outOfOrder(a.path))
					return
				}
				after = at
				if !yield(&part[i], nil) {
					return
				}
			}
		}
	}
}

// Read yields a stream's facts after a sequence. Each is checked against the
// hash chain, the first one against the fact before it.
func (l *factLog) Read(ctx context.Context, s belay.StreamID, after int64) iter.Seq2[event.Envelope, error] {
	return func(yield func(event.Envelope, error) bool) {
		r := reader{db: l.access, stream: s, after: max(after, 0)}
		if found, err := r.start(ctx); err != nil {
			yield(event.Envelope{}, err)
			return
		} else if !found {
			return
		}
		for row, err := range l.follow(ctx, "seq", "AND stream=?2", r.after, r.number) {
			var e event.Envelope
			if err == nil {
				e, err = r.check(ctx, row)
			}
			if l.isGone(ctx, row, err) {
				err = store.ErrNotFound // its session is being deleted
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// reader walks one stream.
type reader struct {
	db      *access
	stream  belay.StreamID
	session belay.SessionID
	number  int64
	after   int64 // the last sequence that was read
	hash    [32]byte
	buf     []byte
}

// start finds the stream and the hash that the first fact follows.
func (r *reader) start(ctx context.Context) (found bool, err error) {
	found, err = r.db.one(ctx, "SELECT id, session FROM streams WHERE name=?", []any{string(r.stream)}, &r.number, &r.session)
	if err != nil || !found {
		return false, err
	}
	var hash []byte
	if r.hash = store.Genesis(r.session, r.stream); r.after > 0 {
		_, err = r.db.one(ctx, "SELECT hash FROM events WHERE stream=? AND seq=?", []any{r.number, r.after}, &hash)
		copy(r.hash[:], hash)
	}
	return true, err
}

func (r *reader) check(ctx context.Context, e *layout.Event) (event.Envelope, error) {
	var err error
	if e.Row.Type, err = r.db.typeName(ctx, e.TypeNumber); err != nil {
		return event.Envelope{}, err
	}
	r.hash, r.buf = store.Link(r.hash, &e.Row, r.buf)
	r.after++
	if string(r.hash[:]) != string(e.Hash) || e.Row.Seq != r.after {
		return event.Envelope{}, store.Damaged(store.RowName(r.stream, r.after), "a fact isn't what was written")
	}
	return e.Row.Unpack(r.db.runtime, r.session, r.stream)
}

// Scan yields the facts of all streams after a position.
func (l *factLog) Scan(ctx context.Context, after store.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for row, err := range l.follow(ctx, "pos", "", int64(after)) {
			var rec store.Record
			if err == nil {
				rec, err = l.record(ctx, row)
			}
			if l.isGone(ctx, row, err) {
				continue // its session is being deleted
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func outOfOrder(where string) error { return store.Damaged(where, "rows are out of order") }

func (a *access) record(ctx context.Context, e *layout.Event) (rec store.Record, err error) {
	rec.Position = store.Position(e.Pos)
	in, err := a.named(ctx, e)
	if err == nil {
		rec.Event, err = e.Row.Unpack(a.runtime, in.session, in.stream)
	}
	return rec, err
}

// Head is a stream's end.
func (l *factLog) Head(ctx context.Context, name belay.StreamID) (store.Head, error) {
	var s layout.Stream
	found := false
	err := l.query(ctx, "SELECT "+layout.StreamColumns+" FROM streams WHERE name=?", []any{string(name)}, func(rows *sql.Rows) error {
		found = true
		return s.Scan(rows.Scan)
	})
	if err != nil {
		return store.Head{}, err
	}
	if !found || s.Seq == 0 {
		return store.Head{}, store.ErrNotFound
	}
	return store.Head{Stream: name, Session: s.Session, Seq: s.Seq, Hash: s.Hash, Time: store.FromMicros(s.Time)}, nil
}

// End is the position of the last fact.
func (a *access) End(ctx context.Context) (end store.Position, err error) {
	_, err = a.one(ctx, "SELECT max(coalesce((SELECT max(pos) FROM events),0), coalesce((SELECT max(pos) FROM tombstones),0))", nil, &end)
	return end, err
}

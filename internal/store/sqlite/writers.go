package sqlite

import (
	"context"
	"database/sql"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// A claim on a workspace is live while the ownership it was made under is: the
// owner's row has its epoch. So it need not be renewed or released.
const writersQuery = "SELECT w.session, w.path, o.owner, o.host, o.pid, o.start, o.since, o.epoch, o.lease " +
	"FROM writers w JOIN owners o ON o.key=w.session AND o.epoch=w.epoch WHERE o.owner<>'' ORDER BY w.session"

type writerRow struct {
	store.Writer
	owner ownerRow
}

func (r *writerRow) scan(rows *sql.Rows) error {
	err := rows.Scan(append([]any{&r.Session, &r.Path}, r.owner.into()...)...)
	r.Owner = r.owner.o
	r.Owner.Since = store.FromMicros(r.owner.since)
	return err
}

type claimWriterOp struct {
	session belay.SessionID
	epoch   int64
	path    string
	shared  bool
}

// ClaimWriter makes a session a writer of a workspace.
func (own *owners) ClaimWriter(ctx context.Context, session belay.SessionID, epoch int64, path string, shared bool) error {
	return own.do(ctx, &claimWriterOp{session: session, epoch: epoch, path: path, shared: shared})
}

func (c *claimWriterOp) apply(w *writer) error {
	epoch, owned, err := w.epoch(string(c.session))
	if err != nil {
		return err
	}
	if !owned || epoch != c.epoch {
		return refusal{store.ErrStale}
	}
	if err := c.look(w); err != nil {
		return err
	}
	return c.write(w)
}

// look refuses a claim on a workspace that another session writes: the first of
// them by id.
func (c *claimWriterOp) look(w *writer) error {
	if c.shared {
		return nil
	}
	return w.each(writersQuery, nil, func(rows *sql.Rows) error {
		var r writerRow
		err := r.scan(rows)
		if err == nil && r.Session != c.session && store.Overlap(r.Path, c.path) && r.owner.live(w.now(), w.db.o.Alive) {
			err = refusal{&store.WriterError{Writer: r.Writer}}
		}
		return err
	})
}

// write makes the claim. Those that have ended stand there without use until then.
func (c *claimWriterOp) write(w *writer) error {
	if err := w.exec("DELETE FROM writers WHERE NOT EXISTS (SELECT 1 FROM owners o WHERE o.key=writers.session AND o.epoch=writers.epoch AND o.owner<>'')"); err != nil {
		return err
	}
	return w.exec("INSERT INTO writers (session, epoch, path) VALUES (?,?,?) ON CONFLICT (session) DO UPDATE SET epoch=excluded.epoch, path=excluded.path",
		string(c.session), c.epoch, c.path)
}

// Writers lists who may change a workspace.
func (own *owners) Writers(ctx context.Context, path string) (found []store.Writer, err error) {
	err = own.query(ctx, writersQuery, nil, func(rows *sql.Rows) error {
		var r writerRow
		if err := r.scan(rows); err != nil {
			return err
		}
		if store.Overlap(r.Path, path) && r.owner.live(own.o.Now(), own.o.Alive) {
			found = append(found, r.Writer)
		}
		return nil
	})
	return found, err
}

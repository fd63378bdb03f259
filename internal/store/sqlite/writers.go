package sqlite

import (
	"context"
	"database/sql"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// A claim on a workspace is live while the ownership it was made under is: the
// owner's row has its epoch. So nobody needs to renew it or to give it back.
const writersQuery = "SELECT w.session, w.path, o.owner, o.host, o.pid, o.start, o.since, o.epoch, o.lease " +
	"FROM writers w JOIN owners o ON o.key=w.session AND o.epoch=w.epoch WHERE o.owner<>'' ORDER BY w.session"

type writerRow struct {
	session belay.SessionID
	path    string
	owner   ownerRow
}

func (r *writerRow) scan(rows *sql.Rows) error {
	return rows.Scan(append([]any{&r.session, &r.path}, r.owner.into()...)...)
}

func (r *writerRow) writer() store.Writer {
	o := r.owner.o
	o.Since = store.FromMicros(r.owner.since)
	return store.Writer{Session: r.session, Path: r.path, Owner: o}
}

type claimWriterOp struct {
	session belay.SessionID
	epoch   int64
	path    string
	shared  bool
}

// ClaimWriter makes a session a writer of a workspace.
func (db *DB) ClaimWriter(ctx context.Context, session belay.SessionID, epoch int64, path string, shared bool) error {
	return db.do(ctx, &claimWriterOp{session, epoch, path, shared})
}

func (c *claimWriterOp) apply(w *writer) (refused, broken error) {
	found, err := w.row("SELECT 1 FROM owners WHERE key=? AND epoch=? AND owner<>''", []any{string(c.session), c.epoch}, new(int))
	if err != nil {
		return nil, err
	}
	if !found {
		return store.ErrStale, nil
	}
	others, err := w.writers(c.path)
	if err != nil {
		return nil, err
	}
	for _, o := range others {
		if o.Session != c.session && !c.shared {
			return &store.WriterError{Writer: o}, nil
		}
	}
	// Claims that ended with their ownership are no use to anybody.
	if err := w.exec("DELETE FROM writers WHERE NOT EXISTS (SELECT 1 FROM owners o WHERE o.key=writers.session AND o.epoch=writers.epoch AND o.owner<>'')"); err != nil {
		return nil, err
	}
	return nil, w.exec("INSERT INTO writers (session, epoch, path) VALUES (?,?,?) ON CONFLICT (session) DO UPDATE SET epoch=excluded.epoch, path=excluded.path",
		string(c.session), c.epoch, c.path)
}

// writers reads them inside the transaction.
func (w *writer) writers(path string) (found []store.Writer, err error) {
	rows, err := w.conn.QueryContext(w.db.life, writersQuery)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r writerRow
		if err := r.scan(rows); err != nil {
			return nil, err
		}
		if store.Overlap(r.path, path) && r.owner.live(w.now(), w.db.o.Alive) {
			found = append(found, r.writer())
		}
	}
	return found, rows.Err()
}

// Writers lists who may change a workspace.
func (db *DB) Writers(ctx context.Context, path string) (found []store.Writer, err error) {
	err = db.query(ctx, writersQuery, nil, func(rows *sql.Rows) error {
		var r writerRow
		if err := r.scan(rows); err != nil {
			return err
		}
		if store.Overlap(r.path, path) && r.owner.live(db.o.Now(), db.o.Alive) {
			found = append(found, r.writer())
		}
		return nil
	})
	return found, err
}

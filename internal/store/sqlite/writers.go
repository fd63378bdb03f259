package sqlite

import (
	"context"
	"database/sql"
	"slices"

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
	first   bool // the claims weren't known before
}

// ClaimWriter makes a session a writer of a workspace.
func (own *owners) ClaimWriter(ctx context.Context, session belay.SessionID, epoch int64, path string, shared bool) error {
	return own.do(ctx, &claimWriterOp{session: session, epoch: epoch, path: path, shared: shared})
}

func (c *claimWriterOp) apply(w *writer) (refused, broken error) {
	epoch, owned, err := w.epoch(string(c.session))
	if err != nil {
		return nil, err
	}
	if !owned || epoch != c.epoch {
		return store.ErrStale, nil
	}
	if refused, broken = c.look(w); refused != nil || broken != nil {
		return refused, broken
	}
	return nil, c.write(w)
}

// look makes the claims known, and refuses what another session's stands against.
func (c *claimWriterOp) look(w *writer) (refused, broken error) {
	var err error
	if c.first, err = w.readClaims(); err != nil || c.shared {
		return nil, err
	}
	return w.vacant(c)
}

func (c *claimWriterOp) write(w *writer) error {
	if c.first { // claims whose owners died stand there without use; the others are deleted as they end
		if err := w.exec("DELETE FROM writers WHERE NOT EXISTS (SELECT 1 FROM owners o WHERE o.key=writers.session AND o.epoch=writers.epoch AND o.owner<>'')"); err != nil {
			return err
		}
	}
	w.writers[c.session] = writerClaim{c.epoch, c.path}
	return w.exec("INSERT INTO writers (session, epoch, path) VALUES (?,?,?) ON CONFLICT (session) DO UPDATE SET epoch=excluded.epoch, path=excluded.path",
		string(c.session), c.epoch, c.path)
}

// writerClaim is a row of the table, its session aside. It has ended when its
// ownership has.
type writerClaim struct {
	epoch int64
	path  string
}

// readClaims makes the claims known, and reports whether it had to.
func (h *heads) readClaims() (read bool, err error) {
	if h.writers != nil {
		return false, nil
	}
	claims := map[belay.SessionID]writerClaim{}
	err = h.each("SELECT session, epoch, path FROM writers", nil, func(rows *sql.Rows) error {
		var session belay.SessionID
		var claim writerClaim
		err := rows.Scan(&session, &claim.epoch, &claim.path)
		claims[session] = claim
		return err
	})
	if err != nil {
		return false, err
	}
	h.writers = claims
	return true, nil
}

// vacant refuses a claim on a workspace that another session writes: the first
// of them by id.
func (w *writer) vacant(c *claimWriterOp) (refused, broken error) {
	var others []belay.SessionID
	for session, claim := range w.writers {
		if session != c.session && store.Overlap(claim.path, c.path) {
			others = append(others, session)
		}
	}
	slices.Sort(others)
	for _, session := range others {
		claim := w.writers[session]
		r := writerRow{session: session, path: claim.path}
		found, err := w.row("SELECT "+ownerColumns+" FROM owners WHERE key=?", []any{string(session)}, r.owner.into()...)
		if err != nil {
			return nil, err
		}
		if !found || r.owner.o.ID == "" || r.owner.o.Epoch != claim.epoch {
			delete(w.writers, session) // it ended
			continue
		}
		if r.owner.live(w.now(), w.db.o.Alive) {
			return &store.WriterError{Writer: r.writer()}, nil
		}
	}
	return nil, nil
}

// Writers lists who may change a workspace.
func (own *owners) Writers(ctx context.Context, path string) (found []store.Writer, err error) {
	err = own.query(ctx, writersQuery, nil, func(rows *sql.Rows) error {
		var r writerRow
		if err := r.scan(rows); err != nil {
			return err
		}
		if store.Overlap(r.path, path) && r.owner.live(own.o.Now(), own.o.Alive) {
			found = append(found, r.writer())
		}
		return nil
	})
	return found, err
}

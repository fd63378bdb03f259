package sqlite

import (
	"bytes"
	"context"
	"database/sql"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// grave reads a session's tombstone inside the transaction.
func (w *writer) grave(session belay.SessionID) (g layout.Tombstone, found bool, err error) {
	found, err = w.checked("SELECT "+layout.TombstoneColumns+" FROM tombstones WHERE session=?", string(session),
		func(row *sql.Row) error { return g.Scan(row.Scan) })
	return g, found, err
}

// buried is the last epoch of a session that was restored, 0 of one that was
// never deleted, and a refusal for one that is.
func (w *writer) buried(session belay.SessionID) (epoch int64, err error) {
	g, found, err := w.grave(session)
	if err == nil && found && !g.Restored {
		err = refusal{store.IsDeleted(session)}
	}
	return g.Epoch, err
}

// Tombstones lists deletions after a position.
func (del *deletions) Tombstones(ctx context.Context, after store.Position) (all []store.Tombstone, err error) {
	graves, err := del.graves(ctx, "pos>?", int64(after))
	for _, g := range graves {
		all = append(all, g.Tombstone)
	}
	return all, err
}

// graves lists rows of the tombstones, in the order of their positions.
func (a *access) graves(ctx context.Context, where string, args ...any) (all []layout.Tombstone, err error) {
	err = a.query(ctx, "SELECT "+layout.TombstoneColumns+" FROM tombstones WHERE "+where+" ORDER BY pos", args, func(rows *sql.Rows) error {
		var g layout.Tombstone
		err := g.Scan(rows.Scan)
		all = append(all, g)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// isGone reports whether an error of a fact that was read is only that the fact
// belongs to a deletion that continues, or was over before its stream's name was
// looked up.
func (a *access) isGone(ctx context.Context, e *layout.Event, damage error) bool {
	if e == nil || belay.CodeOf(damage) != belay.CodeStoreDamaged {
		return false
	}
	unfinished, err := a.unfinished(ctx)
	if err != nil || unfinished[e.Stream] {
		return err == nil
	}
	var hash []byte
	_, err = a.one(ctx, "SELECT hash FROM events WHERE pos=?", []any{e.Pos}, &hash)
	return err == nil && !bytes.Equal(hash, e.Hash)
}

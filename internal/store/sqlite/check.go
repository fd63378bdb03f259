package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"

	"github.com/belay-run/belay/internal/store"
)

// tail is how many of the last facts a check follows along their chains.
const tail = 4096

// mark is the file that says: a write or a sync failed here, check before
// writing again.
func (db *DB) mark() string { return db.path + "-check" }

// leaveMark is best effort: the disk has just failed.
func (db *DB) leaveMark() {
	f, err := db.o.FS.Create(db.mark())
	if err != nil {
		return
	}
	_ = f.Sync()
	_ = f.Close()
	_ = db.o.FS.SyncDir(db.tenant)
}

// recover checks a store that was left after a failed write. The log is folded
// into the database then, because pages whose sync failed may be in memory only.
func (db *DB) recover() error {
	if _, err := os.Stat(db.mark()); err != nil || db.o.ReadOnly {
		return nil
	}
	if err := db.Check(db.life); err != nil {
		return err
	}
	if _, _, err := db.writer.wal("TRUNCATE"); err != nil {
		return db.wrap(err, "fold the log into the database")
	}
	if err := db.o.FS.Remove(db.mark()); err != nil {
		return fileError(db.mark(), err)
	}
	return nil
}

// Check reports whether the database is whole as far as it can be seen from
// inside: SQLite's own structure, every stream's row against its last fact,
// and the hash chains of the last facts. It reads and changes nothing.
func (db *DB) Check(ctx context.Context) error {
	if err := db.checkStructure(ctx); err != nil {
		return err
	}
	if err := db.checkHeads(ctx); err != nil {
		return err
	}
	return db.checkTail(ctx)
}

func (db *DB) checkStructure(ctx context.Context) error {
	var found []string
	err := db.query(ctx, "PRAGMA integrity_check(5)", nil, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		found = append(found, line)
		return err
	})
	if err == nil && (len(found) != 1 || found[0] != "ok") {
		err = store.Damaged(db.path, "the database file is damaged: "+strings.Join(found, "; "))
	}
	return err
}

func (db *DB) checkHeads(ctx context.Context) error {
	return db.query(ctx, "SELECT s.name, s.session, s.seq, s.time, s.hash, s.runnable, s.wake, s.sum, coalesce(e.hash, s.hash), "+
		"(SELECT count(*) FROM events x WHERE x.stream=s.id AND x.seq>s.seq), e.pos IS NOT NULL "+
		"FROM streams s LEFT JOIN events e ON e.stream=s.id AND e.seq=s.seq", nil,
		func(rows *sql.Rows) error {
			var s streamRow
			var hash, last []byte
			var sum, beyond int64
			var there bool
			if err := rows.Scan(&s.name, &s.session, &s.seq, &s.time, &hash, &s.runnable, &s.wake, &sum, &last, &beyond, &there); err != nil {
				return err
			}
			if err := s.load(hash, sum); err != nil {
				return err
			}
			if string(last) != string(hash) || beyond > 0 || there != (s.seq > 0) {
				return store.Damaged(store.RowName(s.name, s.seq), "a stream's row and its last fact differ")
			}
			return nil
		})
}

// checkTail recomputes the chain of the newest facts. Each follows from the
// hash of the fact before it in its stream.
func (db *DB) checkTail(ctx context.Context) error {
	end, err := db.End(ctx)
	if err != nil {
		return err
	}
	after := int64(max(end-tail, 0))
	var buf []byte
	for more := true; more; {
		var part []eventRow
		part, more, err = db.events(ctx, "SELECT "+eventColumns+" FROM events WHERE pos>? ORDER BY pos LIMIT 512", after)
		if err != nil {
			return err
		}
		for i := range part {
			if part[i].pos <= after {
				return outOfOrder(db.path)
			}
			after = part[i].pos
			if buf, err = db.checkLink(ctx, &part[i], buf); err == nil {
				continue
			}
			if gone, goneErr := db.isGone(ctx, &part[i]); goneErr != nil || !gone {
				return errors.Join(err, goneErr)
			}
		}
	}
	return nil
}

func (db *DB) checkLink(ctx context.Context, e *eventRow, buf []byte) ([]byte, error) {
	n, err := db.streamName(ctx, e.stream)
	if err != nil {
		return buf, err
	}
	if e.row.Type, err = db.typeName(ctx, e.typ); err != nil {
		return buf, err
	}
	prev, found := store.Genesis(n.session, n.stream), e.row.Seq == 1
	if !found {
		err = db.query(ctx, "SELECT hash FROM events WHERE stream=? AND seq=?", []any{e.stream, e.row.Seq - 1}, func(rows *sql.Rows) error {
			var hash []byte
			err := rows.Scan(&hash)
			found = copy(prev[:], hash) == len(prev)
			return err
		})
		if err != nil {
			return buf, err
		}
	}
	hash, buf := store.Link(prev, &e.row, buf)
	if !found || string(hash[:]) != string(e.hash) {
		return buf, store.Damaged(store.RowName(n.stream, e.row.Seq), "a fact isn't what was written")
	}
	return buf, nil
}

// NeedsCheck reports whether a store was left after a failed write and hasn't been
// checked since.
func NeedsCheck(dir string) bool {
	_, err := os.Stat(Path(dir) + "-check")
	return err == nil
}

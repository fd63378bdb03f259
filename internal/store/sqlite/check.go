package sqlite

import (
	"context"
	"database/sql"
	"os"
	"strings"

	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// tail is how many of the last facts a check follows along their chains.
const tail = 4096

// leaveMark is best effort: the disk has just failed.
func (p *place) leaveMark() {
	f, err := p.o.FS.Create(layout.CheckMark(p.path))
	if err != nil {
		return
	}
	_ = f.Sync()
	_ = f.Close()
	_ = p.o.FS.SyncDir(p.tenant)
}

// recover checks a store that was left after a failed write. The log is folded
// into the database then, because pages whose sync failed may be in memory only.
func (db *DB) recover() error {
	if _, err := os.Stat(layout.CheckMark(db.path)); err != nil || db.o.ReadOnly {
		return nil
	}
	if err := db.Check(db.life); err != nil {
		return err
	}
	if _, _, err := db.writer.wal("TRUNCATE"); err != nil {
		return db.wrap(err, "fold the log into the database")
	}
	if err := db.o.FS.Remove(layout.CheckMark(db.path)); err != nil {
		return layout.FileError(layout.CheckMark(db.path), err)
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
	return db.query(ctx, "SELECT s."+strings.ReplaceAll(layout.StreamColumns, ", ", ", s.")+", coalesce(e.hash, s.hash), "+
		"(SELECT count(*) FROM events x WHERE x.stream=s.id AND x.seq>s.seq), e.pos IS NOT NULL "+
		"FROM streams s LEFT JOIN events e ON e.stream=s.id AND e.seq=s.seq", nil,
		func(rows *sql.Rows) error {
			var s layout.Stream
			var last []byte
			var beyond int64
			var there bool
			if err := s.Scan(rows.Scan, &last, &beyond, &there); err != nil {
				return err
			}
			if string(last) != string(s.Hash[:]) || beyond > 0 || there != (s.Seq > 0) {
				return store.Damaged(store.RowName(s.Name, s.Seq), "a stream's row and its last fact differ")
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
	var buf []byte
	for e, err := range db.follow(ctx, "pos", "", int64(max(end-tail, 0))) {
		if err == nil {
			buf, err = db.checkLink(ctx, e, buf)
		}
		if err != nil && !db.isGone(ctx, e, err) {
			return err
		}
	}
	return nil
}

func (db *DB) checkLink(ctx context.Context, e *layout.Event, buf []byte) ([]byte, error) {
	n, err := db.named(ctx, e)
	if err != nil {
		return buf, err
	}
	prev, found := store.Genesis(n.session, n.stream), e.Row.Seq == 1
	if !found {
		var before []byte
		if _, err = db.one(ctx, "SELECT hash FROM events WHERE stream=? AND seq=?", []any{e.Stream, e.Row.Seq - 1}, &before); err != nil {
			return buf, err
		}
		found = copy(prev[:], before) == len(prev)
	}
	hash, buf := store.Link(prev, &e.Row, buf)
	if !found || string(hash[:]) != string(e.Hash) {
		return buf, store.Damaged(store.RowName(n.stream, e.Row.Seq), "a fact isn't what was written")
	}
	return buf, nil
}

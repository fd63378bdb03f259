package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// Compact finishes what deletions left, removes content that nothing has named
// for a day, and gives free pages back to the system. It works on a live store
// in small transactions, between which others write. A dry run only counts.
func (del *deletions) Compact(ctx context.Context, dry bool) (c store.Compacted, err error) {
	if c.Before, err = del.size(); err != nil {
		return c, err
	}
	unfinished, err := del.graves(ctx, "pending<>x''")
	if err != nil {
		return c, err
	}
	c.Deletions = len(unfinished)
	for i := range unfinished {
		if dry {
			break
		}
		if err := del.purge(ctx, &unfinished[i], new(store.Deleted)); err != nil {
			return c, err
		}
	}
	if err := del.collect(ctx, dry, &c); err != nil || dry {
		c.After = c.Before
		return c, err
	}
	for v := (&vacuumOp{}); !v.done; {
		if err := del.do(ctx, v); err != nil {
			return c, err
		}
	}
	if err := del.do(ctx, &truncateOp{}); err != nil {
		return c, err
	}
	c.After, err = del.size()
	return c, err
}

// collect removes the content that nothing names.
func (gc *collector) collect(ctx context.Context, dry bool, c *store.Compacted) error {
	old, sizes, err := gc.oldContents(ctx)
	if err != nil || len(old) == 0 {
		return err
	}
	if dry {
		_, err = gc.markReachable(ctx, old)
	} else {
		c.Contents, _, err = gc.drop(ctx, old, true, gc.markReachable)
	}
	if err != nil {
		return err
	}
	for d, kept := range old {
		if kept {
			continue
		}
		if c.Bytes += sizes[d]; dry {
			c.Contents++
		}
	}
	return nil
}

// oldContents are those that were put more than a day ago, with their sizes.
func (gc *collector) oldContents(ctx context.Context) (old contents, sizes map[[32]byte]int64, err error) {
	old, sizes = contents{}, map[[32]byte]int64{}
	before := store.Micros(gc.o.Now().Add(-contentAge - touchAfter))
	var digest sql.RawBytes
	err = gc.portions(ctx, "SELECT id, digest, at, length(data) FROM blobs WHERE id>? ORDER BY id LIMIT 512", func(rows *sql.Rows) (id int64, err error) {
		var at, size int64
		err = rows.Scan(&id, &digest, &at, &size)
		if d := digestOf(digest); err == nil && at <= before {
			old.add(d)
			sizes[d] = size
		}
		return id, err
	})
	if err != nil {
		return nil, nil, err
	}
	err = layout.EachContent(ctx, gc.blobs, func(d [32]byte, _ string, info fs.FileInfo) error {
		if time.Since(info.ModTime()) > contentAge {
			old.add(d)
			sizes[d] = info.Size()
		}
		return nil
	})
	return old, sizes, err
}

// vacuumPages is how many free pages a transaction gives back.
const vacuumPages = "500"

// vacuumOp gives free pages back until there are none.
type vacuumOp struct{ done bool }

func (v *vacuumOp) apply(w *writer) error {
	if err := w.each("PRAGMA incremental_vacuum("+vacuumPages+")", nil, func(*sql.Rows) error { return nil }); err != nil {
		return err
	}
	w.grown += 500 * 4096
	var free int64
	_, err := w.row("PRAGMA freelist_count", nil, &free)
	v.done = free == 0
	return err
}

// size is that of the store's files.
func (p *place) size() (total int64, err error) {
	for _, path := range []string{p.path, p.path + "-wal"} {
		info, err := os.Stat(path)
		if err == nil {
			total += info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return 0, layout.Unreadable(path, err)
		}
	}
	err = layout.EachContent(p.life, p.blobs, func(_ [32]byte, _ string, info fs.FileInfo) error {
		total += info.Size()
		return nil
	})
	return total, err
}

// Inventory counts what is in the store.
func (db *DB) Inventory(ctx context.Context) (h store.Inventory, err error) {
	h.Runtime, h.Path = db.runtime, db.path
	var first, last sql.NullInt64
	var pages, free int64
	for _, q := range []struct {
		query string
		into  []any
	}{
		{"SELECT count(DISTINCT nullif(session, '" + string(belay.SystemSession) + "')), count(*) FROM streams WHERE seq>0", []any{&h.Sessions, &h.Streams}},
		{"SELECT count(*), (SELECT time FROM events ORDER BY pos LIMIT 1), (SELECT time FROM events ORDER BY pos DESC LIMIT 1) FROM events", []any{&h.Facts, &first, &last}},
		{"SELECT count(*) FROM inbox", []any{&h.Waiting}},
		{"SELECT count(*) FROM blobs", []any{&h.Contents}},
		{"SELECT count(*), count(CASE WHEN pending<>x'' THEN 1 END) FROM tombstones WHERE restored=0", []any{&h.Tombstones, &h.Unfinished}},
		{"PRAGMA page_count", []any{&pages}},
		{"PRAGMA freelist_count", []any{&free}},
	} {
		if _, err := db.one(ctx, q.query, nil, q.into...); err != nil {
			return h, err
		}
	}
	h.First, h.Last = store.FromMicros(first.Int64), store.FromMicros(last.Int64)
	h.Database, h.Free, h.Log = pages*4096, free*4096, db.Stats().WALBytes
	if h.Position, err = db.End(ctx); err != nil {
		return h, err
	}
	err = layout.EachContent(ctx, db.blobs, func(_ [32]byte, _ string, info fs.FileInfo) error {
		h.Files++
		h.FileBytes += info.Size()
		return nil
	})
	h.Contents += h.Files
	return h, err
}

// SessionBytes is about how much each session's facts take.
func (db *DB) SessionBytes(ctx context.Context) (map[belay.SessionID]int64, error) {
	sizes := map[belay.SessionID]int64{}
	err := db.query(ctx, "SELECT s.session, sum(length(e.data)+length(e.ids)+96) FROM events e JOIN streams s ON s.id=e.stream GROUP BY s.session", nil,
		func(rows *sql.Rows) error {
			var session belay.SessionID
			var size int64
			err := rows.Scan(&session, &size)
			sizes[session] = size
			return err
		})
	return sizes, err
}

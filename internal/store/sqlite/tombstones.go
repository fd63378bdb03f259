package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// tombstoneRow is a row of the tombstones.
type tombstoneRow struct {
	store.Tombstone
	pending []int64 // numbers of streams whose rows are still to be removed
}

const graveColumns = "pos, session, time, principal, facts, epoch, restored, heads, pending, sum"

// scan reads a row of graveColumns and checks it.
func (g *tombstoneRow) scan(scan func(...any) error) error {
	var at, sum int64
	var heads, pending []byte
	if err := scan(&g.Position, &g.Session, &at, &g.By, &g.Facts, &g.Epoch, &g.Restored, &heads, &pending, &sum); err != nil {
		return err
	}
	g.Time = store.FromMicros(at)
	var whole bool
	if g.Heads, whole = readHeads(g.Session, heads); whole {
		g.pending, whole = readNumbers(pending)
	}
	if !whole || g.sum() != sum {
		return store.Damaged("tombstones/"+strings.ToValidUTF8(string(g.Session), "?"), "a tombstone isn't what was written")
	}
	return nil
}

// values are the columns' values, in their order.
func (g *tombstoneRow) values() []any {
	restored := int64(0)
	if g.Restored {
		restored = 1
	}
	return []any{int64(g.Position), string(g.Session), store.Micros(g.Time), g.By, g.Facts, g.Epoch, restored,
		appendHeads(g.Heads), appendNumbers(g.pending), g.sum()}
}

// sum covers every column.
func (g *tombstoneRow) sum() int64 {
	b := append([]byte(g.Session), 0)
	b = append(append(b, g.By...), 0)
	for _, n := range [...]int64{int64(g.Position), store.Micros(g.Time), g.Facts, g.Epoch} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	if g.Restored {
		b = append(b, 1)
	}
	b = append(append(b, 0), appendHeads(g.Heads)...)
	return int64(crc32.Checksum(append(append(b, 0), appendNumbers(g.pending)...), castagnoli))
}

func appendHeads(heads []store.Head) []byte {
	b := []byte{}
	for _, h := range heads {
		b = binary.AppendUvarint(b, uint64(len(h.Stream)))
		b = append(b, h.Stream...)
		b = binary.AppendVarint(b, h.Seq)
		b = binary.AppendVarint(b, store.Micros(h.Time))
		b = append(b, h.Hash[:]...)
	}
	return b
}

func readHeads(session belay.SessionID, b []byte) (heads []store.Head, whole bool) {
	for len(b) > 0 {
		h := store.Head{Session: session}
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, false
		}
		h.Stream, b = belay.StreamID(b[n:n+int(size)]), b[n+int(size):]
		var at int64
		if h.Seq, n = binary.Varint(b); n <= 0 {
			return nil, false
		}
		b = b[n:]
		if at, n = binary.Varint(b); n <= 0 || len(b)-n < len(h.Hash) {
			return nil, false
		}
		h.Time = store.FromMicros(at)
		copy(h.Hash[:], b[n:])
		b = b[n+len(h.Hash):]
		heads = append(heads, h)
	}
	return heads, true
}

func appendNumbers(numbers []int64) []byte {
	b := []byte{}
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func readNumbers(b []byte) (numbers []int64, whole bool) {
	for len(b) > 0 {
		number, n := binary.Varint(b)
		if n <= 0 {
			return nil, false
		}
		numbers, b = append(numbers, number), b[n:]
	}
	return numbers, true
}

// grave reads a session's tombstone inside the transaction.
func (w *writer) grave(session belay.SessionID) (g tombstoneRow, found bool, refused, broken error) {
	s, err := w.prepared("SELECT " + graveColumns + " FROM tombstones WHERE session=?")
	if err != nil {
		return g, false, nil, err
	}
	switch err := g.scan(s.QueryRowContext(w.db.life, string(session)).Scan); {
	case err == sql.ErrNoRows:
		return g, false, nil, nil
	case belay.CodeOf(err) == belay.CodeStoreDamaged:
		return g, false, err, nil
	case err != nil:
		return g, false, nil, err
	}
	return g, true, nil, nil
}

// buried is the last epoch of a session that was restored, 0 of one that was
// never deleted, and a refusal for one that is.
func (w *writer) buried(session belay.SessionID) (epoch int64, refused, broken error) {
	g, found, refused, broken := w.grave(session)
	if refused != nil || broken != nil || !found {
		return 0, refused, broken
	}
	if !g.Restored {
		return 0, store.IsDeleted(session), nil
	}
	return g.Epoch, nil, nil
}

// Tombstones lists deletions after a position.
func (db *DB) Tombstones(ctx context.Context, after store.Position) (all []store.Tombstone, err error) {
	graves, err := db.graves(ctx, "pos>?", int64(after))
	for _, g := range graves {
		all = append(all, g.Tombstone)
	}
	return all, err
}

// graves lists rows of the tombstones, in the order of their positions.
func (db *DB) graves(ctx context.Context, where string, args ...any) (all []tombstoneRow, err error) {
	err = db.query(ctx, "SELECT "+graveColumns+" FROM tombstones WHERE "+where+" ORDER BY pos", args, func(rows *sql.Rows) error {
		var g tombstoneRow
		err := g.scan(rows.Scan)
		all = append(all, g)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// isGone reports whether a fact that was read belongs to a deletion that continues,
// or was over before its stream's name was looked up.
func (db *DB) isGone(ctx context.Context, e *eventRow) (gone bool, err error) {
	unfinished, err := db.graves(ctx, "pending<>x''")
	if err != nil {
		return false, err
	}
	for _, g := range unfinished {
		if slices.Contains(g.pending, e.stream) {
			return true, nil
		}
	}
	gone = true
	err = db.query(ctx, "SELECT hash FROM events WHERE pos=?", []any{e.pos}, func(rows *sql.Rows) error {
		var hash []byte
		err := rows.Scan(&hash)
		gone = !bytes.Equal(hash, e.hash)
		return err
	})
	return gone, err
}

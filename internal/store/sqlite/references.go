package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// collector finds out which contents something in the store names, and removes others.
type collector struct {
	*access
	content *blobStore
}

// contents are candidates for removal. The value says that something names it.
type contents map[[32]byte]bool

func (c contents) add(d [32]byte) { c[d] = false }

// keep notes that a candidate is named.
func (c contents) keep(d [32]byte) {
	if _, ok := c[d]; ok {
		c[d] = true
	}
}

// namedByStreams is all content that streams name, and what that names.
func (gc *collector) namedByStreams(ctx context.Context, streams []int64) (contents, error) {
	found := contents{}
	for _, stream := range streams {
		for _, query := range []string{
			"SELECT seq, refs, data FROM events WHERE stream=? AND seq>? ORDER BY seq LIMIT 512",
			"SELECT seq, NULL, data FROM states WHERE stream=? AND seq>?",
			"SELECT num, NULL, body FROM inbox WHERE stream=? AND num>? ORDER BY num LIMIT 512",
		} {
			if err := gc.named(ctx, query, []any{stream}, nil, found.add); err != nil {
				return nil, err
			}
		}
	}
	return found, gc.followRefs(ctx, found, store.Named, func(d [32]byte, next func([32]byte)) {
		if _, known := found[d]; !known {
			found.add(d)
			next(d)
		}
	})
}

// named runs a query for a number, references and bytes in portions after a
// number, which is its last argument, and hands over what they name. skip
// leaves rows out by a second number, if there is one.
func (gc *collector) named(ctx context.Context, query string, args []any, skip map[int64]bool, each func([32]byte)) error {
	var row store.Row
	var refs, data sql.RawBytes
	var number, stream int64
	into := []any{&number, &refs, &data}
	if skip != nil {
		into = append(into, &stream)
	}
	for last, n := int64(-1), pageSize; n == pageSize; {
		n = 0
		err := gc.query(ctx, query, append(args[:len(args):len(args)], last), func(rows *sql.Rows) error {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			n++
			if number <= last {
				return outOfOrder(gc.path)
			}
			if last = number; skip[stream] {
				return nil
			}
			row.Refs, row.Data = refs, data
			row.Named(each)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// followRefs looks into the documents among contents, and into what name
// finds in them and hands to next, and so on.
func (gc *collector) followRefs(ctx context.Context, in contents, find finder, name func(d [32]byte, next func([32]byte))) error {
	var queue [][32]byte
	for d := range in {
		queue = append(queue, d)
	}
	return gc.follow(ctx, queue, find, name)
}

// finder calls each with the digests that a text names.
type finder func(text []byte, each func(digest [32]byte))

func (gc *collector) follow(ctx context.Context, queue [][32]byte, find finder, name func(d [32]byte, next func([32]byte))) error {
	for len(queue) > 0 {
		d := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		text, err := gc.document(ctx, d)
		if err != nil {
			return err
		}
		find(text, func(d [32]byte) { name(d, func(d [32]byte) { queue = append(queue, d) }) })
	}
	return nil
}

// mostDocument is how much of a document is looked into. Nobody writes a list
// of contents that is longer.
const mostDocument = 64 << 20

// document is a content's bytes if it may name other content.
func (gc *collector) document(ctx context.Context, d [32]byte) (text []byte, err error) {
	r, err := gc.content.Open(ctx, store.DigestFrom(d[:]))
	if errors.Is(err, store.ErrNotFound) || belay.CodeOf(err) == belay.CodeStoreDamaged {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	first := make([]byte, 1)
	if n, err := r.Read(first); n == 0 || bytes.IndexByte(store.DocumentStart, first[0]) < 0 {
		return nil, nilIfEnd(err)
	}
	text, err = io.ReadAll(io.LimitReader(r, mostDocument))
	if belay.CodeOf(err) == belay.CodeStoreDamaged {
		err = nil
	}
	return text, err
}

func nilIfEnd(err error) error {
	if err == io.EOF || belay.CodeOf(err) == belay.CodeStoreDamaged {
		return nil
	}
	return err
}

// seen is how far a census looked.
type seen struct {
	fact    int64
	content int64
	gone    map[int64]bool // streams that count no more
}

// look notes where the store ends before it is looked through.
func (gc *collector) look(ctx context.Context) (s seen, err error) {
	if s.gone, err = gc.unfinished(ctx); err != nil {
		return s, err
	}
	if err := gc.query(ctx, "SELECT coalesce(max(id),0) FROM blobs", nil, func(rows *sql.Rows) error { return rows.Scan(&s.content) }); err != nil {
		return s, err
	}
	end, err := gc.End(ctx)
	s.fact = int64(end)
	return s, err
}

// markReachable finds the candidates that something else in the store names.
func (gc *collector) markReachable(ctx context.Context, c contents) (s seen, err error) {
	if s, err = gc.look(ctx); err != nil {
		return s, err
	}
	for _, query := range []string{
		"SELECT pos, refs, data, stream FROM events WHERE pos>? ORDER BY pos LIMIT 512",
		"SELECT stream, NULL, data, stream FROM states WHERE stream>? ORDER BY stream LIMIT 512",
		"SELECT num, NULL, body, stream FROM inbox WHERE num>? ORDER BY num LIMIT 512",
		"SELECT rowid, NULL, data, -1 FROM view_rows WHERE rowid>? ORDER BY rowid LIMIT 512",
	} {
		if err := gc.named(ctx, query, nil, s.gone, c.keep); err != nil {
			return s, err
		}
	}
	return s, gc.documents(ctx, c, store.Named)
}

// documents keeps the candidates that documents name which stay: those that are
// no candidates, and candidates that are kept.
func (gc *collector) documents(ctx context.Context, c contents, find finder) error {
	if err := gc.otherDocuments(ctx, c, find); err != nil {
		return err
	}
	var queue [][32]byte
	for d, kept := range c {
		if kept {
			queue = append(queue, d)
		}
	}
	return gc.follow(ctx, queue, find, func(d [32]byte, next func([32]byte)) {
		if kept, ok := c[d]; ok && !kept {
			c[d] = true
			next(d)
		}
	})
}

// otherDocuments looks into all documents that aren't candidates themselves.
func (gc *collector) otherDocuments(ctx context.Context, c contents, find finder) error {
	var digest, data sql.RawBytes
	for last, n := int64(-1), pageSize; n == pageSize; {
		n = 0
		err := gc.query(ctx, "SELECT id, digest, CASE WHEN substr(data,1,1) IN (x'7b', x'5b') THEN data END FROM blobs WHERE id>? ORDER BY id LIMIT 512", []any{last}, func(rows *sql.Rows) error {
			before := last
			if err := rows.Scan(&last, &digest, &data); err != nil {
				return err
			}
			if n++; last <= before {
				return outOfOrder(gc.path)
			}
			if _, candidate := c[[32]byte(pad(digest))]; !candidate {
				find(data, c.keep)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return layout.EachContent(ctx, gc.blobs, func(d [32]byte, path string) error {
		if _, candidate := c[d]; candidate {
			return nil
		}
		text, err := gc.document(ctx, d)
		find(text, c.keep)
		return err
	})
}

// pad makes any bytes 32.
func pad(b []byte) []byte {
	var d [32]byte
	copy(d[:], b)
	return d[:]
}

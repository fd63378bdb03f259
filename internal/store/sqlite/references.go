package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"

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
			"SELECT seq, refs, data, stream FROM events WHERE seq>?1 AND stream=?2 ORDER BY seq LIMIT 512",
			"SELECT seq, NULL, data, stream FROM states WHERE seq>?1 AND stream=?2",
			"SELECT num, NULL, body, stream FROM inbox WHERE num>?1 AND stream=?2 ORDER BY num LIMIT 512",
		} {
			if err := gc.named(ctx, query, nil, found.add, stream); err != nil {
				return nil, err
			}
		}
	}
	return found, gc.follow(ctx, slices.Collect(maps.Keys(found)), store.Named, func(d [32]byte) bool {
		_, known := found[d]
		found[d] = false
		return !known
	})
}

// portions runs a query whose rows begin with a number, its first parameter, in
// portions after it.
func (a *access) portions(ctx context.Context, query string, row func(*sql.Rows) (int64, error), args ...any) error {
	for last, n := int64(-1), pageSize; n == pageSize; {
		n = 0
		err := a.query(ctx, query, append([]any{last}, args...), func(rows *sql.Rows) error {
			number, err := row(rows)
			if err != nil {
				return err
			}
			if n++; number <= last {
				return outOfOrder(a.path)
			}
			last = number
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inboxContents are the waiting commands, for named.
const inboxContents = "SELECT num, NULL, body, stream FROM inbox WHERE num>? ORDER BY num LIMIT 512"

// named runs a query for a number, references, bytes and a stream in portions after
// the number, and hands over what they name. It leaves streams out.
func (gc *collector) named(ctx context.Context, query string, without map[int64]bool, each func([32]byte), args ...any) error {
	var refs, data sql.RawBytes
	return gc.portions(ctx, query, func(rows *sql.Rows) (number int64, err error) {
		var stream int64
		if err := rows.Scan(&number, &refs, &data, &stream); err == nil && !without[stream] {
			(&store.Row{Refs: refs, Data: data}).Named(each)
		}
		return number, err
	}, args...)
}

// finder calls each with the digests that a text names.
type finder func(text []byte, each func(digest [32]byte))

// follow looks into documents, and into those that they name, as long as follows
// says of one that it is to be looked into.
func (gc *collector) follow(ctx context.Context, queue [][32]byte, find finder, follows func(d [32]byte) bool) error {
	for len(queue) > 0 {
		d := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		text, err := gc.document(ctx, d)
		if err != nil {
			return err
		}
		find(text, func(d [32]byte) {
			if follows(d) {
				queue = append(queue, d)
			}
		})
	}
	return nil
}

// mostDocument is how much of a document is searched. Lists of contents are never
// longer.
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
	if _, err := gc.one(ctx, "SELECT coalesce(max(id),0) FROM blobs", nil, &s.content); err != nil {
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
		inboxContents,
		"SELECT rowid, NULL, data, -1 FROM view_rows WHERE rowid>? ORDER BY rowid LIMIT 512",
	} {
		if err := gc.named(ctx, query, s.gone, c.keep); err != nil {
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
	return gc.follow(ctx, queue, find, func(d [32]byte) bool {
		kept, candidate := c[d]
		c.keep(d)
		return candidate && !kept
	})
}

// otherDocuments looks into all documents that aren't candidates themselves.
func (gc *collector) otherDocuments(ctx context.Context, c contents, find finder) error {
	var digest, data sql.RawBytes
	err := gc.portions(ctx, "SELECT id, digest, CASE WHEN substr(data,1,1) IN (x'7b', x'5b') THEN data END FROM blobs WHERE id>? ORDER BY id LIMIT 512", func(rows *sql.Rows) (id int64, err error) {
		err = rows.Scan(&id, &digest, &data)
		if _, candidate := c[digestOf(digest)]; err == nil && !candidate {
			find(data, c.keep)
		}
		return id, err
	})
	if err != nil {
		return err
	}
	return layout.EachContent(ctx, gc.blobs, func(d [32]byte, _ string, _ fs.FileInfo) error {
		if _, candidate := c[d]; candidate {
			return nil
		}
		text, err := gc.document(ctx, d)
		find(text, c.keep)
		return err
	})
}

// digestOf makes 32 of any bytes.
func digestOf(b []byte) (d [32]byte) {
	copy(d[:], b)
	return d
}

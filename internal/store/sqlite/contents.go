package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// contentAge is how old content must be before it goes because nothing names
// it: content is put before the fact that names it, and a call may take hours.
const contentAge = 24 * time.Hour

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
func (db *DB) namedByStreams(ctx context.Context, streams []int64) (contents, error) {
	found := contents{}
	for _, stream := range streams {
		for _, query := range []string{
			"SELECT seq, refs, data FROM events WHERE stream=? AND seq>? ORDER BY seq LIMIT 512",
			"SELECT seq, NULL, data FROM states WHERE stream=? AND seq>?",
			"SELECT num, NULL, body FROM inbox WHERE stream=? AND num>? ORDER BY num LIMIT 512",
			"SELECT seq, NULL, state FROM anchors WHERE stream=? AND seq>?",
		} {
			if err := db.named(ctx, query, []any{stream}, nil, found.add); err != nil {
				return nil, err
			}
		}
	}
	return found, db.throughDocuments(ctx, found, store.Named, func(d [32]byte, next func([32]byte)) {
		if _, known := found[d]; !known {
			found.add(d)
			next(d)
		}
	})
}

// named runs a query for a number, references and bytes in portions after a
// number, which is its last argument, and hands over what they name. skip
// leaves rows out by a second number, if there is one.
func (db *DB) named(ctx context.Context, query string, args []any, skip map[int64]bool, each func([32]byte)) error {
	var row store.Row
	var refs, data sql.RawBytes
	var number, stream int64
	into := []any{&number, &refs, &data}
	if skip != nil {
		into = append(into, &stream)
	}
	for last, n := int64(-1), portion; n == portion; {
		n = 0
		err := db.query(ctx, query, append(args[:len(args):len(args)], last), func(rows *sql.Rows) error {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			n++
			if number <= last {
				return outOfOrder(db.path)
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

// throughDocuments looks into the documents among contents, and into what name
// finds in them and hands to next, and so on.
func (db *DB) throughDocuments(ctx context.Context, in contents, find finder, name func(d [32]byte, next func([32]byte))) error {
	var queue [][32]byte
	for d := range in {
		queue = append(queue, d)
	}
	return db.follow(ctx, queue, find, name)
}

// finder calls each with the digests that a text names.
type finder func(text []byte, each func(digest [32]byte))

func (db *DB) follow(ctx context.Context, queue [][32]byte, find finder, name func(d [32]byte, next func([32]byte))) error {
	for len(queue) > 0 {
		d := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		text, err := db.document(ctx, d)
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
func (db *DB) document(ctx context.Context, d [32]byte) (text []byte, err error) {
	r, err := db.Open(ctx, store.DigestFrom(d[:]))
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
func (db *DB) look(ctx context.Context) (s seen, err error) {
	if s.gone, err = db.unfinished(ctx); err != nil {
		return s, err
	}
	if err := db.query(ctx, "SELECT coalesce(max(id),0) FROM blobs", nil, func(rows *sql.Rows) error { return rows.Scan(&s.content) }); err != nil {
		return s, err
	}
	end, err := db.End(ctx)
	s.fact = int64(end)
	return s, err
}

// census finds the candidates that something else in the store names.
func (db *DB) census(ctx context.Context, c contents) (s seen, err error) {
	if s, err = db.look(ctx); err != nil {
		return s, err
	}
	for _, query := range []string{
		"SELECT pos, refs, data, stream FROM events WHERE pos>? ORDER BY pos LIMIT 512",
		"SELECT stream, NULL, data, stream FROM states WHERE stream>? ORDER BY stream LIMIT 512",
		"SELECT num, NULL, body, stream FROM inbox WHERE num>? ORDER BY num LIMIT 512",
		"SELECT stream, NULL, state, stream FROM anchors WHERE stream>? ORDER BY stream LIMIT 512",
		"SELECT rowid, NULL, data, -1 FROM view_rows WHERE rowid>? ORDER BY rowid LIMIT 512",
	} {
		if err := db.named(ctx, query, nil, s.gone, c.keep); err != nil {
			return s, err
		}
	}
	return s, db.documents(ctx, c, store.Named)
}

// documents keeps the candidates that documents name which stay: those that are
// no candidates, and candidates that are kept.
func (db *DB) documents(ctx context.Context, c contents, find finder) error {
	if err := db.otherDocuments(ctx, c, find); err != nil {
		return err
	}
	var queue [][32]byte
	for d, kept := range c {
		if kept {
			queue = append(queue, d)
		}
	}
	return db.follow(ctx, queue, find, func(d [32]byte, next func([32]byte)) {
		if kept, ok := c[d]; ok && !kept {
			c[d] = true
			next(d)
		}
	})
}

// otherDocuments looks into all documents that aren't candidates themselves.
func (db *DB) otherDocuments(ctx context.Context, c contents, find finder) error {
	var digest, data sql.RawBytes
	for last, n := int64(-1), portion; n == portion; {
		n = 0
		err := db.query(ctx, "SELECT id, digest, CASE WHEN substr(data,1,1) IN (x'7b', x'5b') THEN data END FROM blobs WHERE id>? ORDER BY id LIMIT 512", []any{last}, func(rows *sql.Rows) error {
			before := last
			if err := rows.Scan(&last, &digest, &data); err != nil {
				return err
			}
			if n++; last <= before {
				return outOfOrder(db.path)
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
	return db.eachFile(ctx, func(d [32]byte, path string) error {
		if _, candidate := c[d]; candidate {
			return nil
		}
		text, err := db.document(ctx, d)
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

// eachFile calls each with every file of content.
func (db *DB) eachFile(ctx context.Context, each func(d [32]byte, path string) error) error {
	root := filepath.Join(db.tenant, "blobs")
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while we looked
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || e.IsDir() {
			return err
		}
		d, ok := store.RawDigest(belay.Digest("sha256:" + filepath.Base(filepath.Dir(path)) + filepath.Base(path)))
		if !ok {
			return nil
		}
		return each(d, path)
	})
}

// sweepContents is how many contents a transaction removes.
const sweepContents = 100

// dropContents removes the candidates that nothing names. Content that was put
// a short while ago may be about to be named by whoever runs now: old leaves
// all of it, otherwise it stays only while others run.
func (db *DB) dropContents(ctx context.Context, c contents, old bool) (dropped, left int, err error) {
	return db.dropUnless(ctx, c, old, db.census)
}

// dropUnless removes the candidates that a census doesn't keep.
func (db *DB) dropUnless(ctx context.Context, c contents, old bool, census func(context.Context, contents) (seen, error)) (dropped, left int, err error) {
	if len(c) == 0 {
		return 0, 0, nil
	}
	files := map[[32]byte]os.FileInfo{}
	for d := range c {
		if info, err := os.Stat(db.blobPath(store.DigestFrom(d[:]))); err == nil {
			files[d] = info
		}
	}
	s, err := census(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	op := &sweepOp{seen: s, old: old, files: files}
	for d, kept := range c {
		if kept {
			continue
		}
		if op.of = append(op.of, d); len(op.of) == sweepContents {
			if err := db.do(ctx, op); err != nil {
				return dropped, left, err
			}
			dropped, left, op.of = dropped+op.dropped, left+op.left, nil
		}
	}
	if len(op.of) > 0 {
		err = db.do(ctx, op)
	}
	return dropped + op.dropped, left + op.left, err
}

// sweepOp removes contents unless something has come to name them since they
// were looked for.
type sweepOp struct {
	seen
	of    [][32]byte
	old   bool
	files map[[32]byte]os.FileInfo

	dropped, left int // the answer
}

func (o *sweepOp) apply(w *writer) (refused, broken error) {
	o.dropped, o.left = 0, 0
	if refused, broken := w.held(); refused != nil || broken != nil {
		return refused, broken
	}
	c := contents{}
	for _, d := range o.of {
		c.add(d)
	}
	if err := o.since(w, c); err != nil {
		return nil, err
	}
	for _, b := range w.putting {
		c.keep(b.digest)
	}
	before := time.Time{} // all content may go
	if busy, err := w.othersRun(); err != nil {
		return nil, err
	} else if o.old || busy {
		before = w.now().Add(-contentAge)
	}
	if err := w.exec(thoroughly); err != nil {
		return nil, err
	}
	for _, d := range o.of {
		if c[d] {
			continue
		}
		if err := o.drop(w, d, before); err != nil {
			return nil, err
		}
	}
	return nil, w.exec(lightly)
}

// since looks at what came after the census.
func (o *sweepOp) since(w *writer, c contents) error {
	for _, q := range []struct {
		query string
		args  []any
	}{
		{"SELECT refs, data, stream FROM events WHERE pos>?", []any{o.fact}},
		{"SELECT NULL, data, stream FROM states WHERE stream IN (SELECT stream FROM events WHERE pos>?)", []any{o.fact}},
		{"SELECT NULL, body, stream FROM inbox", nil},
		{"SELECT NULL, state, stream FROM anchors", nil},
		{"SELECT NULL, CASE WHEN substr(data,1,1) IN (x'7b', x'5b') THEN data END, -1 FROM blobs WHERE id>?", []any{o.content}},
	} {
		rows, err := w.conn.QueryContext(w.db.life, q.query, q.args...)
		if err != nil {
			return err
		}
		var row store.Row
		var refs, data sql.RawBytes
		var stream int64
		for rows.Next() {
			if err = rows.Scan(&refs, &data, &stream); err != nil {
				break
			}
			if row.Refs, row.Data = refs, data; !o.gone[stream] {
				row.Named(c.keep)
			}
		}
		if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// othersRun tells whether any session has a live owner.
func (w *writer) othersRun() (bool, error) {
	rows, err := w.conn.QueryContext(w.db.life, "SELECT "+ownerColumns+" FROM owners WHERE owner<>''")
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var r ownerRow
		if err := rows.Scan(r.into()...); err != nil {
			return false, err
		}
		if r.live(w.now(), w.db.o.Alive) {
			return true, nil
		}
	}
	return false, rows.Err()
}

// drop removes one content that was put before a time, or at any if that is zero.
func (o *sweepOp) drop(w *writer, d [32]byte, before time.Time) error {
	var id, at int64
	found, err := w.row("SELECT id, at FROM blobs WHERE digest=?", []any{d[:]}, &id, &at)
	if err != nil {
		return err
	}
	if found {
		if !before.IsZero() && at+touchAfter.Microseconds() > store.Micros(before) {
			o.left++
			return nil
		}
		o.dropped++
		return w.exec("DELETE FROM blobs WHERE id=?", id)
	}
	info := o.files[d]
	switch {
	case info == nil:
	case !before.IsZero() && time.Since(info.ModTime()) < contentAge:
		o.left++
	default:
		gone, err := w.db.removeFile(w.db.blobPath(store.DigestFrom(d[:])), info)
		if err != nil {
			return fileError(w.db.blobPath(store.DigestFrom(d[:])), err)
		}
		if gone {
			o.dropped++
		} else {
			o.left++
		}
	}
	return nil
}

// removeFile removes a file if it is still the one that was looked at: whoever
// puts the same content meanwhile replaces it. It is taken aside first, because
// between a look and a removal it could be replaced too.
func (db *DB) removeFile(path string, was os.FileInfo) (gone bool, err error) {
	aside := filepath.Join(db.tenant, "blobs", unfinished+rand.Text())
	if err := db.o.FS.Rename(path, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	if now, err := os.Stat(aside); err != nil || !os.SameFile(was, now) {
		return false, errors.Join(err, db.o.FS.Rename(aside, path))
	}
	return true, db.o.FS.Remove(aside)
}

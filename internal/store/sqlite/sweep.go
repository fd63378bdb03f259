package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// contentAge is how old content must be before it goes because nothing names
// it: content is put before the fact that names it, and a call may take hours.
const contentAge = 24 * time.Hour

// sweepContents is how many contents a transaction removes.
const sweepContents = 100

// drop removes the candidates that a census doesn't keep. Content that was put a
// short while ago may be about to be named by whoever runs now: old leaves all of
// it, otherwise it stays only while others run.
func (gc *collector) drop(ctx context.Context, c contents, old bool, census func(context.Context, contents) (seen, error)) (dropped, left int, err error) {
	if len(c) == 0 {
		return 0, 0, nil
	}
	files := map[[32]byte]os.FileInfo{}
	for d := range c {
		if info, err := os.Stat(layout.ContentFile(gc.blobs, store.DigestFrom(d[:]))); err == nil {
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
			if err := gc.do(ctx, op); err != nil {
				return dropped, left, err
			}
			dropped, left, op.of = dropped+op.dropped, left+op.left, nil
		}
	}
	if len(op.of) > 0 {
		err = gc.do(ctx, op)
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

func (o *sweepOp) apply(w *writer) error {
	o.dropped, o.left = 0, 0
	if err := w.mayDropContent(); err != nil {
		return err
	}
	c := contents{}
	for _, d := range o.of {
		c.add(d)
	}
	if err := o.since(w, c); err != nil {
		return err
	}
	for _, b := range w.putting {
		c.keep(b.digest)
	}
	before := time.Time{} // all content may go
	if busy, err := w.othersRun(); err != nil {
		return err
	} else if o.old || busy {
		before = w.now().Add(-contentAge)
	}
	if err := w.exec(secureDeleteOn); err != nil {
		return err
	}
	for _, d := range o.of {
		if c[d] {
			continue
		}
		if err := o.drop(w, d, before); err != nil {
			return err
		}
	}
	return w.exec(secureDeleteFast)
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
		{"SELECT NULL, CASE WHEN substr(data,1,1) IN (x'7b', x'5b') THEN data END, -1 FROM blobs WHERE id>?", []any{o.content}},
	} {
		var row store.Row
		var refs, data sql.RawBytes
		var stream int64
		err := w.each(q.query, q.args, func(rows *sql.Rows) error {
			err := rows.Scan(&refs, &data, &stream)
			if row.Refs, row.Data = refs, data; err == nil && !o.gone[stream] {
				row.Named(c.keep)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// othersRun reports whether any session has a live owner.
func (w *writer) othersRun() (busy bool, err error) {
	err = w.each("SELECT "+ownerColumns+" FROM owners WHERE owner<>''", nil, func(rows *sql.Rows) error {
		var r ownerRow
		err := rows.Scan(r.into()...)
		busy = busy || err == nil && r.live(w.now(), w.db.o.Alive)
		return err
	})
	return busy, err
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
		gone, err := w.db.removeFile(layout.ContentFile(w.db.blobs, store.DigestFrom(d[:])), info)
		if err != nil {
			return layout.FileError(layout.ContentFile(w.db.blobs, store.DigestFrom(d[:])), err)
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
func (p *place) removeFile(path string, was os.FileInfo) (gone bool, err error) {
	aside := filepath.Join(p.blobs, layout.Unfinished+rand.Text())
	if err := p.o.FS.Rename(path, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	if now, err := os.Stat(aside); err != nil || !os.SameFile(was, now) {
		return false, errors.Join(err, p.o.FS.Rename(aside, path))
	}
	return true, p.o.FS.Remove(aside)
}

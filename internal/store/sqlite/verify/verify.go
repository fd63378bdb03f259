// Package verify checks a store: its write-ahead log, its tables, every fact and every
// content. It shares the layout of the files with the driver, and no code: what the
// driver gets wrong isn't got wrong here in the same way.
package verify

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// Options of Run. The zero value works.
type Options struct {
	Against []store.Head // heads that were kept elsewhere, to be found again
	Temp    string       // where the copy is made; the system's directory for temporary files

	Blobs string // where the files of content are instead of in the store; they are looked for, not read
}

// Problem is something that isn't as it was written.
type Problem = layout.Problem

// Report is what Run found.
type Report struct {
	Runtime     belay.RuntimeID
	Position    store.Position // of the last fact or deletion
	Streams     int            // that have facts
	Events      int
	Blobs       int       // contents, small and large
	Compared    int       // heads of Against that were found again
	Problems    []Problem // damage, the first hundred
	More        int       // problems beyond those
	Differences []Problem // streams that aren't what Against says
	Deleted     []Problem // heads of Against whose facts were deleted
	Expired     int       // outputs that aren't there any more, as facts say
	Warnings    []Problem // damage of what can be made anew, and marks that were left
	Heads       []store.Head
}

// OK reports whether everything is as it was written and as Against says.
func (r *Report) OK() bool { return len(r.Problems) == 0 && len(r.Differences) == 0 }

const (
	mostProblems = 100
	portion      = 512 // rows of a query
)

func (r *Report) problem(place, format string, args ...any) {
	if len(r.Problems) == mostProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, Problem{Place: place, What: fmt.Sprintf(format, args...)})
}

func (r *Report) warn(place, what string) {
	r.Warnings = append(r.Warnings, Problem{Place: place, What: what})
}

// Run checks all of a store without changing it: the write-ahead log before
// SQLite sees it, then on a copy the database's structure, every fact, its
// chain and what it names, every waiting command, and all content. What is
// wrong is in the report; the error says that no check was possible: there is
// no store, a newer program's, or one that can't be read.
//
// It looks at the files themselves, so it must not run in a process that has
// the same store open: closing a file drops the locks that SQLite holds on it.
func Run(ctx context.Context, dir string, o Options) (Report, error) {
	v := verification{dir: dir, o: o, known: map[[32]byte]int64{}, let: layout.Expirations{}, expired: map[[32]byte]bool{}}
	snap, err := layout.NewCopy(ctx, layout.Path(dir), o.Temp)
	if err != nil {
		return v.Report, err
	}
	v.snap = snap
	err = v.all(ctx)
	v.Expired = len(v.expired)
	if err == nil {
		err = ctx.Err() // a stopped query must not look like damage
	}
	return v.Report, errors.Join(err, snap.Remove())
}

// verification is one check.
type verification struct {
	Report
	dir         string
	o           Options
	snap        *layout.Copy
	conn        *sql.Conn
	ended       bool // the connection is of no more use
	types       map[int64]string
	known       map[[32]byte]int64 // sizes of contents that were looked for; bounded
	graves      []store.Tombstone
	gonestreams map[int64]bool // numbers of streams whose deletion isn't finished
	let         layout.Expirations
	expired     map[[32]byte]bool
	buf         []byte
	tries       int // bytes that were hashed to find a changed one
}

func (v *verification) all(ctx context.Context) error {
	for _, p := range v.snap.Log.Problems {
		if p.Unfinished() {
			v.Warnings = append(v.Warnings, p)
			continue
		}
		v.problem(p.Place, "%s", p.What)
	}
	version, err := v.header()
	if err != nil {
		return err
	}
	if layout.NeedsCheck(v.dir) {
		v.warn(filepath.Base(layout.Path(v.dir))+"-check", "a write or a sync failed; the store is checked when it is opened next")
	}
	if v.o.Blobs == "" {
		v.files(ctx)
	}
	var pool *sql.DB
	v.step(ctx, filepath.Base(v.snap.Path), func() (err error) {
		pool, v.conn, err = v.snap.Open(ctx)
		return err
	})
	if v.conn != nil {
		v.database(ctx, version)
		// A connection that failed within may hold locks of its own.
		v.step(ctx, filepath.Base(v.snap.Path), func() error { return errors.Join(v.conn.Close(), pool.Close()) })
	}
	return nil
}

// database runs everything that needs SQLite. Each step tells its own problems
// and doesn't stop the next.
func (v *verification) database(ctx context.Context, version int) {
	for _, s := range []struct {
		place string
		run   func(context.Context) error
	}{
		{"belay.db", v.structure},
		{"belay.db: schema", func(ctx context.Context) error { return v.schema(ctx, version) }},
		{"belay.db: columns", v.columns},
		{"meta", v.meta},
		{"types", v.typeNames},
		{"tombstones", v.tombstones},
		{"blobs", v.blobRows},
		{"events", v.expirations},
		{"streams", v.streams},
		{"events", v.orphans},
		{"inbox", v.inbox},
		{"commands", v.commands},
		{"keys", v.keys},
		{"owners", v.owners},
		{"states", v.states},
		{"heads", v.against},
	} {
		v.step(ctx, s.place, func() error { return s.run(ctx) })
	}
}

// step runs a part of the check. What SQLite makes of damaged pages is its own
// affair: errors and panics become problems here, whatever the bytes.
func (v *verification) step(ctx context.Context, place string, run func() error) {
	if v.ended || ctx.Err() != nil {
		return
	}
	if err := layout.Guard(run); err != nil {
		v.problem(place, "it can't be read: %v", err)
		_, v.ended = errors.AsType[*layout.Panic](err)
	}
}

// each runs a query and hands over its rows.
func (v *verification) each(ctx context.Context, query string, args []any, row func(*sql.Rows) error) error {
	rows, err := v.conn.QueryContext(ctx, query, args...)
	return layout.EachRow(rows, err, row)
}

// pages runs a query that takes its rows after a number, portion by portion.
// row returns the number that its row has. In a damaged tree the numbers may
// go back: then it would never end.
func (v *verification) pages(ctx context.Context, query string, portion int, row func(*sql.Rows) (int64, error)) error {
	query = fmt.Sprintf("%s LIMIT %d", query, portion)
	last := int64(-1 << 63)
	for n := portion; n == portion; {
		n = 0
		err := v.each(ctx, query, []any{last}, func(rows *sql.Rows) error {
			number, err := row(rows)
			if err == nil && number <= last {
				err = errOrder
			}
			n, last = n+1, number
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var errOrder = errors.New("its rows are out of order")

// content is the size of a content, or false when the store doesn't have it.
func (v *verification) content(ctx context.Context, d [32]byte) (size int64, found bool, err error) {
	if size, ok := v.known[d]; ok {
		return size, true, nil
	}
	err = v.each(ctx, "SELECT length(data) FROM blobs WHERE digest=?", []any{d[:]}, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&size)
	})
	if err == nil && !found {
		size, found = v.fileSize(d)
	}
	if found {
		v.remember(d, size)
	}
	return size, found, err
}

func (v *verification) remember(d [32]byte, size int64) {
	const most = 1 << 14
	if len(v.known) >= most {
		clear(v.known)
	}
	v.known[d] = size
}

// ref notes when content that is named at a place isn't there.
func (v *verification) ref(ctx context.Context, place string, r belay.Ref) error {
	raw, ok := store.RawDigest(r.Digest)
	if !ok {
		return nil
	}
	size, found, err := v.content(ctx, raw)
	switch {
	case err != nil:
		return err
	case !found:
		v.problem(place, "the content it names is not there: %s", r.Digest)
	case size != r.Size:
		v.problem(place, "the content it names has %d bytes, not %d: %s", size, r.Size, r.Digest)
	}
	return nil
}

func (v *verification) blobRows(ctx context.Context) error {
	return v.pages(ctx, "SELECT id, digest, data FROM blobs WHERE id>? ORDER BY id", 64, func(rows *sql.Rows) (id int64, err error) {
		var digest, data []byte
		if err := rows.Scan(&id, &digest, &data); err != nil {
			return id, err
		}
		v.Blobs++
		sum := sha256.Sum256(data)
		v.remember(sum, int64(len(data)))
		if string(sum[:]) != string(digest) {
			v.problem(fmt.Sprintf("blobs/%d", id), "the content isn't what its digest names: %s", store.DigestFrom(digest))
		}
		return id, nil
	})
}

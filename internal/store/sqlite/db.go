// Package sqlite keeps a store in one directory: a SQLite file in WAL mode and
// a tree of blob files beside it. Several processes of one machine may have it
// open at once. Each has one writer goroutine, which commits everything that
// has queued up in one synced transaction and answers callers after that (a
// caller that finds no other writer commits by itself), and a small pool of
// readers that never keep a read transaction open while their consumer works.
// The package knows nothing of what the facts mean.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// the driver, free of cgo

var _ store.Admin = (*DB)(nil)

// Options of Open. The zero value works.
type Options struct {
	Now          func() time.Time        // for leases and for facts without a time; the system's clock
	Alive        func(store.Owner) bool  // whether an owner's process may still run; store.Alive
	FS           files.FS                // writes blob files; the system's
	FileSystem   func(dir string) string // names the file system a directory is on; the system's mount table
	PollInterval time.Duration           // how often other processes' commits are looked for; 100 ms
	BusyTimeout  time.Duration           // how long a write waits for another process; 5 s
	Readers      int                     // connections that read; 4
	ReadOnly     bool                    // open without a writer: every write is CodeStoreReadOnly
	OrRead       bool                    // where it can't be written, open it without a writer: every write is refused with the reason
	Tenant       string                  // whose database of the directory; "default". The caller has checked the name

	// Migrated is called after each migration of an existing store.
	Migrated func(from, to int, took time.Duration)

	fault      func(point string) error // tests: the result of a point instead of what SQLite says
	oneThread  bool                     // tests: all is written in one thread, so that its system calls can be counted
	migrations []layout.Migration       // tests: instead of the package's
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Alive == nil {
		o.Alive = store.Alive
	}
	if o.FS == nil {
		o.FS = files.System{}
	}
	o.Tenant = cmp.Or(o.Tenant, "default")
	o.PollInterval = cmp.Or(o.PollInterval, 100*time.Millisecond)
	o.BusyTimeout = cmp.Or(o.BusyTimeout, 5*time.Second)
	o.Readers = cmp.Or(o.Readers, 4)
	if o.fault == nil {
		o.fault = func(string) error { return nil }
	}
	if o.migrations == nil {
		o.migrations = layout.Migrations
	}
	return o
}

// DB is an open store: its parts, each of which reads and writes through the same
// connections.
type DB struct {
	*access
	*factLog
	*inbox
	*owners
	*blobStore
	*viewStore
	*deletions

	stop   chan struct{}  // closed by Close
	joined sync.WaitGroup // the goroutines of this store
	once   sync.Once
	err    error // of Close
}

// newDB puts the parts of a store together; nothing is open.
func newDB(p *place) *DB {
	a := &access{place: p}
	log := &factLog{access: a}
	log.watch.init()
	blobs := &blobStore{access: a}
	return &DB{access: a, factLog: log, inbox: &inbox{a}, owners: &owners{a}, blobStore: blobs, viewStore: &viewStore{access: a},
		deletions: &deletions{&collector{access: a, content: blobs}}, stop: make(chan struct{})}
}

// place is where a store is and how it was opened: what all its parts share.
type place struct {
	o      Options
	tenant string          // the directory with the database and the blobs
	blobs  string          // the directory with the large blobs
	path   string          // of the database
	life   context.Context // never ends: closing is what stops the store

	runtime belay.RuntimeID
	closed  atomic.Bool
	stats   counters
}

// Exists reports whether a directory holds a store. One that can't be read counts as
// one: opening it reports the error.
func Exists(dir string) bool {
	_, err := os.Stat(layout.Path(dir))
	return !errors.Is(err, fs.ErrNotExist)
}

// SchemaVersion is what the header of the database in a directory says: SQLite keeps
// the number of the schema in bytes 60 to 63. It is 0 when it can't be read.
func SchemaVersion(dir string) uint32 {
	f, err := os.Open(layout.Path(dir))
	if err != nil {
		return 0
	}
	defer f.Close()
	var b [4]byte
	if _, err := f.ReadAt(b[:], 60); err != nil {
		return 0
	}
	return binary.BigEndian.Uint32(b[:])
}

// Open opens the store in a directory and makes it if it isn't there. A store
// of a newer program, on a network file system, damaged, or not writable is an
// error with the code that says so.
func Open(ctx context.Context, dir string, o Options) (*DB, error) { return openOrRead(ctx, dir, o) }

func open(ctx context.Context, dir string, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, belay.Errorf(belay.CodeStoreFailed, "the store's path can't be resolved").At(dir).Wrap(err)
	}
	o = o.withDefaults()
	tenant := filepath.Join(dir, "tenants", o.Tenant)
	db := newDB(&place{o: o, path: filepath.Join(tenant, "belay.db"), tenant: tenant, blobs: filepath.Join(tenant, "blobs"), life: context.WithoutCancel(ctx)})
	if err := db.refuseForeign(); err != nil {
		return nil, err
	}
	if err := db.prepareDirectory(dir); err != nil {
		return nil, err
	}
	if err := db.open(); err != nil {
		return nil, errors.Join(err, db.release())
	}
	if db.writer != nil {
		db.joined.Go(db.writer.run)
	}
	db.joined.Go(func() { db.poll(db.stop) })
	return db, nil
}

// open connects, migrates and, after a failed sync, checks.
func (db *DB) open() error {
	if !db.o.ReadOnly {
		if err := db.create(); err != nil {
			return err
		}
		w, err := newWriter(db.place, &db.small, &db.watch)
		if err != nil {
			return err
		}
		db.writer = w
		if err := w.migrate(); err != nil {
			return err
		}
	}
	synced := db.syncLog()
	var err error
	if db.o.ReadOnly {
		if err = db.openToRead(); err == nil {
			err = db.readRuntime(db.readers)
		}
	} else if err = db.connectReaders(); err == nil {
		err = db.readRuntime(db.writer.raw) // who only writes opens no reader
	}
	if failed := <-synced; failed != nil {
		return layout.DirectoryError(db.tenant, failed)
	}
	if err != nil {
		return err
	}
	return db.recover()
}

// syncLog makes the name of the write-ahead log durable, which SQLite has made by
// now. SQLite syncs the directory with the first commit, but takes no notice when
// that fails. The disk is at work while Open continues.
func (db *DB) syncLog() <-chan error {
	synced := make(chan error, 1)
	sync := func() { synced <- files.System{}.SyncDir(db.tenant) }
	switch {
	case db.o.ReadOnly:
		synced <- nil
	case db.o.oneThread:
		sync()
	default:
		db.joined.Go(sync)
	}
	return synced
}

// release gives connections back when Open gives up.
func (db *DB) release() error {
	err := db.disconnectReaders()
	if db.writer != nil {
		err = errors.Join(err, db.writer.disconnect())
	}
	return err
}

func (db *DB) readRuntime(from interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) error {
	var id string
	err := from.QueryRowContext(db.life, "SELECT value FROM meta WHERE key='runtime'").Scan(&id)
	db.runtime = belay.RuntimeID(id)
	return db.wrap(err, "read the store's id")
}

// Runtime is the store's id, made with it.
func (db *DB) Runtime() belay.RuntimeID { return db.runtime }

// Dir is the directory that holds the database and the blobs.
func (p *place) Dir() string { return p.tenant }

// Close commits what was accepted, gives back the sessions that were claimed
// through db, folds the write-ahead log into the database and closes it.
func (db *DB) Close() error {
	db.once.Do(func() {
		db.closed.Store(true)
		close(db.stop)
		db.watch.notify()
		if db.writer != nil {
			db.writer.close()
		}
		db.joined.Wait()
		db.err = db.disconnectReaders()
		if db.writer != nil {
			db.err = errors.Join(db.writer.finish(), db.err)
		}
	})
	return db.err
}

func errClosed() error { return belay.Errorf(belay.CodeBadState, "the store is closed") }

type counters struct {
	transactions, failed, appends, events, checkpoints, largest, reads, statements atomic.Int64
}

// Stats tells what the store did since Open.
func (db *DB) Stats() store.Stats {
	s := store.Stats{
		Transactions: db.stats.transactions.Load(), Failed: db.stats.failed.Load(),
		Appends: db.stats.appends.Load(), Events: db.stats.events.Load(),
		Checkpoints: db.stats.checkpoints.Load(), Largest: db.stats.largest.Load(),
		Reads: db.stats.reads.Load(), Statements: db.stats.statements.Load(),
	}
	if info, err := os.Stat(db.path + "-wal"); err == nil {
		s.WALBytes = info.Size()
	}
	return s
}

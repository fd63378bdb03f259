package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"slices"
	"strconv"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/hotcopy"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// way is how a store is read that is open for reading only.
type way int

const (
	besideOthers way = iota // as SQLite does it
	asItIs                  // as a file that nobody changes: SQLite needs no file beside it, and ignores the log
	asCopy                  // a copy made now, log included
)

// cannotWrite reports whether an error of opening says that only writing is impossible.
func cannotWrite(err error) bool {
	return slices.Contains([]belay.Code{belay.CodeStoreReadOnly, belay.CodeStoreFull}, belay.CodeOf(err))
}

// openToRead finds the way to read a store that may not be writable. SQLite wants a
// file beside the database that processes share. Where it can't make that, a
// database without a log is read as it is, and one with a log from a copy: SQLite
// has no other way to its committed frames that changes nothing.
func (db *DB) openToRead() error {
	if db.unwritable() {
		db.way = asItIs
	}
	err := db.readVersion()
	if err == nil || db.way == asItIs || !slices.Contains([]int{layout.CodeCantOpen, layout.CodeReadOnly, layout.CodeFull, layout.CodeIO}, layout.ResultCode(err)) {
		return err
	}
	if err := db.disconnectReaders(); err != nil {
		return err
	}
	if db.way = asItIs; db.hasLog() {
		if db.copy, err = hotcopy.New(db.life, db.path, ""); err != nil {
			return err
		}
		db.way = asCopy
	}
	return db.readVersion()
}

// readVersion connects readers and refuses a store of a newer program.
func (db *DB) readVersion() error {
	if err := db.connectReaders(); err != nil {
		return err
	}
	version, err := db.version()
	if newest := len(db.o.migrations); err == nil && version > newest {
		err = db.newer(version, newest)
	}
	return err
}

func (db *DB) connectReaders() error {
	readers, err := sql.Open("sqlite", db.dsn("ro", url.Values{
		"_pragma": {"busy_timeout(" + strconv.FormatInt(db.o.BusyTimeout.Milliseconds(), 10) + ")", "query_only(1)", "cache_size(-1024)"},
	}))
	if err != nil {
		return db.wrap(err, "open")
	}
	readers.SetMaxOpenConns(db.o.Readers + 1) // one is the watcher's
	readers.SetMaxIdleConns(db.o.Readers + 1)
	db.readers, db.stmts.db = readers, readers
	return nil
}

func (db *DB) disconnectReaders() error {
	if db.readers == nil {
		return nil
	}
	db.stmts.close()
	return db.wrap(db.readers.Close(), "close")
}

// dsn names the database for the driver. The path is escaped as in a URL, so
// that a question mark in a directory's name isn't read as the query.
func (db *DB) dsn(mode string, query url.Values) string {
	if query == nil {
		query = url.Values{}
	}
	path := db.path
	switch query.Set("mode", mode); {
	case mode != "ro":
	case db.way == asItIs:
		query.Set("immutable", "1")
	case db.way == asCopy:
		path = db.copy.Path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// unwritable reports whether nobody here can write beside the database and there is no log to read.
func (db *DB) unwritable() bool { return writable(db.tenant) != nil && !db.hasLog() }

func (db *DB) hasLog() bool {
	info, err := os.Stat(db.path + "-wal")
	return err == nil && info.Size() > 0
}

// refusal is why a store that is open for reading takes no writes.
func (db *DB) refusal() error {
	if db.why != nil {
		return db.why
	}
	return belay.Errorf(belay.CodeStoreReadOnly, "the store is open for reading only").At(db.path)
}

// openOrRead opens a store, to read where it can't be written.
func openOrRead(ctx context.Context, dir string, o Options) (*DB, error) {
	db, err := open(ctx, dir, o)
	if !o.OrRead || o.ReadOnly || !cannotWrite(err) {
		return db, err
	}
	o.ReadOnly = true
	if db, failed := open(ctx, dir, o); failed == nil {
		db.why = err
		return db, nil
	} else if !errors.Is(failed, err) && belay.CodeOf(failed) != belay.CodeNotFound {
		return nil, failed
	}
	return nil, err
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// way is how a store is read that is open for reading only.
type way int

const (
	besideOthers way = iota // as SQLite does it
	asItIs                  // as an immutable file: SQLite needs no file beside it, and ignores the log
	asCopy                  // a copy made now, log included
)

// access is how the parts of a store read and write: the connections that read, with
// what readers remember, and the writer.
type access struct {
	*place
	readers *sql.DB
	reading sync.RWMutex // held for reading while a query runs, for writing by Close
	stmts   statements   // of readers

	typeNames   names[string]
	streamNames names[streamName]

	way  way          // to read without a writer
	copy *layout.Copy // that is read; nil: the store itself

	writer *writer // nil when opened read-only
	why    error   // why there is no writer; nil: none was requested
}

// cannotWrite reports whether an error of opening says that only writing is impossible.
func cannotWrite(err error) bool {
	return slices.Contains([]belay.Code{belay.CodeStoreReadOnly, belay.CodeStoreFull}, belay.CodeOf(err))
}

// openToRead finds the way to read a store that may not be writable. SQLite wants a
// file beside the database that processes share. Where it can't make that, a
// database without a log is read as it is, and one with a log from a copy: SQLite
// has no other way to its committed frames that changes nothing.
func (a *access) openToRead() error {
	if a.unwritable() {
		a.way = asItIs
	}
	err := a.readVersion()
	if err == nil || a.way == asItIs || !slices.Contains([]int{layout.CodeCantOpen, layout.CodeReadOnly, layout.CodeFull, layout.CodeIO}, layout.ResultCode(err)) {
		return err
	}
	if err := a.disconnectReaders(); err != nil {
		return err
	}
	if a.way = asItIs; a.hasLog() {
		if a.copy, err = layout.NewCopy(a.life, a.path, ""); err != nil {
			return err
		}
		a.way = asCopy
	}
	return a.readVersion()
}

// readVersion connects readers and refuses a store of a newer program.
func (a *access) readVersion() error {
	if err := a.connectReaders(); err != nil {
		return err
	}
	var version int
	err := a.wrap(a.readers.QueryRowContext(a.life, "PRAGMA user_version").Scan(&version), "open")
	if newest := len(a.o.migrations); err == nil && version > newest {
		err = a.newer(version, newest)
	}
	return err
}

func (a *access) connectReaders() error {
	readers, err := sql.Open("sqlite", a.dsn(url.Values{
		"_pragma": {"busy_timeout(" + strconv.FormatInt(a.o.BusyTimeout.Milliseconds(), 10) + ")", "query_only(1)", "cache_size(-1024)"},
	}))
	if err != nil {
		return a.wrap(err, "open")
	}
	readers.SetMaxOpenConns(a.o.Readers + 1) // one is the watcher's
	readers.SetMaxIdleConns(a.o.Readers + 1)
	a.readers = readers
	return nil
}

// disconnectReaders waits for queries; those that come later see that the store is
// closed.
func (a *access) disconnectReaders() (err error) {
	a.reading.Lock()
	defer a.reading.Unlock()
	a.stmts.close()
	if a.readers != nil {
		err = a.wrap(a.readers.Close(), "close")
	}
	if a.copy != nil {
		err = errors.Join(err, a.copy.Remove())
	}
	return err
}

// dsn names the database for connections that read.
func (a *access) dsn(query url.Values) string {
	path := a.path
	switch a.way {
	case asItIs:
		query.Set("immutable", "1")
	case asCopy:
		path = a.copy.Path
	}
	return dsn(path, "ro", query)
}

// dsn names a database for the driver. The path is escaped as in a URL, so
// that a question mark in a directory's name isn't read as the query.
func dsn(path, mode string, query url.Values) string {
	query.Set("mode", mode)
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// unwritable reports whether this user can't write beside the database and there is no log to read.
func (p *place) unwritable() bool { return writable(p.tenant) != nil && !p.hasLog() }

func (p *place) hasLog() bool {
	info, err := os.Stat(p.path + "-wal")
	return err == nil && info.Size() > 0
}

// refusal is why a store that is open for reading takes no writes.
func (a *access) refusal() error {
	if a.why != nil {
		return a.why
	}
	return belay.Errorf(belay.CodeStoreReadOnly, "the store is open for reading only").At(a.path)
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

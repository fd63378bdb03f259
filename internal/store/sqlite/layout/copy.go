package layout

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	_ "modernc.org/sqlite" // the driver, free of cgo

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
)

// Copy is a copy of a store's database and log in a directory of its own,
// with what the log's frames say about themselves. SQLite may do with the copy
// what it likes.
type Copy struct {
	dir  string // of the copy
	Path string // of the copied database
	Size int64  // of the database file
	Page []byte // the first page, or its beginning, as of the last commit
	Log  Log
}

// copies is how often a copy is tried while the store is being written.
const copies = 8

// NewCopy copies a store. Its files are read as files: nothing is locked
// and nothing written there.
func NewCopy(ctx context.Context, database, temp string) (s *Copy, err error) {
	to, err := os.MkdirTemp(temp, "belay-verify-")
	if err != nil {
		return nil, Unreadable(temp, err)
	}
	s = &Copy{dir: to, Path: filepath.Join(to, "belay.db")}
	var before []Problem
	for n := range copies {
		if n > 0 {
			time.Sleep(time.Duration(n) * 10 * time.Millisecond) // a writer needs no longer for one commit
		}
		var whole bool
		if whole, err = s.take(ctx, database); err != nil {
			break
		}
		// A frame that looks torn may be one that was just being written, so
		// what is wrong with the log must be so twice.
		found := s.Log.Problems
		if whole && (len(found) == 0 || slices.Equal(found, before)) {
			break
		}
		before = found
		err = belay.Errorf(belay.CodeStoreBusy, "the store is written faster than it can be copied").At(database).
			WithHint("repeat the command when less is going on")
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// Remove deletes the copy.
func (s *Copy) Remove() error { return os.RemoveAll(s.dir) }

// state shows whether the files were written between two looks.
type state struct {
	header [HeaderBytes]byte // changes when the log begins anew
	log    int64             // its size
	wrote  time.Time         // to it
	time   time.Time         // the database file's
}

func look(path string) (s state, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	s.time = info.ModTime()
	f, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return s, err
	}
	s.log, s.wrote = info.Size(), info.ModTime()
	_, err = io.ReadFull(f, s.header[:])
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return s, err
}

// take copies once. The copy holds together if the log didn't begin anew
// meanwhile: whatever a checkpoint wrote into the database is in the log too,
// and the log is copied last.
func (s *Copy) take(ctx context.Context, path string) (whole bool, err error) {
	before, err := look(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, belay.Errorf(belay.CodeNotFound, "there is no store").At(path).Wrap(err)
	}
	if err != nil {
		return false, Unreadable(path, err)
	}
	var head bytes.Buffer
	if s.Size, err = copyTo(ctx, s.Path, path, func(r io.Reader) error {
		_, err := io.CopyN(&head, r, 100)
		if err == io.EOF {
			err = nil
		}
		return err
	}); err != nil {
		return false, err
	}
	s.Log = Log{}
	index, known := ReadIndex(path + "-shm") // before the log, which a commit writes first
	_, err = copyTo(ctx, s.Path+"-wal", path+"-wal", func(r io.Reader) (err error) {
		name := filepath.Base(path) + "-wal"
		if s.Log, err = ScanLog(r, name); known {
			s.Log.against(index, name)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if s.Page = head.Bytes(); s.Log.First != nil {
		s.Page = s.Log.First
	}
	after, err := look(path)
	if err != nil {
		return false, Unreadable(path, err)
	}
	changed := before.header != after.header || before.log == 0 && before.time != after.time
	return !changed && (len(s.Log.Problems) == 0 || before == after), nil
}

// copyTo copies a file, handing it to each besides, and returns its size.
func copyTo(ctx context.Context, to, from string, each func(io.Reader) error) (size int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, Unreadable(from, err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, Unreadable(to, err)
	}
	both := io.TeeReader(files.WithContext(ctx, in), out)
	if err = each(both); err == nil {
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, both, make([]byte, 256<<10))
	}
	if info, e := out.Stat(); e == nil {
		size = info.Size()
	} else if err == nil {
		err = e
	}
	return size, Unreadable(from, cmp.Or(err, out.Close()))
}

// Open connects to the copy. Its schema isn't trusted to run anything.
func (s *Copy) Open(ctx context.Context) (*sql.DB, *sql.Conn, error) {
	query := url.Values{"mode": {"rw"}, "_pragma": {"locking_mode(exclusive)", "synchronous(0)", "trusted_schema(0)", "cell_size_check(1)",
		"mmap_size(0)", "cache_size(-4096)", "wal_autocheckpoint(0)"}}
	pool, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: s.Path, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, nil, err
	}
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	return pool, conn, nil
}

// Panic is an error that was a panic.
type Panic struct{ value any }

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprintf("SQLite gave up: %v", p.value) }

// Guard runs what reads a copy. What SQLite makes of damaged pages is its own
// affair: a panic is an error, a *Panic.
func Guard(run func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &Panic{r}
		}
	}()
	return run()
}

// Execute runs a statement on a database, over a connection of its own.
func Execute(ctx context.Context, dsn, statement string) error {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

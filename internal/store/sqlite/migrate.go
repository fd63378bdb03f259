package sqlite

import (
	"os"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// beforeTables only has an effect before the first table is made.
var beforeTables = []string{"PRAGMA page_size=4096", "PRAGMA auto_vacuum=INCREMENTAL"}

// migrate brings the store to this program's version, each step in a
// transaction of its own. A store that already has content is copied first.
func (w *writer) migrate() error {
	version, err := w.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	newest := len(w.db.o.migrations)
	if version > newest {
		return w.db.newer(version, newest)
	}
	if version == 0 {
		if err := w.script(beforeTables...); err != nil {
			return err
		}
	}
	if err := w.walMode(); err != nil {
		return err
	}
	for from := version; from < newest; from++ {
		if err := w.step(from); err != nil {
			return err
		}
	}
	return w.script("PRAGMA synchronous=FULL", "PRAGMA wal_autocheckpoint=0", pagesKept, "PRAGMA temp_store=MEMORY", secureDeleteFast)
}

// pagesKept bounds the pages that the writer keeps, in KiB. The system keeps
// them too, a read of 2 µs away; four times as many made no append faster.
const pagesKept = "PRAGMA cache_size=-1024"

// lightly makes SQLite overwrite what is deleted where that costs no write of
// its own; thoroughly, everywhere.
const (
	secureDeleteFast = "PRAGMA secure_delete=FAST"
	secureDeleteOn   = "PRAGMA secure_delete=ON"
)

func (db *DB) newer(version, known int) error {
	return belay.Errorf(belay.CodeStoreNewer, "the store has version %d, this program knows up to %d", version, known).At(db.path).
		WithHint("use the program that last wrote it, or a newer one")
}

// step runs one migration, unless another process just has.
func (w *writer) step(from int) error {
	began := time.Now()
	if from > 0 {
		if err := w.keepOld(from); err != nil {
			return err
		}
	}
	if err := w.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	now, err := w.number("PRAGMA user_version")
	if err == nil && now == from {
		err = w.change(from)
	}
	if err != nil {
		w.rollback()
		return err
	}
	if err := w.script("COMMIT"); err != nil {
		return err
	}
	if from > 0 && now == from && w.db.o.Migrated != nil {
		w.db.o.Migrated(from, from+1, time.Since(began))
	}
	return nil
}

// keepOld copies the store as it is before a migration. The copy gets its name
// when it is whole, so that a crash leaves none that only looks like one.
func (w *writer) keepOld(version int) error {
	keep := w.db.path + ".v" + strconv.Itoa(version)
	if _, err := os.Stat(keep); err == nil {
		return nil
	}
	part := keep + ".part"
	if err := os.Remove(part); err != nil && !os.IsNotExist(err) {
		return layout.DirectoryError(part, err)
	}
	if err := w.script("VACUUM INTO '" + layout.Quote(part) + "'"); err != nil {
		return err
	}
	if err := os.Rename(part, keep); err != nil {
		return layout.DirectoryError(keep, err)
	}
	return nil
}

func (w *writer) change(from int) error {
	if from == 0 {
		tables, err := w.number("SELECT count(*) FROM sqlite_schema")
		if err != nil {
			return err
		}
		if tables > 0 {
			return w.db.foreign()
		}
	}
	if err := w.script(string(w.db.o.migrations[from])); err != nil {
		return err
	}
	if from == 0 {
		runtime, created := belay.NewID(belay.PrefixRuntime), w.db.o.Now().UTC().Format(time.RFC3339)
		if _, err := w.conn.ExecContext(w.db.life, "INSERT INTO meta (key, value) VALUES ('runtime', ?), ('created', ?), ('sum', ?)",
			runtime, created, layout.MetaSum(runtime, created)); err != nil {
			return w.db.wrap(err, "make the store")
		}
	}
	return w.script("PRAGMA user_version=" + strconv.Itoa(from+1))
}

// walMode switches to write-ahead logging. The switch wants the file alone and
// doesn't wait for that by itself when two processes make a store together.
func (w *writer) walMode() error {
	var mode string
	deadline := time.Now().Add(w.db.o.BusyTimeout)
	for {
		err := w.conn.QueryRowContext(w.db.life, "PRAGMA journal_mode=WAL").Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return belay.Errorf(belay.CodeStoreFailed, "the file system gives no write-ahead log").At(w.db.path).
				WithHint("choose a directory on a local disk with --store")
		case layout.ResultCode(err) != layout.CodeBusy || time.Now().After(deadline):
			return w.db.wrap(err, "open")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

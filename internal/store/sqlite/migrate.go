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
func (c *conn) migrate() error {
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	newest := len(c.db.o.migrations)
	if version > newest {
		return c.db.newer(version, newest)
	}
	if version == 0 {
		if err := c.script(beforeTables...); err != nil {
			return err
		}
	}
	if err := c.walMode(); err != nil {
		return err
	}
	for from := version; from < newest; from++ {
		if err := c.step(from); err != nil {
			return err
		}
	}
	return c.script("PRAGMA synchronous=FULL", "PRAGMA wal_autocheckpoint=0", pagesKept, "PRAGMA temp_store=MEMORY", secureDeleteFast)
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

func (p *place) newer(version, known int) error {
	return belay.Errorf(belay.CodeStoreNewer, "the store has version %d, this program knows up to %d", version, known).At(p.path).
		WithHint("use the program that last wrote it, or a newer one")
}

// step runs one migration, unless another process just has.
func (c *conn) step(from int) error {
	began := time.Now()
	if from > 0 {
		if err := c.keepOld(from); err != nil {
			return err
		}
	}
	if err := c.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	now, err := c.number("PRAGMA user_version")
	if err == nil && now == from {
		err = c.change(from)
	}
	if err != nil {
		_ = c.exec("ROLLBACK")
		return err
	}
	if err := c.script("COMMIT"); err != nil {
		return err
	}
	if from > 0 && now == from && c.db.o.Migrated != nil {
		c.db.o.Migrated(from, from+1, time.Since(began))
	}
	return nil
}

// keepOld copies the store as it is before a migration. The copy gets its name
// when it is whole, so that a crash leaves none that only looks like one.
func (c *conn) keepOld(version int) error {
	keep := c.db.path + ".v" + strconv.Itoa(version)
	if _, err := os.Stat(keep); err == nil {
		return nil
	}
	part := keep + ".part"
	if err := os.Remove(part); err != nil && !os.IsNotExist(err) {
		return layout.DirectoryError(part, err)
	}
	if err := c.script("VACUUM INTO '" + layout.Quote(part) + "'"); err != nil {
		return err
	}
	if err := os.Rename(part, keep); err != nil {
		return layout.DirectoryError(keep, err)
	}
	return nil
}

func (c *conn) change(from int) error {
	if from == 0 {
		tables, err := c.number("SELECT count(*) FROM sqlite_schema")
		if err != nil {
			return err
		}
		if tables > 0 {
			return c.db.foreign()
		}
	}
	if err := c.script(string(c.db.o.migrations[from])); err != nil {
		return err
	}
	if from == 0 {
		runtime, created := belay.NewID(belay.PrefixRuntime), c.db.o.Now().UTC().Format(time.RFC3339)
		if _, err := c.raw.ExecContext(c.db.life, "INSERT INTO meta (key, value) VALUES ('runtime', ?), ('created', ?), ('sum', ?)",
			runtime, created, layout.MetaSum(runtime, created)); err != nil {
			return c.db.wrap(err, "make the store")
		}
	}
	return c.script("PRAGMA user_version=" + strconv.Itoa(from+1))
}

// walMode switches to write-ahead logging. The switch wants the file alone and
// doesn't wait for that by itself when two processes make a store together.
func (c *conn) walMode() error {
	var mode string
	deadline := time.Now().Add(c.db.o.BusyTimeout)
	for {
		err := c.raw.QueryRowContext(c.db.life, "PRAGMA journal_mode=WAL").Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return belay.Errorf(belay.CodeStoreFailed, "the file system gives no write-ahead log").At(c.db.path).
				WithHint("choose a directory on a local disk with --store")
		case layout.ResultCode(err) != layout.CodeBusy || time.Now().After(deadline):
			return c.db.wrap(err, "open")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

package sqlite

import (
	"os"
	"strconv"
	"time"

	"github.com/belay-run/belay"
)

// migration is one step forward: the statements that make a store of the
// version before it one of its own version, which is its place in the list.
type migration string

// migrations only grow at the end.
//
// Facts are in a rowid table with a second index: a table ordered by its key
// is several times slower with rows of this size. Positions come from
// AUTOINCREMENT, so a position is never given twice, also not after the last
// facts were deleted, and so do the numbers of streams, which processes
// remember. A stream's row is its scheduling row besides. A tombstone has a
// position of its own; pending are the numbers of streams whose rows a deletion
// hasn't removed yet. Nothing writes or reads anchors: other versions of the
// program expect the table.
var migrations = []migration{`
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE types (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE streams (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL UNIQUE,
	session TEXT NOT NULL,
	seq INTEGER NOT NULL,
	time INTEGER NOT NULL,
	hash BLOB NOT NULL,
	runnable INTEGER NOT NULL,
	wake INTEGER NOT NULL,
	sum INTEGER NOT NULL
);
CREATE INDEX lanes ON streams (session) WHERE runnable <> 0 OR wake <> 0;
CREATE INDEX of_session ON streams (session);
CREATE TABLE events (
	pos INTEGER PRIMARY KEY AUTOINCREMENT,
	stream INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	time INTEGER NOT NULL,
	type INTEGER NOT NULL,
	version INTEGER NOT NULL,
	requires INTEGER NOT NULL,
	ids BLOB NOT NULL,
	refs BLOB,
	data BLOB NOT NULL,
	hash BLOB NOT NULL,
	UNIQUE (stream, seq)
);
CREATE TABLE keys (stream INTEGER NOT NULL, key BLOB NOT NULL, pos INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (stream, key)) WITHOUT ROWID;
CREATE TABLE inbox (
	num INTEGER PRIMARY KEY,
	stream INTEGER NOT NULL,
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	time INTEGER NOT NULL,
	name TEXT NOT NULL,
	body BLOB NOT NULL,
	sum BLOB NOT NULL
);
CREATE INDEX waiting ON inbox (stream, num);
CREATE TABLE commands (id TEXT PRIMARY KEY, sum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE owners (
	key TEXT PRIMARY KEY,
	owner TEXT NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	start TEXT NOT NULL,
	since INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	lease INTEGER NOT NULL,
	sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX owned ON owners (owner) WHERE owner <> '';
CREATE TABLE writers (session TEXT PRIMARY KEY, epoch INTEGER NOT NULL, path TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE blobs (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, at INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE states (stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, version TEXT NOT NULL, data BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE views (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, pos INTEGER NOT NULL);
CREATE TABLE view_rows (view INTEGER NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, UNIQUE (view, key));
CREATE TABLE anchors (
	stream INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL,
	hash BLOB NOT NULL,
	time INTEGER NOT NULL,
	state BLOB NOT NULL,
	version TEXT NOT NULL,
	sum INTEGER NOT NULL
);
CREATE TABLE tombstones (
	pos INTEGER PRIMARY KEY,
	session TEXT NOT NULL UNIQUE,
	time INTEGER NOT NULL,
	principal TEXT NOT NULL,
	facts INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	restored INTEGER NOT NULL,
	heads BLOB NOT NULL,
	pending BLOB NOT NULL,
	sum INTEGER NOT NULL
);
`}

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
		return directoryError(part, err)
	}
	if err := w.script("VACUUM INTO '" + quoted(part) + "'"); err != nil {
		return err
	}
	if err := os.Rename(part, keep); err != nil {
		return directoryError(keep, err)
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
			runtime, created, metaSum(runtime, created)); err != nil {
			return w.db.wrap(err, "make the store")
		}
	}
	return w.script("PRAGMA user_version=" + strconv.Itoa(from+1))
}

// metaSum covers what a store says of itself.
func metaSum(runtime, created string) string {
	return strconv.FormatInt(sumOf(runtime+"\x00"+created), 10)
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
		case resultCode(err) != codeBusy || time.Now().After(deadline):
			return w.db.wrap(err, "open")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// quoted doubles the quotes of a text that stands in SQL.
func quoted(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] == '\'' {
			out = append(out, '\'')
		}
		out = append(out, s[i])
	}
	return string(out)
}

package sqlite

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

func openStore(t *testing.T, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// wantCode wants an error that a user can act on.
func wantCode(t *testing.T, err error, want belay.Code) {
	t.Helper()
	if err == nil || belay.CodeOf(err) != want {
		t.Fatalf("got %v (%s), want %s", err, belay.CodeOf(err), want)
	}
}

// sqlExec changes the database behind the store's back.
// placeOf is a store that isn't open.
func placeOf(t *testing.T, dir string) *place {
	path := layout.Path(dir)
	return &place{o: Options{}.withDefaults(), path: path, tenant: filepath.Dir(path), life: t.Context()}
}

func sqlExec(t *testing.T, p *place, statement string, args ...any) {
	t.Helper()
	c, err := newConn(p)
	if err != nil {
		t.Fatal(err)
	}
	defer c.disconnect()
	if err := c.exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

// Guarantee: S20.
func TestAStoreIsADirectoryForItsUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b #c%20'd'", "store")
	db := openStore(t, dir, Options{})
	newWork(t, db, "a").append(t, db, "x")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var found []string
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if info, _ := d.Info(); d.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		name, _ := filepath.Rel(dir, path)
		found = append(found, name)
		return err
	})
	if want := []string{".", "tenants", "tenants/default", "tenants/default/belay.db", "tenants/default/blobs"}; !slices.Equal(found, want) {
		t.Fatalf("got %q, want %q", found, want)
	}
}

func TestAnEmptyFileBecomesAStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(layout.Path(dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(layout.Path(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := openStore(t, dir, Options{})
	for query, want := range map[string]string{
		"PRAGMA user_version": strconv.Itoa(len(layout.Migrations)), "PRAGMA auto_vacuum": "2", "PRAGMA page_size": "4096", "PRAGMA journal_mode": "wal",
	} {
		var got string
		if err := db.readers.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", query, got, err, want)
		}
	}
	for query, want := range map[string]int{"PRAGMA synchronous": 2, "PRAGMA wal_autocheckpoint": 0} {
		if got, err := db.writer.number(query); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", query, got, err, want)
		}
	}
	if !strings.HasPrefix(string(db.Runtime()), "rt_") {
		t.Errorf("runtime %q", db.Runtime())
	}
}

func TestAStoreIsMadeInPlaceWhereItCannotBeLinked(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(layout.Path(dir)); err != nil {
		t.Fatal(err)
	}
	c, err := newConn(placeOf(t, dir)) // without create, as where links are refused
	if err != nil {
		t.Fatal(err)
	}
	defer c.disconnect()
	if err := c.migrate(); err != nil {
		t.Fatal(err)
	}
	newWork(t, openStore(t, dir, Options{}), "a").append(t, openStore(t, dir, Options{}), "x")
}

// newerVersion makes a store one of a newer program.
var newerVersion = "PRAGMA user_version=" + strconv.Itoa(len(layout.Migrations)+1)

// Guarantee: S18.
func TestAStoreOfANewerProgramIsRefused(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	sqlExec(t, db.place, newerVersion)
	db.Close()
	before, err := os.ReadFile(layout.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, Options{})
	wantCode(t, err, belay.CodeStoreNewer)
	_, err = Open(t.Context(), dir, Options{ReadOnly: true})
	wantCode(t, err, belay.CodeStoreNewer)
	if after, _ := os.ReadFile(layout.Path(dir)); !slices.Equal(before, after) {
		t.Fatal("the refused file was changed")
	}
}

func TestAnotherProgramsDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	sqlExec(t, db.place, "PRAGMA user_version=0")
	db.Close()
	_, err := Open(t.Context(), dir, Options{})
	wantCode(t, err, belay.CodeStoreDamaged)
	if err := os.WriteFile(layout.Path(dir), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, Options{})
	wantCode(t, err, belay.CodeStoreDamaged)
}

// TestAForeignDatabaseIsNotTouched holds bytes, times and the files beside it of
// databases that other programs made.
// Guarantee: S71.
func TestAForeignDatabaseIsNotTouched(t *testing.T) {
	for name, statements := range map[string][]string{
		"with a journal":             {"CREATE TABLE notes (x)", "INSERT INTO notes VALUES (1)"},
		"with a version of ours":     {"CREATE TABLE meta (key, value)", "PRAGMA user_version=1"},
		"with a version of nobody's": {"CREATE TABLE notes (x)", "PRAGMA user_version=77"},
		"with a log":                 {"PRAGMA journal_mode=WAL", "CREATE TABLE notes (x)", "INSERT INTO notes VALUES (1)"},
	} {
		for _, open := range []bool{false, true} { // by its own program
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Dir(layout.Path(dir)), 0o755); err != nil {
				t.Fatal(err)
			}
			own, err := sql.Open("sqlite", layout.Path(dir))
			if err != nil {
				t.Fatal(err)
			}
			defer own.Close()
			own.SetMaxOpenConns(1)
			for _, s := range statements {
				if _, err := own.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			if !open {
				own.Close()
			}
			before := listing(t, dir)
			for _, o := range []Options{{}, {OrRead: true}, {ReadOnly: true}} {
				_, err = Open(t.Context(), dir, o)
				wantCode(t, err, belay.CodeStoreDamaged)
				if !strings.Contains(err.Error(), "belongs to another program") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if after := listing(t, dir); !slices.Equal(before, after) {
				t.Errorf("%s, open %v: there was %q, and is %q", name, open, before, after)
			}
		}
	}
}

// Guarantee: S18.
func TestMigrationsGoForwardAndKeepTheOldFile(t *testing.T) {
	dir := t.TempDir()
	old := openStore(t, dir, Options{migrations: layout.Migrations[:1]})
	newWork(t, old, "a").append(t, old, "kept")
	runtime := old.Runtime()
	old.Close()
	var steps []int
	next := Options{
		migrations: append(slices.Clip(layout.Migrations), "CREATE TABLE two (x)", "CREATE TABLE three (x)"),
		Migrated:   func(from, to int, took time.Duration) { steps = append(steps, from, to) },
	}
	db := openStore(t, dir, next)
	if !slices.Equal(steps, []int{1, 2, 2, 3, 3, 4}) || db.Runtime() != runtime {
		t.Fatalf("steps %v, runtime %s, want %s", steps, db.Runtime(), runtime)
	}
	db.Close()
	if err := os.Rename(layout.Path(dir)+".v1", layout.Path(dir)); err != nil {
		t.Fatal(err)
	}
	sqlExec(t, placeOf(t, dir), "INSERT INTO views (name, pos) VALUES ('list', 1)") // of rows as they were
	db = openStore(t, dir, Options{})
	if head, err := db.Head(t.Context(), "thread/thr_a"); err != nil || head.Seq != 1 {
		t.Fatalf("the kept file: %+v, %v", head, err)
	}
	if at, err := db.ViewPosition(t.Context(), "list"); at != 0 || err != nil {
		t.Fatalf("a view of the first version is folded up to %d, %v: its rows stand in no list", at, err)
	}
}

func TestAFailedMigrationChangesNothing(t *testing.T) {
	dir := t.TempDir()
	openStore(t, dir, Options{}).Close()
	_, err := Open(t.Context(), dir, Options{migrations: append(slices.Clip(layout.Migrations), "CREATE TABLE two (x); CREATE TABLE two (x)")})
	wantCode(t, err, belay.CodeStoreFailed)
	db := openStore(t, dir, Options{})
	newWork(t, db, "a").append(t, db, "works")
}

// Guarantee: S17.
func TestNetworkFileSystemsAreRefusedByName(t *testing.T) {
	for _, name := range []string{"nfs", "cifs", "9p", "fuse.sshfs"} {
		dir := t.TempDir()
		_, err := Open(t.Context(), dir, Options{FileSystem: func(string) string { return name }})
		wantCode(t, err, belay.CodeStoreNetwork)
		if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), dir) {
			t.Errorf("the error doesn't name %s in %s: %v", name, dir, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%v was made on %s", left, name)
		}
	}
	if name := layout.FileSystem(t.TempDir()); slices.Contains(layout.Networks, name) {
		t.Errorf("the temporary directory counts as %s", name)
	}
}

func TestOpenedForReadingItRefusesWrites(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(t.Context(), dir, Options{ReadOnly: true})
	wantCode(t, err, belay.CodeNotFound)
	rw := openStore(t, dir, Options{})
	w := newWork(t, rw, "a")
	w.append(t, rw, "x")
	for _, name := range []string{"beside a writer", "alone"} {
		db := openStore(t, dir, Options{ReadOnly: true})
		if end, err := db.End(t.Context()); end != 1 || err != nil {
			t.Fatalf("%s: end %d, %v", name, end, err)
		}
		_, err = db.Append(t.Context(), w.b)
		wantCode(t, err, belay.CodeStoreReadOnly)
		_, err = db.Put(t.Context(), []byte("x"), "")
		wantCode(t, err, belay.CodeStoreReadOnly)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		rw.Close()
	}
}

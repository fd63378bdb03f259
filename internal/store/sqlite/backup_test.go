package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/backup"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// stored is a store with something of everything, open.
func stored(t *testing.T) (*DB, *mix) {
	t.Helper()
	db := openStore(t, t.TempDir(), Options{})
	m, err := newMix(t.Context(), db, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.steps(t.Context(), 110); err != nil {
		t.Fatal(err)
	}
	return db, m
}

func storeOf(db *DB) string { return filepath.Dir(filepath.Dir(db.Dir())) }

func TestABackupIsTheStoreAtOnePosition(t *testing.T) {
	db, m := stored(t)
	file, dir := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	end, err := db.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := backup.Write(t.Context(), db, file, backup.Options{})
	if err != nil || made.Position != end || made.Streams != 3 || made.Files == 0 || made.Runtime != db.Runtime() {
		t.Fatalf("%+v, %v", made, err)
	}
	if err := m.steps(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	done, err := backup.Restore(t.Context(), file, dir, backup.Options{})
	if err != nil || done.Manifest != made || done.Aside != "" {
		t.Fatalf("%+v, %v", done, err)
	}
	r := verified(t, dir)
	if !r.OK() || r.Events != made.Facts || r.Position != end || len(r.Warnings) > 0 {
		t.Errorf("%+v", r)
	}
	again := openStore(t, dir, Options{})
	for _, w := range m.works {
		if owner, err := again.OwnerOf(t.Context(), w.Session); owner != nil || err != nil {
			t.Errorf("%s is owned by %+v in the copy, %v", w.Session, owner, err)
		}
		if epoch, err := again.Claim(t.Context(), w.Session, store.ThisProcess(), time.Minute); err != nil || epoch <= w.Epoch {
			t.Errorf("epoch %d after %d, %v", epoch, w.Epoch, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Guarantee: S24.
func TestBackupsUnderLoadAreWhole(t *testing.T) {
	db, m := stored(t)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := m.step(t.Context()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	temp, last := t.TempDir(), store.Position(0)
	for i := range 5 {
		file, dir := filepath.Join(temp, fmt.Sprint("backup", i)), filepath.Join(temp, fmt.Sprint("store", i))
		made, err := backup.Write(t.Context(), db, file, backup.Options{})
		if err != nil || made.Position <= last {
			t.Fatalf("%+v after %d, %v", made, last, err)
		}
		last = made.Position
		if _, err := backup.Restore(t.Context(), file, dir, backup.Options{}); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, dir); !r.OK() || r.Position != last {
			t.Errorf("%+v", r)
		}
	}
	stop()
	wg.Wait()
}

// Guarantee: S35.
func TestADamagedBackupIsRefusedAndNothingChanges(t *testing.T) {
	db, _ := stored(t)
	file, dir := filepath.Join(t.TempDir(), "backup"), whole(t)
	if _, err := backup.Write(t.Context(), db, file, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	intact, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, random := listing(t, filepath.Join(dir, "tenants")), seeded(t)
	try := func(what string, b []byte) {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backup.Restore(t.Context(), file, dir, backup.Options{Replace: true})
		if err == nil || belay.CodeOf(err) != belay.CodeBadBackup && belay.CodeOf(err) != belay.CodeStoreNewer {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for range tries(20) {
		n := random.IntN(len(intact) - 2000)
		try(fmt.Sprint("cut at ", n), intact[:n])
	}
	for at := 0; at < len(intact)-1024; at += 1 + len(intact)/tries(60) {
		b := bytes.Clone(intact)
		b[at] ^= 1 << random.IntN(8)
		if padding(b, at) {
			continue
		}
		try(fmt.Sprint("byte ", at), b)
	}
	try("no backup", []byte("hello"))
	if after := listing(t, filepath.Join(dir, "tenants")); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Errorf("before %q\nafter %q", before, after)
	}
}

// padding reports whether a byte is in what tar fills up with zeros: nobody reads it.
func padding(b []byte, at int) bool {
	block := b[at/512*512:][:512]
	zeros := bytes.Count(block[at%512+1:], []byte{0})
	return zeros == 511-at%512 || bytes.HasPrefix(block[257:], []byte("ustar"))
}

// Guarantee: S35.
func TestRestoreKeepsWhatItReplacesAside(t *testing.T) {
	db, _ := stored(t)
	file, dir := filepath.Join(t.TempDir(), "backup"), whole(t)
	made, err := backup.Write(t.Context(), db, file, backup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = backup.Write(t.Context(), db, file, backup.Options{})
	wantCode(t, err, belay.CodeExists)
	_, err = backup.Restore(t.Context(), file, dir, backup.Options{})
	wantCode(t, err, belay.CodeExists)
	old := verified(t, dir)

	open, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = backup.Restore(t.Context(), file, dir, backup.Options{Replace: true})
	wantCode(t, err, belay.CodeStoreBusy)
	newWork(t, open, "goes on").append(t, open, "x")
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}

	done, err := backup.Restore(t.Context(), file, dir, backup.Options{Replace: true})
	if err != nil || done.Aside == "" {
		t.Fatalf("%+v, %v", done, err)
	}
	if r := verified(t, dir); !r.OK() || r.Events != made.Facts {
		t.Errorf("%+v", r)
	}
	place := t.TempDir()
	if err := os.MkdirAll(filepath.Join(place, "tenants"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(done.Aside, filepath.Dir(layout.Path(place))); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, place); !r.OK() || r.Events != old.Events+1 {
		t.Errorf("aside: %+v", r)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
}

func TestPositionsGoOnBehindTheStoreThatIsReplaced(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	w := newWork(t, db, "a")
	w.append(t, db, "one")
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := backup.Write(t.Context(), db, file, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		w.append(t, db, "later")
	}
	end, err := db.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), file, dir, backup.Options{Replace: true}); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, dir, Options{})
	newWork(t, again, "b").append(t, again, "after")
	if now, err := again.End(t.Context()); err != nil || now <= end {
		t.Errorf("a fact after the restore is at %d, cursors were at %d, %v", now, end, err)
	}
}

// Guarantee: S24.
func TestNothingIsRemovedWhileABackupIsMade(t *testing.T) {
	db, m := stored(t)
	release, err := db.HoldContents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := m.works[0]
	if err := db.Release(t.Context(), b.Session, b.Epoch); err != nil {
		t.Fatal(err)
	}
	_, err = db.DeleteSession(t.Context(), b.Session, "user:mia")
	wantCode(t, err, belay.CodeBusy)
	_, err = backup.Write(t.Context(), db, filepath.Join(t.TempDir(), "second"), backup.Options{})
	wantCode(t, err, belay.CodeBusy)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.DeleteSession(t.Context(), b.Session, "user:mia"); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedStoreIsNotBackedUp(t *testing.T) {
	dir := whole(t)
	sqlExec(t, placeOf(t, dir), "UPDATE events SET time=time+1 WHERE stream=2 AND seq=3")
	db := openStore(t, dir, Options{})
	file := filepath.Join(t.TempDir(), "backup")
	_, err := backup.Write(t.Context(), db, file, backup.Options{})
	wantCode(t, err, belay.CodeStoreDamaged)
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPositionsBeforeARestoreAreKnown: what a store gave after its backup is
// neither given again by the store that is restored, nor by another one of the
// same backup, and is known as lapsed; what is in the backup isn't.
// Guarantee: L22.
func TestPositionsBeforeARestoreAreKnown(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	w := newWork(t, db, "a")
	w.append(t, db, "one")
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := backup.Write(t.Context(), db, file, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	kept, err := db.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		w.append(t, db, "lost")
	}
	lost, err := db.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	given := map[store.Position]bool{}
	for i := range 3 {
		place := t.TempDir()
		clock := func() time.Time { return now.Add(time.Duration(i) * time.Millisecond) }
		if _, err := backup.Restore(t.Context(), file, place, backup.Options{Now: clock}); err != nil {
			t.Fatal(err)
		}
		again := openStore(t, place, Options{})
		lapses(t, again, map[store.Position]bool{kept: false, kept + 1: true, lost: true})
		newWork(t, again, "b").append(t, again, "after")
		end, err := again.End(t.Context())
		if err != nil || end < lost+store.RestoreGap || given[end] || end >= 1<<53 {
			t.Errorf("the restored store goes on at %d, %v", end, err)
		}
		given[end] = true
		lapses(t, again, map[store.Position]bool{0: false, kept: false, kept + 1: true, lost: true, end: false, end + 1: true})
		if r := verified(t, place); !r.OK() {
			t.Errorf("%+v", r)
		}
	}
}

func lapses(t *testing.T, db *DB, want map[store.Position]bool) {
	t.Helper()
	for at, is := range want {
		if got, err := store.RolledBack(t.Context(), db, at); got != is || err != nil {
			t.Errorf("position %d: lapsed %v, want %v, %v", at, got, is, err)
		}
	}
}

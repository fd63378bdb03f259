//go:build linux

package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
	"github.com/belay-run/belay/internal/store/storetest"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// smallDisk is a file system of the test's own.
func smallDisk(t *testing.T, options string) (dir string) {
	t.Helper()
	needs.Root(t)
	dir = t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	needs.Facility(t, "mount", err == nil, fmt.Sprint(err))
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes to a disk until nothing fits.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 16, 1 << 12, 1} {
		for b := make([]byte, size); err == nil; {
			_, err = f.Write(b)
		}
		err = nil
	}
}

// left are the ways in which something leaves a store.
var left = []struct {
	name string
	make func(t *testing.T, dir string)
}{
	{"closed", func(t *testing.T, dir string) { copyStore(t, whole(t), dir) }},
	{"killed", func(t *testing.T, dir string) {
		from, _ := killed(t)
		copyStore(t, from, dir)
		if err := os.Rename(layout.Path(dir)+"-index", layout.Path(dir)+"-shm"); err != nil {
			t.Fatal(err)
		}
	}},
	{"killed, and its index is gone", func(t *testing.T, dir string) {
		from, _ := killed(t)
		copyStore(t, from, dir)
	}},
}

func copyStore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestAStoreThatCannotBeWrittenCanBeRead opens stores as they are left on disks that
// are full or read-only: every fact is there, and writes are refused with the reason.
// Guarantee: S70.
func TestAStoreThatCannotBeWrittenCanBeRead(t *testing.T) {
	for _, state := range []struct {
		name string
		code belay.Code
		set  func(t *testing.T, dir string)
	}{
		{"full", belay.CodeStoreFull, fill},
		{"read-only", belay.CodeStoreReadOnly, func(t *testing.T, dir string) {
			if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, was := range left {
			t.Run(state.name+"/"+was.name, func(t *testing.T) {
				dir := smallDisk(t, "size=16m")
				was.make(t, dir)
				want := verified(t, dir)
				state.set(t, dir)
				before := listing(t, dir)
				db, err := Open(t.Context(), dir, Options{OrRead: true})
				if err != nil {
					t.Fatal(err)
				}
				facts := 0
				for _, err := range db.Scan(t.Context(), 0) {
					if err != nil {
						t.Fatal(err)
					}
					facts++
				}
				if end, err := db.End(t.Context()); facts != want.Events || end != want.Position || err != nil {
					t.Errorf("%d facts up to %d, want %d up to %d, %v", facts, end, want.Events, want.Position, err)
				}
				wantCode(t, written(t, db), state.code)
				keepsAView(t, db)
				if err := db.Close(); err != nil {
					t.Error(err)
				}
				if after := listing(t, dir); state.name == "read-only" && !slices.Equal(before, after) {
					t.Errorf("there was %v, and is %v", before, after)
				}
				if r := verified(t, dir); !r.OK() || r.Events != want.Events {
					t.Errorf("afterwards: %d facts, %v", r.Events, r.Problems)
				}
			})
		}
	}
}

// written is the error of the first write that needs space.
func written(t *testing.T, db *DB) (err error) {
	t.Helper()
	b := store.Batch{Session: "sess_more", Stream: "thread/thr_more"}
	for err == nil {
		if b.Epoch, err = db.Claim(t.Context(), b.Session, store.ThisProcess(), 0); err == nil {
			_, err = db.Put(t.Context(), make([]byte, 1<<20), "")
		}
	}
	return err
}

// keepsAView moves a view where it can't be written.
func keepsAView(t *testing.T, db *DB) {
	t.Helper()
	ctx := t.Context()
	from, err := db.ViewPosition(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	big := make([]byte, 1<<20) // doesn't fit into what is left of any page
	for i, rows := range []map[string][]byte{{"b": big, "c": []byte("c")}, {"a": []byte("a"), "c": nil}} {
		if err := db.SaveView(ctx, "test", from+store.Position(i), from+store.Position(i)+1, storetest.DataRows(rows)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.SaveView(ctx, "test", from, from+5, nil); err != store.ErrConflict {
		t.Errorf("from another position: %v", err)
	}
	var keys []string
	for key := range db.ViewRows(ctx, "test", "") {
		if key < "d" { // another one may be there already
			keys = append(keys, key)
		}
	}
	row, err := db.ViewRow(ctx, "test", "b")
	if gone, _ := db.ViewRow(ctx, "test", "c"); !slices.Equal(keys, []string{"a", "b"}) || len(row) != len(big) || err != nil || gone != nil {
		t.Errorf("rows %v, %d bytes, %v, %v", keys, len(row), gone, err)
	}
	if at, err := db.ViewPosition(ctx, "test"); at != from+2 || err != nil {
		t.Errorf("at %d, %v", at, err)
	}
}

// TestViewsInMemoryAreWrittenWhenThereIsSpaceAgain continues with a store whose disk
// was full.
// Guarantee: S70.
func TestViewsInMemoryAreWrittenWhenThereIsSpaceAgain(t *testing.T) {
	dir := smallDisk(t, "size=8m")
	db := openStore(t, dir, Options{})
	if err := db.SaveView(t.Context(), "test", 0, 1, storetest.DataRows(map[string][]byte{"c": []byte("old"), "d": []byte("d")})); err != nil {
		t.Fatal(err)
	}
	fill(t, dir)
	keepsAView(t, db)
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	if err := db.SaveView(t.Context(), "test", 3, 4, storetest.DataRows(map[string][]byte{"e": []byte("e")})); err != nil || db.kept.any.Load() {
		t.Fatalf("with space again: %v, kept %v", err, db.kept.byName)
	}
	other := openStore(t, dir, Options{})
	var keys []string
	for key := range other.ViewRows(t.Context(), "test", "") {
		keys = append(keys, key)
	}
	if at, err := other.ViewPosition(t.Context(), "test"); at != 4 || err != nil || !slices.Equal(keys, []string{"a", "b", "d", "e"}) {
		t.Errorf("written are %v at %d, %v", keys, at, err)
	}
}

// TestListsInMemoryAreThoseOfTheRows: also where some rows of a view are kept in memory.
// Guarantee: S70.
func TestListsInMemoryAreThoseOfTheRows(t *testing.T) {
	storetest.Lists(t, storetest.Config{
		Open: func(t *testing.T, env *storetest.Env) store.Store { return openStore(t, t.TempDir(), Options{}) },
	}, func(r *rapid.T, s store.Store) {
		w := s.(*DB).writer
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.failed = nil; rapid.Bool().Draw(r, "full") {
			w.failed = belay.Errorf(belay.CodeStoreFull, "no space")
		}
	})
}

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/backup"
	"github.com/belay-run/belay/internal/testkit/failfs"
)

// TestFaultABackupIsThereWholeOrNotAtAll fails each operation of the disk once.
func TestFaultABackupIsThereWholeOrNotAtAll(t *testing.T) {
	for _, problem := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 1; ; at++ {
			disk := &failfs.Failing{}
			db := openStore(t, t.TempDir(), Options{FS: disk})
			m, err := newMix(t.Context(), db, 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.steps(t.Context(), 12); err != nil {
				t.Fatal(err)
			}
			disk.At, disk.N, disk.Err = at, 0, problem
			file := filepath.Join(t.TempDir(), "backup")
			_, err = backup.Write(t.Context(), db, file, backup.Options{FS: disk})
			if !disk.Hit {
				if err != nil || at < 8 {
					t.Errorf("without a fault: %v after %d operations", err, disk.N)
				}
				break
			}
			if code := belay.CodeOf(err); err == nil || code != belay.CodeDiskFull && code != belay.CodeNotWritten {
				t.Errorf("%s %d, %v: %v", disk.Op, at, problem, err)
			}
			left, _ := os.ReadDir(filepath.Dir(file))
			for _, e := range left {
				if e.Name() == "backup" && !disk.Renamed || e.Name() != "backup" && disk.Op != "remove" {
					t.Errorf("%s %d, %v: %s is left", disk.Op, at, problem, e.Name())
				}
			}
			if err := m.steps(t.Context(), 2); err != nil {
				t.Errorf("%s %d, %v: the store doesn't go on: %v", disk.Op, at, problem, err)
			}
		}
	}
}

// TestFaultARestoreLeavesOneOfBothStores fails each operation of the disk once
// while a store is replaced: what is there is the old or the new one, whole, and
// the old one isn't lost.
// Guarantee: S35.
func TestFaultARestoreLeavesOneOfBothStores(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	newWork(t, db, "new").append(t, db, "new")
	if _, err := db.Put(t.Context(), []byte(strings.Repeat("large", 20_000)), ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	made, err := backup.Write(t.Context(), db, file, backup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 1; ; at++ {
			dir := t.TempDir()
			before, err := Open(t.Context(), dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := newWork(t, before, "old")
			w.append(t, before, "old")
			w.append(t, before, "old")
			runtime := before.Runtime()
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			disk := &failfs.Failing{At: at, Err: problem}
			now := time.Date(2026, 3, 1, 0, 0, at, 0, time.UTC)
			done, err := backup.Restore(t.Context(), file, dir, backup.Options{Replace: true, FS: disk, Now: func() time.Time { return now }})
			what := fmt.Sprintf("%s %d, %v", disk.Op, at, problem)
			if (err != nil) != disk.Hit {
				t.Errorf("%s: %v", what, err)
			}
			if code := belay.CodeOf(err); err != nil && code != belay.CodeStoreFull && code != belay.CodeStoreFailed {
				t.Errorf("%s: %v", what, err)
			}
			r := verified(t, dir)
			isNew := r.Runtime == made.Runtime
			if !r.OK() || !isNew && (r.Runtime != runtime || r.Events != 2) || err == nil && !isNew {
				t.Errorf("%s: %+v", what, r)
			}
			aside, _ := filepath.Glob(filepath.Join(dir, "tenants", "default.before-*"))
			if isNew != (len(aside) == 1) {
				t.Errorf("%s: new is %v, aside %q", what, isNew, aside)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
				t.Errorf("%s: left behind: %q", what, left)
			}
			again, err := Open(t.Context(), dir, Options{})
			if err := errors.Join(err, again.Close()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if !disk.Hit {
				if done.Aside == "" || at < 10 {
					t.Errorf("without a fault: %+v after %d operations", done, disk.N)
				}
				break
			}
		}
	}
}

package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

var errDisk = errors.New("the disk says no")

// failing is a disk whose n-th operation fails, and those after it if it is dead.
type failing struct {
	files.System
	n    int
	dead bool
	done int
}

func (f *failing) next() error {
	f.done++
	if f.done == f.n || f.dead && f.done > f.n {
		return errDisk
	}
	return nil
}

func (f *failing) Mkdir(path string) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.System.Mkdir(path)
}

func (f *failing) Create(path string) (files.File, error) {
	if err := f.next(); err != nil {
		return nil, err
	}
	file, err := f.System.Create(path)
	return &failingFile{file, f}, err
}

func (f *failing) Rename(from, to string) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.System.Rename(from, to)
}

func (f *failing) Remove(path string) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.System.Remove(path)
}

func (f *failing) SyncDir(path string) error {
	if err := f.next(); err != nil {
		return err
	}
	return f.System.SyncDir(path)
}

type failingFile struct {
	files.File
	fs *failing
}

func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.fs.next(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.fs.next(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *failingFile) Close() error {
	err := f.File.Close()
	return errors.Join(f.fs.next(), err)
}

func TestLargeContentIsWholeOrNotThere(t *testing.T) {
	data := bytes.Repeat([]byte("content "), 10000)
	for _, dead := range []bool{false, true} {
		for n := 1; ; n++ {
			disk := &failing{n: n, dead: dead}
			dir := t.TempDir()
			db := openStore(t, dir, Options{FS: disk})
			_, putErr := db.Put(t.Context(), data, "")
			if disk.done < n {
				if putErr != nil || n < 7 {
					t.Fatalf("after %d operations: %v", disk.done, putErr)
				}
				break
			}
			if putErr == nil {
				t.Errorf("operation %d failed and Put didn't say so", n)
			}
			got, err := db.Get(t.Context(), belay.DigestOf(data))
			if err == nil && !bytes.Equal(got, data) || belay.CodeOf(err) == belay.CodeStoreDamaged {
				t.Errorf("operation %d: got %d bytes, %v", n, len(got), err)
			}
			disk.n, disk.dead = 0, false
			if _, err := db.Put(t.Context(), data, ""); err != nil {
				t.Errorf("again after operation %d: %v", n, err)
			}
			if got, err := db.Get(t.Context(), belay.DigestOf(data)); err != nil || !bytes.Equal(got, data) {
				t.Errorf("again after operation %d: got %d bytes, %v", n, len(got), err)
			}
			if !dead {
				leftovers(t, dir, n)
			}
		}
	}
}

// leftovers wants no unfinished files.
func leftovers(t *testing.T, dir string, n int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(layout.BlobDir(dir), layout.Unfinished+"*"))
	if err != nil || len(names) > 0 {
		t.Errorf("operation %d left %v, %v", n, names, err)
	}
}

func TestSmallContentThatCouldNotBeWrittenGoesBeforeTheNextAppend(t *testing.T) {
	dir := t.TempDir()
	var f fault
	db := openStore(t, dir, Options{fault: f.at})
	w := newWork(t, db, "a")
	ref, err := db.Put(t.Context(), []byte("named soon"), "")
	if err != nil {
		t.Fatal(err)
	}
	f.set(result(layout.CodeFull))
	wantCode(t, w.try(t.Context(), db, "x"), belay.CodeStoreFull)
	if _, err := db.Get(t.Context(), ref.Digest); err != nil {
		t.Fatalf("what waits can't be read: %v", err)
	}
	f.set(nil)
	w.append(t, db, "x")
	other := openStore(t, dir, Options{})
	if _, err := other.Get(t.Context(), ref.Digest); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	var f fault
	db := openStore(t, t.TempDir(), Options{fault: f.at})
	f.set(result(layout.CodeFull))
	var err error
	n := 0
	for content := make([]byte, smallBlobMax); err == nil && n < 2000; n++ {
		content[0], content[1] = byte(n), byte(n>>8)
		_, err = db.Put(t.Context(), content, "")
		if n == 100 {
			pagesOf(db, "PRAGMA user_version") // its answer says that the writer has tried
		}
	}
	wantCode(t, err, belay.CodeStoreFull)
	f.set(nil)
}

func TestContentAsLongAsMemoryIsNotHeldThere(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	w, err := db.Writer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	piece := []byte(strings.Repeat("p", 1<<20))
	if _, err := w.Write(piece[:100]); err != nil {
		t.Fatal(err)
	}
	used := testing.AllocsPerRun(20, func() {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	})
	if used > 10 {
		t.Errorf("%v allocations per megabyte", used)
	}
	b := w.(*blobWriter)
	if info, err := os.Stat(b.temp); err != nil || info.Size() != b.size || b.small != nil {
		t.Errorf("the file has %v of %d bytes, %v", info, b.size, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	leftovers(t, storeDir(db), 0)
}

func TestUnfinishedFilesAreSweptAfterADay(t *testing.T) {
	dir := t.TempDir()
	openStore(t, dir, Options{}).Close()
	old, young := filepath.Join(layout.BlobDir(dir), layout.Unfinished+"old"), filepath.Join(layout.BlobDir(dir), layout.Unfinished+"young")
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(old, yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir, Options{})
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old file: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the young file, which may be somebody's: %v", err)
	}
}

// diary is a disk that writes down what is asked of it.
type diary struct {
	files.System
	root string
	did  []string
}

func (d *diary) note(what, path string) {
	name, _ := filepath.Rel(d.root, path)
	if strings.HasPrefix(name, layout.Unfinished) {
		name = "unfinished"
	}
	d.did = append(d.did, what+" "+name)
}

func (d *diary) Mkdir(path string) error {
	d.note("mkdir", path)
	return d.System.Mkdir(path)
}

func (d *diary) Create(path string) (files.File, error) {
	d.note("create", path)
	f, err := d.System.Create(path)
	return diaryFile{f, d, path}, err
}

func (d *diary) Rename(from, to string) error {
	d.note("rename", to)
	return d.System.Rename(from, to)
}

func (d *diary) SyncDir(path string) error {
	d.note("sync", path)
	return d.System.SyncDir(path)
}

type diaryFile struct {
	files.File
	d    *diary
	path string
}

func (f diaryFile) Sync() error {
	f.d.note("sync", f.path)
	return f.File.Sync()
}

// Guarantee: S10.
func TestLargeContentIsSyncedBeforeItHasItsNameAndTheNameAfter(t *testing.T) {
	dir := t.TempDir()
	disk := &diary{root: layout.BlobDir(dir)}
	db := openStore(t, dir, Options{FS: disk})
	ref, err := db.Put(t.Context(), bytes.Repeat([]byte("x"), 100_000), "")
	if err != nil {
		t.Fatal(err)
	}
	name, err := filepath.Rel(layout.BlobDir(dir), layout.ContentFile(db.blobs, ref.Digest))
	if err != nil {
		t.Fatal(err)
	}
	sub := filepath.Dir(name)
	want := []string{"create unfinished", "sync unfinished", "mkdir " + sub, "sync .", "rename " + name, "sync " + sub}
	if !slices.Equal(disk.did, want) {
		t.Errorf("got %q\nwant %q", disk.did, want)
	}
}

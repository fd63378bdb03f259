package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
)

// Restored is what Restore did.
type Restored struct {
	Manifest
	Aside string // where the store that was there is now; empty when there was none
}

// Restore makes the store in a directory from a backup: it unpacks it beside,
// verifies every byte of it against its manifest and its heads, and only then
// gives it the store's place. A store that holds something is refused, or kept
// aside when that is forced, and never while a process has it open.
func Restore(ctx context.Context, file, dir string, o Options) (done Restored, err error) {
	o = o.withDefaults()
	u := unpacking{o: o, file: file, dir: dir, temp: filepath.Join(dir, layout.Unfinished+rand.Text())}
	full, err := u.holdsSomething(ctx)
	if err != nil {
		return done, err
	}
	if full && !o.Replace {
		return done, belay.Errorf(belay.CodeExists, "there is a store, and it isn't empty").At(dir).
			WithHint("--force keeps it aside, --store DIR names another place")
	}
	if err := layout.MakeDirectory(filepath.Join(dir, "tenants")); err != nil {
		return done, layout.DirectoryError(dir, err)
	}
	if err := layout.RefuseNetwork(dir, o.FileSystem); err != nil {
		return done, err
	}
	layout.Sweep(filepath.Join(dir, layout.Unfinished+"*"))
	defer func() { err = errors.Join(err, os.RemoveAll(u.temp)) }()
	if err := u.unpack(ctx); err != nil {
		return done, err
	}
	if err := u.verify(ctx); err != nil {
		return done, err
	}
	if err := u.setApart(ctx); err != nil {
		return done, layout.FileError(layout.Path(u.temp), err)
	}
	done.Manifest = u.m
	done.Aside, err = u.takePlace(ctx, full)
	return done, err
}

// unpacking is a backup on its way into a directory.
type unpacking struct {
	o     Options
	file  string
	dir   string
	temp  string // laid out as a store's directory
	m     Manifest
	heads []store.Head
}

// holdsSomething reports whether there is a store with more than its tables.
func (u *unpacking) holdsSomething(ctx context.Context) (full bool, err error) {
	if _, err := os.Stat(layout.Path(u.dir)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	snap, err := layout.NewCopy(ctx, layout.Path(u.dir), "")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, snap.Remove()) }()
	full = true // what can't be read isn't empty
	_ = layout.Guard(func() error {
		pool, conn, err := snap.Open(ctx)
		if err != nil {
			return err
		}
		defer pool.Close()
		defer conn.Close()
		return conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM streams) OR EXISTS (SELECT 1 FROM tombstones)").Scan(&full)
	})
	return full, nil
}

func (u *unpacking) bad(format string, args ...any) error {
	return belay.Errorf(belay.CodeBadBackup, format, args...).At(u.file).WithHint("use another backup; nothing was changed")
}

// unpack writes the members below temp, each checked while it is written.
func (u *unpacking) unpack(ctx context.Context) error {
	f, err := os.Open(u.file)
	if err != nil {
		return outside(u.file, err)
	}
	defer f.Close()
	if err := os.MkdirAll(layout.BlobDir(u.temp), 0o700); err != nil {
		return layout.DirectoryError(u.temp, err)
	}
	in := tar.NewReader(files.WithContext(ctx, f))
	var manifest, heads bytes.Buffer
	if err := u.small(in, manifestMember, mostManifest, &manifest); err != nil {
		return err
	}
	if err := json.Unmarshal(manifest.Bytes(), &u.m); err != nil || u.m.Format < 1 {
		return u.bad("it has no manifest that can be read")
	}
	if u.m.Format > backupFormat || u.m.Version > len(layout.Migrations) {
		return belay.Errorf(belay.CodeStoreNewer, "the backup was made by a newer program").At(u.file).WithHint("update belay; nothing was changed")
	}
	if err := u.small(in, headsMember, u.m.Heads.Size, &heads); err != nil {
		return err
	}
	if belay.DigestOf(heads.Bytes()) != u.m.Heads.Digest {
		return u.bad("its heads aren't what the manifest says")
	}
	if u.heads, err = verify.ReadHeads(&heads); err != nil {
		return u.bad("its heads can't be read: %v", err)
	}
	h, err := in.Next()
	if err != nil || h.Name != dbMember || h.Size != u.m.Database.Size {
		return u.bad("it has no database, or is cut off")
	}
	if err := u.extract(in, layout.Path(u.temp), u.m.Database.Digest, h.Size); err != nil {
		return err
	}
	return u.contents(in)
}

// small reads a member into memory.
func (u *unpacking) small(in *tar.Reader, name string, limit int64, into *bytes.Buffer) error {
	h, err := in.Next()
	if err != nil || h.Name != name || h.Typeflag != tar.TypeReg || h.Size > limit {
		return u.bad("it is no backup of a store, or is cut off: %s is not where it must be", name)
	}
	if _, err := io.Copy(into, in); err != nil {
		return u.bad("it can't be read: %v", err)
	}
	return nil
}

func (u *unpacking) contents(in *tar.Reader) error {
	files, size := 0, int64(0)
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return u.bad("it is cut off or damaged: %v", err)
		}
		name, ok := strings.CutPrefix(h.Name, blobsMember)
		first, rest, _ := strings.Cut(name, "/")
		digest := belay.Digest("sha256:" + first + rest)
		if _, valid := store.RawDigest(digest); !ok || !valid || len(first) != 2 || h.Typeflag != tar.TypeReg {
			return u.bad("it has a member that belongs to no store: %q", h.Name)
		}
		dir := filepath.Join(layout.BlobDir(u.temp), first)
		if err := u.o.FS.Mkdir(dir); err != nil {
			return layout.DirectoryError(dir, err)
		}
		if err := u.extract(in, filepath.Join(dir, rest), digest, h.Size); err != nil {
			return err
		}
		if err := u.o.FS.SyncDir(dir); err != nil {
			return layout.DirectoryError(dir, err)
		}
		files, size = files+1, size+h.Size
	}
	if files != u.m.Files || size != u.m.Bytes {
		return u.bad("it is cut off: it has %d of %d contents", files, u.m.Files)
	}
	for _, dir := range []string{layout.BlobDir(u.temp), filepath.Dir(layout.BlobDir(u.temp))} {
		if err := u.o.FS.SyncDir(dir); err != nil {
			return layout.DirectoryError(dir, err)
		}
	}
	return nil
}

// extract writes a synced file that must have a digest and a size.
func (u *unpacking) extract(in io.Reader, path string, want belay.Digest, size int64) error {
	f, err := u.o.FS.Create(path)
	if err != nil {
		return layout.DirectoryError(path, err)
	}
	sum := sha256.New()
	out := &watched{w: f}
	n, err := io.Copy(io.MultiWriter(sum, out), in)
	if out.err == nil && err != nil {
		err = u.bad("it is cut off or damaged: %v", err)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		return layout.FileError(path, err)
	}
	if n != size || hex.EncodeToString(sum.Sum(nil)) != string(want[min(len(want), len("sha256:")):]) {
		return u.bad("%s isn't what was backed up", filepath.Base(path))
	}
	return nil
}

// watched remembers that writing failed, not reading.
type watched struct {
	w   io.Writer
	err error
}

func (f *watched) Write(p []byte) (n int, err error) {
	n, err = f.w.Write(p)
	f.err = err
	return n, err
}

func (u *unpacking) verify(ctx context.Context) error {
	r, err := verify.Run(ctx, u.temp, verify.Options{Against: u.heads})
	if err != nil {
		return err
	}
	for _, p := range append(r.Problems, r.Differences...) {
		return u.bad("the store in it isn't whole: %s", p)
	}
	if r.Events != u.m.Facts || r.Streams != u.m.Streams || r.Runtime != u.m.Runtime {
		return u.bad("it has %d facts in %d streams, its manifest says %d in %d", r.Events, r.Streams, u.m.Facts, u.m.Streams)
	}
	return nil
}

// takePlace gives the unpacked store the place of the one that is there.
func (u *unpacking) takePlace(ctx context.Context, keep bool) (aside string, err error) {
	fresh, place := filepath.Dir(layout.Path(u.temp)), filepath.Dir(layout.Path(u.dir))
	tenants := filepath.Dir(place)
	if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
		if err := u.o.FS.Rename(fresh, place); err != nil {
			return "", layout.DirectoryError(place, err)
		}
		return "", syncError(place, u.o.FS.SyncDir(tenants))
	}
	// The new store waits under the name that the old one gets: then one step
	// gives each its place, and at no moment is either below a name that is swept.
	aside = place + ".before-" + u.o.Now().UTC().Format("20060102T150405Z")
	if _, err := os.Lstat(aside); err == nil {
		return "", belay.Errorf(belay.CodeExists, "another store was put aside in this second").At(aside).WithHint("repeat the command")
	}
	if err := u.o.FS.Rename(fresh, aside); err != nil {
		return "", layout.DirectoryError(aside, err)
	}
	old, exchanged := filepath.Join(aside, filepath.Base(layout.Path(u.dir))), false
	err = alone(ctx, layout.Path(u.dir), func(end int64) error {
		if err := continueAfter(ctx, old, end); err != nil {
			return err
		}
		err := exchange(aside, place)
		exchanged = err == nil
		return err
	})
	if !exchanged {
		if belay.CodeOf(err) != belay.CodeStoreBusy {
			_ = onFile(ctx, layout.Path(u.dir), walAgain)
		}
		return "", errors.Join(layout.FileError(place, err), os.RemoveAll(aside))
	}
	if err := u.o.FS.SyncDir(tenants); err != nil {
		return aside, layout.DirectoryError(place, err)
	}
	if !keep { // it was empty
		return "", syncError(aside, os.RemoveAll(aside))
	}
	_ = onFile(ctx, old, walAgain) // a damaged one stays as it is
	return aside, nil
}

// walAgain undoes what alone did to a database that continues.
const walAgain = "PRAGMA journal_mode=WAL"

// alone runs a change of a database's place while no process has it open. What
// can't be opened is open nowhere.
func alone(ctx context.Context, path string, change func(end int64) error) (err error) {
	pool, err := sql.Open("sqlite", dsnOf(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	pool.SetMaxOpenConns(1)
	var mode string
	var end int64
	// A write-ahead log has a name, which will be another store's: it goes first.
	err = pool.QueryRowContext(ctx, "PRAGMA journal_mode=DELETE").Scan(&mode)
	if err == nil && mode == "delete" {
		_, err = pool.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if layout.ResultCode(err) == layout.CodeBusy || layout.ResultCode(err) == layout.CodeLocked || err == nil && mode != "delete" {
		return belay.Errorf(belay.CodeStoreBusy, "another process has the store open").At(path).WithHint("end it and repeat the command; nothing was changed").Wrap(err)
	}
	if err == nil {
		_ = pool.QueryRowContext(ctx, "SELECT seq FROM sqlite_sequence WHERE name='events'").Scan(&end)
		defer pool.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") //nolint:errcheck // it has changed nothing
	}
	return change(end)
}

// ticks are how many positions a restored store is ahead for each millisecond of
// the clock: more than are ever given in one. So what is given after one restoring
// isn't given again after another of the same backup, and whole numbers of
// JavaScript have room for it until the year 2109.
const ticks = 2048

// setApart makes positions go on far behind those in the backup, and behind all
// that the store may have given since it was made: store.RolledBack knows them by that.
func (u *unpacking) setApart(ctx context.Context) error {
	base := strconv.FormatInt(u.o.Now().UnixMilli()*ticks, 10)
	return onFile(ctx, layout.Path(u.temp), "UPDATE sqlite_sequence SET seq=max(seq+"+strconv.FormatInt(2*int64(store.RestoreGap), 10)+", "+base+") WHERE name='events'")
}

// continueAfter makes positions go on behind those that the store which is
// replaced has given: a follower's cursor would skip facts otherwise.
func continueAfter(ctx context.Context, path string, end int64) error {
	return onFile(ctx, path, "UPDATE sqlite_sequence SET seq=max(seq, "+strconv.FormatInt(end, 10)+") WHERE name='events'")
}

// onFile runs a statement on a database that no process has open.
func onFile(ctx context.Context, path, statement string) error {
	return layout.Execute(ctx, (&url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=synchronous(FULL)"}).String(), statement)
}

func syncError(path string, err error) error {
	if err == nil {
		return nil
	}
	return layout.DirectoryError(path, err)
}

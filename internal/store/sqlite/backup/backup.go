// Package backup writes a SQLite store into one file while others use it, and makes a
// store from such a file. Both are verified before anything gets its name.
package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
)

// Members of a backup, which is a tar file, in this order. What follows are the
// large contents under the names they have in the store.
const (
	manifestMember = "manifest.json"
	headsMember    = "heads.jsonl"
	dbMember       = "belay.db"
	blobsMember    = "blobs/"

	backupFormat = 1
	mostManifest = 1 << 20
)

// Manifest says what a backup holds. It comes first.
type Manifest struct {
	Format   int             `json:"format"`
	Runtime  belay.RuntimeID `json:"runtime"`
	Made     time.Time       `json:"made"`
	Version  int             `json:"version"`  // of the store's tables
	Position store.Position  `json:"position"` // everything up to here is in it, and nothing after
	Streams  int             `json:"streams"`
	Facts    int             `json:"facts"`
	Database Part            `json:"database"`
	Heads    Part            `json:"heads"`
	Files    int             `json:"files"` // large contents
	Bytes    int64           `json:"bytes"` // of them
}

// Part is a member that the manifest describes.
type Part struct {
	Digest belay.Digest `json:"digest"`
	Size   int64        `json:"size"`
}

// Source is a store that is backed up.
type Source interface {
	// Dir is the directory of the store's files.
	Dir() string
	// HoldContents keeps others from removing content, until release.
	HoldContents(ctx context.Context) (release func() error, err error)
	// CopyDatabase writes the database, as one read transaction sees it, to a new file.
	CopyDatabase(ctx context.Context, path string) error
}

// Options of Write and Restore. The zero value works.
type Options struct {
	Replace    bool                    // Write: a file that is there goes; Restore: a store that is there is kept aside
	FS         files.FS                // writes the files; the system's
	Now        func() time.Time        // when the backup is made, and names what is kept aside; the system's clock
	FileSystem func(dir string) string // Restore: names the file system a directory is on; the system's mount table
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = files.System{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Write writes what a store holds at one position into a new file, while
// others write on. The file has its name when it is whole, was verified and is
// synced; a file that is there is only replaced when that is wanted.
func Write(ctx context.Context, from Source, file string, o Options) (m Manifest, err error) {
	o = o.withDefaults()
	if _, err := os.Lstat(file); err == nil && !o.Replace {
		return m, belay.Errorf(belay.CodeExists, "the file exists").At(file).WithHint("name another one, or use --force")
	}
	release, err := from.HoldContents(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, release()) }()
	layout.Sweep(filepath.Join(filepath.Dir(file), files.Unfinished+"*"))
	temp, err := os.MkdirTemp(filepath.Dir(file), files.Unfinished)
	if err != nil {
		return m, outside(file, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	b := backup{from: from, o: o, file: file, dir: temp}
	if err := b.snapshot(ctx); err != nil {
		return m, err
	}
	if err := b.verify(ctx); err != nil {
		return m, err
	}
	if err := b.describe(ctx); err != nil {
		return m, err
	}
	err = files.WriteWhole(o.FS, file, func(w io.Writer) error { return b.write(ctx, w) })
	return b.m, err
}

// backup is one on its way.
type backup struct {
	from  Source
	o     Options
	file  string
	dir   string // laid out as a store's directory
	heads bytes.Buffer
	m     Manifest
	blobs []blobFile
}

// blobDir is where the store has its large contents.
func (b *backup) blobDir() string { return filepath.Join(b.from.Dir(), "blobs") }

// snapshot copies the database as one read transaction sees it. Owners belong to
// this store: the copy has none.
func (b *backup) snapshot(ctx context.Context) (err error) {
	path := layout.Path(b.dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return outside(b.file, err)
	}
	if err := b.from.CopyDatabase(ctx, path); err != nil {
		return b.failed(ctx, err)
	}
	for _, statement := range []string{
		"PRAGMA synchronous=OFF",
		"UPDATE owners SET owner='', lease=0",
		"DELETE FROM owners WHERE key='" + string(layout.BackupKey) + "'",
		"DELETE FROM writers",
		"PRAGMA journal_mode=WAL",
	} {
		if err := layout.Execute(ctx, dsnOf(path), statement); err != nil {
			return b.failed(ctx, err)
		}
	}
	return nil
}

func dsnOf(path string) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"mode": {"rw"}, "_pragma": {"synchronous(0)"}}.Encode()}).String()
}

// failed is the error for a copy that couldn't be made.
func (b *backup) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case layout.ResultCode(err) == layout.CodeFull:
		return belay.Errorf(belay.CodeDiskFull, "there is no space left for a copy of the store").At(filepath.Dir(b.file)).
			WithHint("free some space, or name another place").Wrap(err)
	case layout.ResultCode(err) == layout.CodeIO, layout.ResultCode(err) == layout.CodeCantOpen:
		return belay.Errorf(belay.CodeNotWritten, "the store can't be copied").At(filepath.Dir(b.file)).WithHint("name another place, or look at the disks").Wrap(err)
	}
	if _, coded := errors.AsType[*belay.Error](err); coded {
		return err
	}
	return layout.Failed(layout.Path(b.dir), err, "copy the store")
}

// verify wants the copy to be whole, with everything that its facts name.
func (b *backup) verify(ctx context.Context) error {
	r, err := verify.Run(ctx, b.dir, verify.Options{Temp: b.dir, Blobs: b.blobDir()})
	if err != nil {
		return err
	}
	if !r.OK() {
		p := r.Problems[0]
		return store.Damaged(p.Place, "the store is damaged, so no backup was made: "+p.What)
	}
	b.m = Manifest{Format: backupFormat, Runtime: r.Runtime, Made: b.o.Now().UTC().Truncate(time.Second), Version: len(layout.Migrations),
		Position: r.Position, Streams: r.Streams, Facts: r.Events}
	return verify.WriteHeads(&b.heads, r.Heads)
}

// describe fills the manifest and lists the files of contents. None is removed
// meanwhile, and one that was added later does no harm.
func (b *backup) describe(ctx context.Context) (err error) {
	if b.m.Database, err = partOf(ctx, layout.Path(b.dir)); err != nil {
		return err
	}
	b.m.Heads = Part{belay.DigestOf(b.heads.Bytes()), int64(b.heads.Len())}
	return layout.EachContent(ctx, b.blobDir(), func(d [32]byte, path string, info fs.FileInfo) error {
		b.blobs = append(b.blobs, blobFile{path, store.DigestFrom(d[:]), info.Size()})
		b.m.Files++
		b.m.Bytes += info.Size()
		return nil
	})
}

func partOf(ctx context.Context, path string) (p Part, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, layout.Unreadable(path, err)
	}
	defer f.Close()
	sum := sha256.New()
	if p.Size, err = io.Copy(sum, files.WithContext(ctx, f)); err != nil {
		return p, layout.Unreadable(path, err)
	}
	p.Digest = store.DigestFrom(sum.Sum(nil))
	return p, nil
}

func (b *backup) write(ctx context.Context, w io.Writer) error {
	manifest, err := json.Marshal(b.m)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	if err := b.member(ctx, out, manifestMember, int64(len(manifest)), bytes.NewReader(manifest)); err != nil {
		return err
	}
	if err := b.member(ctx, out, headsMember, b.m.Heads.Size, bytes.NewReader(b.heads.Bytes())); err != nil {
		return err
	}
	if err := b.copied(ctx, out, dbMember, layout.Path(b.dir), b.m.Database.Size, b.m.Database.Digest); err != nil {
		return err
	}
	for _, f := range b.blobs {
		if err := b.copied(ctx, out, filepath.ToSlash(layout.ContentFile(blobsMember, f.digest)), f.path, f.size, f.digest); err != nil {
			return err
		}
	}
	return out.Close()
}

// copied writes a file that must have a digest.
func (b *backup) copied(ctx context.Context, out *tar.Writer, name, path string, size int64, want belay.Digest) error {
	f, err := os.Open(path)
	if err != nil {
		return layout.Unreadable(path, err)
	}
	defer f.Close()
	sum := sha256.New()
	if err := b.member(ctx, out, name, size, io.TeeReader(f, sum)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != string(want[len("sha256:"):]) {
		return store.Damaged(path, "the content isn't what its digest names, so no backup was made")
	}
	return nil
}

func (b *backup) member(ctx context.Context, out *tar.Writer, name string, size int64, r io.Reader) error {
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: b.m.Made, Format: tar.FormatPAX})
	if err != nil {
		return err
	}
	n, err := io.Copy(out, files.WithContext(ctx, r))
	if err == nil && n != size {
		err = belay.Errorf(belay.CodeStoreBusy, "%s became shorter while it was copied", name).At(b.file).WithHint("repeat the command")
	}
	return err
}

// outside is the error for a file that isn't the store's.
func outside(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return belay.Errorf(belay.CodeNotFound, "there is no such file or directory").At(path).WithHint("name another place").Wrap(err)
	case belay.CodeOf(layout.DirectoryError(path, err)) == belay.CodeStoreFull:
		return belay.Errorf(belay.CodeDiskFull, "there is no space left for the file").At(path).WithHint("free some space, or name another place").Wrap(err)
	}
	return belay.Errorf(belay.CodeNotWritten, "the file can't be written").At(path).WithHint("name another place").Wrap(err)
}

type blobFile struct {
	path   string
	digest belay.Digest
	size   int64
}

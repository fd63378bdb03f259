package sqlite

import (
	"archive/tar"
	"bytes"
	"context"
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
	"time"

	_ "modernc.org/sqlite"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/atomicfile"
	"github.com/belay-run/belay/internal/lib/readfile"
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

// backupKey is what a backup owns while it runs: no content is removed then, so
// that every file which the database names is still there when it is copied.
const backupKey belay.SessionID = "backup"

// Backup writes what the store holds at one position into a new file, while
// others write on. The file has its name when it is whole, was verified and is
// synced; a file that is there is only replaced when that is wanted.
func (db *DB) Backup(ctx context.Context, file string, replace bool) (m Manifest, err error) {
	if _, err := os.Lstat(file); err == nil && !replace {
		return m, belay.Errorf(belay.CodeExists, "the file exists").At(file).WithHint("name another one, or use --force")
	}
	release, err := db.holdContents(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, release()) }()
	layout.Sweep(filepath.Join(filepath.Dir(file), atomicfile.Unfinished+"*"))
	temp, err := os.MkdirTemp(filepath.Dir(file), atomicfile.Unfinished)
	if err != nil {
		return m, outside(file, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	b := backup{db: db, file: file, dir: temp}
	if err := b.snapshot(ctx); err != nil {
		return m, err
	}
	if err := b.verify(ctx); err != nil {
		return m, err
	}
	if err := b.describe(ctx); err != nil {
		return m, err
	}
	err = atomicfile.WriteWhole(db.o.FS, file, func(w io.Writer) error { return b.write(ctx, w) })
	return b.m, err
}

// holdContents keeps others from removing content, until release.
func (db *DB) holdContents(ctx context.Context) (release func() error, err error) {
	if db.writer == nil {
		return func() error { return nil }, nil
	}
	epoch, err := db.Claim(ctx, backupKey, store.ThisProcess(), 24*time.Hour)
	if _, owned := errors.AsType[*store.OwnedError](err); owned {
		err = belay.Errorf(belay.CodeBusy, "another backup is being made").At(db.path).WithHint("repeat the command when it has ended").Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return db.Release(context.WithoutCancel(ctx), backupKey, epoch) }, nil
}

// contentPinned reports whether a backup keeps content from being removed.
func (w *writer) contentPinned() (refused, broken error) {
	var r ownerRow
	if _, err := w.row("SELECT "+ownerColumns+" FROM owners WHERE key=?", []any{string(backupKey)}, r.into()...); err != nil {
		return nil, err
	}
	if !r.live(w.now(), w.db.o.Alive) {
		return nil, nil
	}
	return belay.Errorf(belay.CodeBusy, "a backup is being made").At(w.db.path).WithHint("repeat the command when it has ended"), nil
}

// backup is one on its way.
type backup struct {
	db    *DB
	file  string
	dir   string // laid out as a store's directory
	heads bytes.Buffer
	m     Manifest
	blobs []blobFile
}

// snapshot copies the database as one read transaction sees it. Owners are of
// this store: nobody owns anything in the copy.
func (b *backup) snapshot(ctx context.Context) (err error) {
	path := layout.Path(b.dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return outside(b.file, err)
	}
	for _, s := range []struct{ dsn, statement string }{
		{b.db.dsn("ro", url.Values{"_pragma": {"busy_timeout(5000)"}}), "VACUUM INTO '" + layout.Quote(path) + "'"},
		{dsnOf(path), "PRAGMA synchronous=OFF"},
		{dsnOf(path), "UPDATE owners SET owner='', lease=0"},
		{dsnOf(path), "DELETE FROM owners WHERE key='" + string(backupKey) + "'"},
		{dsnOf(path), "DELETE FROM writers"},
		{dsnOf(path), "PRAGMA journal_mode=WAL"},
	} {
		if err := b.exec(ctx, s.dsn, s.statement); err != nil {
			return err
		}
	}
	return nil
}

func dsnOf(path string) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"mode": {"rw"}, "_pragma": {"synchronous(0)"}}.Encode()}).String()
}

func (b *backup) exec(ctx context.Context, dsn, statement string) error {
	db, err := sql.Open("sqlite", dsn)
	if err == nil {
		db.SetMaxOpenConns(1)
		_, err = db.ExecContext(ctx, statement)
		err = errors.Join(err, db.Close())
	}
	switch {
	case err == nil, ctx.Err() != nil:
		return cmpErr(ctx.Err(), err)
	case layout.ResultCode(err) == layout.CodeFull:
		return belay.Errorf(belay.CodeDiskFull, "there is no space left for a copy of the store").At(filepath.Dir(b.file)).
			WithHint("free some space, or name another place").Wrap(err)
	case layout.ResultCode(err) == layout.CodeIO, layout.ResultCode(err) == layout.CodeCantOpen:
		return belay.Errorf(belay.CodeNotWritten, "the store can't be copied").At(filepath.Dir(b.file)).WithHint("name another place, or look at the disks").Wrap(err)
	}
	return b.db.wrap(err, "copy the store")
}

// verify wants the copy to be whole, with everything that its facts name.
func (b *backup) verify(ctx context.Context) error {
	r, err := verify.Run(ctx, b.dir, verify.Options{Temp: b.dir, Blobs: b.db.blobs})
	if err != nil {
		return err
	}
	if !r.OK() {
		p := r.Problems[0]
		return store.Damaged(p.Place, "the store is damaged, so no backup was made: "+p.What)
	}
	b.m = Manifest{Format: backupFormat, Runtime: r.Runtime, Made: b.db.o.Now().UTC().Truncate(time.Second), Version: len(b.db.o.migrations),
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
	return b.db.eachFile(ctx, func(_ [32]byte, path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return layout.Unreadable(path, err)
		}
		member := blobsMember + filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
		b.blobs = append(b.blobs, blobFile{path, member, info.Size()})
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
	if p.Size, err = io.Copy(sum, readfile.WithContext(ctx, f)); err != nil {
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
		name := filepath.Base(filepath.Dir(f.path)) + filepath.Base(f.path)
		if err := b.copied(ctx, out, f.member, f.path, f.size, belay.Digest("sha256:"+name)); err != nil {
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
	n, err := io.Copy(out, readfile.WithContext(ctx, r))
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
	path, member string
	size         int64
}

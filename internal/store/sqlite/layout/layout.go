// Package layout is what the files of a SQLite store hold: where they are, their
// tables, the rows with their columns and checksums, the write-ahead log, which it
// reads further than SQLite does, and the errors of the files. It copies them while
// others write. The driver, its checks and its backups share it. It opens no database
// but a copy.
package layout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// ContentFile is where the file of a content is below the directory of blobs: two
// digits of directory, the rest of name.
func ContentFile(blobs string, d belay.Digest) string {
	name := string(d[len("sha256:"):])
	return filepath.Join(blobs, name[:2], name[2:])
}

// CheckMark is the file beside a database that says: a write or a sync failed here,
// check before writing again.
func CheckMark(database string) string { return database + "-check" }

// Path is the database file of the default tenant in a store directory.
func Path(dir string) string { return filepath.Join(dir, "tenants", "default", "belay.db") }

// BlobDir is where the default tenant's large blobs are.
func BlobDir(dir string) string { return filepath.Join(dir, "tenants", "default", "blobs") }

// Unfinished is how the names of files begin that have no digest yet.
const Unfinished = "new-"

// NeedsCheck reports whether a store was left after a failed write and hasn't been
// checked since.
func NeedsCheck(dir string) bool {
	_, err := os.Stat(CheckMark(Path(dir)))
	return err == nil
}

// EachContent calls each with every file of content below the directory of blobs.
func EachContent(ctx context.Context, blobs string, each func(d [32]byte, path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(blobs, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		var info fs.FileInfo
		if err == nil && !e.IsDir() {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while we looked
		}
		if err != nil || info == nil {
			return Unreadable(path, err)
		}
		d, ok := store.RawDigest(belay.Digest("sha256:" + filepath.Base(filepath.Dir(path)) + filepath.Base(path)))
		if !ok {
			return nil
		}
		return each(d, path, info)
	})
}

// BackupKey is what a backup owns while it runs: no content is removed then, so
// that every file which the database names is still there when it is copied.
const BackupKey belay.SessionID = "backup"

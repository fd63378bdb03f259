package sqlite

import (
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// prepareDirectory makes the store's directories and refuses what SQLite can't
// safely live on.
func (db *DB) prepareDirectory(dir string) error {
	if db.o.ReadOnly {
		if _, err := os.Stat(db.path); err != nil {
			return belay.Errorf(belay.CodeNotFound, "there is no store").At(dir).Wrap(err)
		}
		return layout.RefuseNetwork(dir, db.o.FileSystem)
	}
	if err := layout.MakeDirectory(dir); err != nil {
		return layout.DirectoryError(dir, err)
	}
	if err := layout.RefuseNetwork(dir, db.o.FileSystem); err != nil {
		return err
	}
	if err := layout.MakeDirectory(db.blobs); err != nil {
		return layout.DirectoryError(dir, err)
	}
	tenants := filepath.Dir(db.tenant)
	if info, err := os.Stat(tenants); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(tenants, 0o700); err != nil {
			return layout.DirectoryError(tenants, err)
		}
	}
	if err := writable(db.tenant); err != nil {
		return layout.DirectoryError(db.tenant, err)
	}
	layout.Sweep(filepath.Join(db.blobs, layout.Unfinished+"*"), db.path+"-"+layout.Unfinished+"*")
	return nil
}

package sqlite

import (
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// prepareDirectory makes the store's directories and refuses what SQLite can't
// safely live on.
func (p *place) prepareDirectory(dir string) error {
	if p.o.ReadOnly {
		if _, err := os.Stat(p.path); err != nil {
			return belay.Errorf(belay.CodeNotFound, "there is no store").At(dir).Wrap(err)
		}
		return layout.RefuseNetwork(dir, p.o.FileSystem)
	}
	if err := layout.MakeDirectory(dir); err != nil {
		return layout.DirectoryError(dir, err)
	}
	if err := layout.RefuseNetwork(dir, p.o.FileSystem); err != nil {
		return err
	}
	if err := layout.MakeDirectory(p.blobs); err != nil {
		return layout.DirectoryError(dir, err)
	}
	tenants := filepath.Dir(p.tenant)
	if info, err := os.Stat(tenants); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(tenants, 0o700); err != nil {
			return layout.DirectoryError(tenants, err)
		}
	}
	if err := writable(p.tenant); err != nil {
		return layout.DirectoryError(p.tenant, err)
	}
	layout.Sweep(filepath.Join(p.blobs, layout.Unfinished+"*"), p.path+"-"+layout.Unfinished+"*")
	return nil
}

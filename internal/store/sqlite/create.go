package sqlite

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// create makes the database of a new store under another name, without a sync
// for each step, and gives it its own name when it is whole and synced: a start
// doesn't wait for a dozen syncs, and a crash leaves no half-made store. Of two
// processes that do so at once the first wins. Where the file system has no
// links the writer makes the store in place.
func (p *place) create() error {
	if _, err := os.Stat(p.path); !errors.Is(err, fs.ErrNotExist) {
		return nil // open finds out what is wrong with it
	}
	temp := p.path + "-" + layout.Unfinished + rand.Text()
	defer os.Remove(temp)
	if err := p.build(temp); err != nil {
		return err
	}
	f, err := os.Open(temp)
	if err != nil {
		return layout.DirectoryError(temp, err)
	}
	err = errors.Join(f.Sync(), f.Close())
	if err != nil {
		return layout.DirectoryError(temp, err)
	}
	if err := os.Link(temp, p.path); err != nil {
		return nil // taken, or no links here
	}
	if err := (files.System{}).SyncDir(p.tenant); err != nil {
		return layout.DirectoryError(p.tenant, err)
	}
	return nil
}

// build writes an empty store of the newest version to a file that no other process knows.
func (p *place) build(path string) (err error) {
	c, err := newConn(&place{o: p.o, path: path, tenant: p.tenant, life: p.life})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.disconnect()) }()
	if err := c.script("PRAGMA synchronous=OFF", "PRAGMA journal_mode=MEMORY"); err != nil {
		return err
	}
	if err := c.script(beforeTables...); err != nil {
		return err
	}
	if err := c.script("BEGIN"); err != nil {
		return err
	}
	for from := range p.o.migrations {
		if err := c.change(from); err != nil {
			return err
		}
	}
	if err := c.script("COMMIT"); err != nil {
		return err
	}
	return c.walMode()
}

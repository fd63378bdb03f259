//go:build unix

package file

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// tempPrefix begins the names of a call's temporary files, so that a later
// attempt finds what a crash left.
func tempPrefix(id belay.CallID) string {
	return ".belay-" + belay.DigestOf([]byte(id)).Short() + "-"
}

// replace gives the place a new content: written beside it, synced, renamed,
// and the folder synced. Whoever reads meanwhile sees the old or the new
// content. Missing folders are made.
func (p *place) replace(prefix string, content []byte) error {
	if err := p.makeFolders(); err != nil {
		return err
	}
	temp := prefix + rand.Text()[:12] + ".tmp"
	if err := p.writeTemp(temp, content); err != nil {
		p.dir.Remove(temp) //nolint:errcheck // the first error counts
		return err
	}
	err := p.unchanged()
	if err == nil {
		err = p.dir.Rename(temp, p.base)
	}
	if err != nil {
		p.dir.Remove(temp) //nolint:errcheck // the first error counts
		return err
	}
	if err := syncDir(p.dir); err != nil {
		return tool.Failf(tool.Lost, CodeUnknownEffect, "%s was replaced, but the disk did not confirm it: %v", show(p.name), err)
	}
	return nil
}

func (p *place) makeFolders() error {
	for _, name := range p.missing {
		if err := p.dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := p.dir.Lstat(name)
		if err != nil || !info.IsDir() {
			return errChanged
		}
		if err := syncDir(p.dir); err != nil {
			return err
		}
		if p.dir, err = p.open(p.dir, name, info); err != nil {
			return err
		}
	}
	p.missing = nil
	return nil
}

func (p *place) writeTemp(temp string, content []byte) error {
	perm := fs.FileMode(0o666) // less the umask
	if p.info != nil {
		perm = 0o600 // nobody reads it before it has the mode of the old one
	}
	f, err := p.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		return err
	}
	if p.info != nil {
		if st, ok := p.info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
			if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil {
				return err
			}
		}
		if err := f.Chmod(p.info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// unchanged tells whether the place is still as it was when it was read. What
// happens between this look and the rename nobody can exclude.
func (p *place) unchanged() error {
	now, err := p.dir.Lstat(p.base)
	if p.info == nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errChanged
	}
	if err != nil || !os.SameFile(now, p.info) || now.Size() != p.info.Size() || !now.ModTime().Equal(p.info.ModTime()) {
		return errChanged
	}
	return nil
}

func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// sweep removes what an attempt before left beside the place.
func (p *place) sweep(prefix string) {
	if p.dir == nil || len(p.missing) > 0 {
		return
	}
	f, err := p.dir.Open(".")
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, ".tmp") {
			p.dir.Remove(name) //nolint:errcheck // litter, no more
		}
	}
}

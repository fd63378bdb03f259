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

// replace gives the place a new content: written beside it, synced, renamed, and
// the folder synced. A concurrent reader sees the old or the new content.
// Missing folders are made.
func (p *place) replace(prefix string, content []byte, l look, verb string) error {
	temp, err := p.stage(prefix, content, l)
	if err != nil {
		return err
	}
	if err := p.swap(temp); err != nil {
		return err
	}
	return p.settle(verb)
}

// look is the mode that a new content of the place gets.
type look struct {
	of    fs.FileInfo // the file whose mode and owner it takes over; nil for a new one
	perm  fs.FileMode // of a new one, less the umask
	exact bool        // perm is used as it is
}

func (p *place) look() look { return look{of: p.info, perm: 0o666} }

// stage writes a content beside the place, and says under which name.
func (p *place) stage(prefix string, content []byte, l look) (temp string, err error) {
	if err := p.makeFolders(); err != nil {
		return "", err
	}
	temp = prefix + rand.Text()[:12] + ".tmp"
	if err := p.writeTemp(temp, content, l); err != nil {
		p.drop(temp)
		return "", err
	}
	return temp, nil
}

// drop removes a staged content.
func (p *place) drop(temp string) {
	if p.step("drop") == nil {
		p.dir.Remove(temp) //nolint:errcheck // litter, no more
	}
}

// swap puts a staged content in place, if that is still as it was.
func (p *place) swap(temp string) error {
	err := p.turn("rename", func() error { return p.dir.Rename(temp, p.base) })
	if err != nil {
		p.drop(temp)
	}
	return err
}

// remove takes the file away, if it is still as it was.
func (p *place) remove() error {
	return p.turn("remove", func() error { return p.dir.Remove(p.base) })
}

// turn does something to the place's name, if the file is still as it was.
func (p *place) turn(op string, do func() error) error {
	return p.locked(func() error {
		if err := p.unchanged(); err != nil {
			return err
		}
		return p.do(op, do)
	})
}

// settle makes what was done to the place's name durable.
func (p *place) settle(verb string) error {
	if err := p.do("sync folder", func() error { return syncDir(p.dir) }); err != nil {
		return tool.Failf(tool.Lost, CodeUnknownEffect, "%s was %s, but the disk did not confirm it: %v", show(p.name), verb, err)
	}
	return nil
}

// made is a folder that was made on the way to a place.
type made struct {
	in   *os.Root
	name string
}

func (p *place) makeFolders() error {
	for _, name := range p.missing {
		err := p.do("make folder", func() error { return p.dir.Mkdir(name, 0o777) })
		switch {
		case err == nil:
			p.made = append(p.made, made{p.dir, name})
		case !errors.Is(err, fs.ErrExist):
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

// unmakeFolders removes the folders that were made, as far as they are empty.
func (p *place) unmakeFolders() {
	for i := len(p.made) - 1; i >= 0; i-- {
		if p.step("drop folder") != nil {
			return
		}
		p.made[i].in.Remove(p.made[i].name) //nolint:errcheck // another process put something there
	}
	p.made = nil
}

func (p *place) writeTemp(temp string, content []byte, l look) error {
	perm := l.perm // less the umask
	if l.of != nil || l.exact {
		perm = 0o600 // it can't be read before it has the mode of the old one
	}
	if err := p.step("create"); err != nil {
		return err
	}
	f, err := p.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer f.Close()
	err = p.do("write", func() error {
		_, err := f.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	if l.of != nil {
		if st, ok := l.of.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
			if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil {
				return err
			}
		}
		l.perm, l.exact = l.of.Mode().Perm(), true
	}
	if l.exact {
		if err := f.Chmod(l.perm); err != nil {
			return err
		}
	}
	if err := p.do("sync", f.Sync); err != nil {
		return err
	}
	return f.Close()
}

// unchanged reports whether the place is still as it was when it was read. The
// file that was read is still open, so no other one can have its number. A
// change by another program between this look and the rename can't be excluded;
// other file tools wait, see locked.
func (p *place) unchanged() error {
	now, err := p.dir.Lstat(p.base)
	if p.info == nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errChanged
	}
	if err != nil || !sameState(now, p.info) {
		return errChanged
	}
	return nil
}

// sameState reports whether a file is the other one and wasn't written in between.
func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
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
			p.drop(name)
		}
	}
}

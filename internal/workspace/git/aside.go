//go:build unix

package git

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/lib/files"
)

// asideMark is in the name of a file that was moved aside without leaving its
// folder.
const asideMark = ".aside-"

// wasMoved reports whether a name is one of those.
func wasMoved(name string) bool {
	i := len(name) - len(asideMark) - 8
	return i >= 0 && strings.HasPrefix(name[i:], asideMark)
}

// maxWhy bounds what is said of one file.
const maxWhy = 400

// move moves a file aside, and puts back what stood there before. It works in
// the folder that was opened, so a link that takes the folder's place meanwhile
// leads nowhere.
func (l *looking) move(layer, path string, why []string, known *item) {
	m := Moved{Layer: layer, Path: path, Why: strings.Join(why, "; ")}
	m.Why = strings.ToValidUTF8(m.Why[:min(len(m.Why), maxWhy)], "")
	name := filepath.Base(path)
	dir, err := l.w.folder(filepath.Dir(path))
	fd := -1
	if err == nil {
		defer dir.Close()
		fd = int(dir.Fd())
		m.To = l.asidePath(path)
		if err = os.MkdirAll(filepath.Dir(m.To), 0o700); err == nil {
			err = unix.Renameat(fd, name, unix.AT_FDCWD, m.To)
		}
		if err != nil { // another file system: it stays beside its place, under a name that means nothing to git
			m.To = path + asideMark + strings.ToLower(rand.Text()[:8])
			err = unix.Renameat(fd, name, fd, filepath.Base(m.To))
		}
	}
	if err != nil {
		m.To, m.Why = "", m.Why+"; and it can't be moved: "+err.Error()
	} else if known != nil && known.content != nil {
		m.Restored = restore(fd, name, known)
	}
	if delete(l.w.items, path); m.Restored {
		known.stamp = stampOf(path)
		l.w.items[path] = known
	}
	l.moved = append(l.moved, m)
}

// open opens an ordinary file.
func (w *Watch) open(path string) (*os.File, fs.FileInfo, error) {
	root, rel, err := w.in(path)
	if err != nil {
		return nil, nil, err
	}
	if root == nil {
		return files.OpenUnlinked(path)
	}
	defer root.Close()
	return files.OpenUnlinkedIn(root, rel)
}

// folder opens a folder.
func (w *Watch) folder(path string) (*os.File, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW
	root, rel, err := w.in(path)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return os.OpenFile(path, flags, 0)
	}
	defer root.Close()
	return root.OpenFile(rel, flags, 0)
}

// in is the door to what is in the workspace, and the path behind it: no link leads out of
// it, though one may take the place of a folder at any time. nil: it is elsewhere.
func (w *Watch) in(path string) (*os.Root, string, error) {
	if !within(path, w.root) {
		return nil, path, nil
	}
	root, err := files.OpenRoot(w.root)
	if err != nil {
		return nil, "", err
	}
	rel, err := filepath.Rel(w.root, path)
	return root, rel, err
}

// read is the content of a small ordinary file.
func (w *Watch) read(path string) ([]byte, error) {
	f, _, err := w.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return files.UpTo(f, maxControl)
}

// maxRelative is how long a path in the workspace is repeated.
const maxRelative = 1024

// asidePath is a new place for a file: its path in the workspace is the end of it.
func (l *looking) asidePath(path string) string {
	rel := strings.TrimPrefix(strings.TrimPrefix(path, l.w.root), "/")
	if len(rel) > maxRelative {
		rel = filepath.Base(path)
	}
	return filepath.Join(l.w.aside, strings.ToLower(rand.Text()[:12]), rel)
}

// restore writes a file as it was, or a link.
func restore(dir int, name string, known *item) bool {
	if known.stamp.kind() == unix.S_IFLNK {
		return unix.Symlinkat(string(known.content), dir, name) == nil
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(known.content)
	return errors.Join(err, f.Chmod(os.FileMode(known.stamp.mode&0o777)), f.Close()) == nil
}

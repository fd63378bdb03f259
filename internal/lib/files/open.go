//go:build unix

package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// A workspace has what programs left in it: a pipe that nobody writes to, a device, a file
// without an end may have any name there. Opening a pipe waits, and nothing ends that. So
// all that isn't the runtime's own is opened here: files if they are regular, folders as
// folders, and nothing waits, whatever takes the name meanwhile.

// ErrNotRegular means that a name is no regular file's.
var ErrNotRegular = errors.New("it isn't a regular file")

// maxNames bounds a folder that is read whole.
const maxNames = 100_000

const atOnce = syscall.O_NONBLOCK | syscall.O_NOCTTY

// Open opens a regular file for reading.
func Open(path string) (*os.File, fs.FileInfo, error) { return open(system{}, path) }

// OpenIn opens a regular file of a folder for reading.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) { return open(root, name) }

// OpenUnlinked is Open for a path whose last part is no link.
func OpenUnlinked(path string) (*os.File, fs.FileInfo, error) {
	return open(unlinked{system{}}, path)
}

// OpenUnlinkedIn is OpenIn for a name whose last part is no link.
func OpenUnlinkedIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return open(unlinked{root}, name)
}

// OpenRoot opens a folder as a root.
func OpenRoot(path string) (*os.Root, error) {
	return os.OpenRoot(path + "/") // with it the name of a pipe isn't opened
}

// OpenRootIn opens a folder of a root as a root.
func OpenRootIn(root *os.Root, name string) (*os.Root, error) { return root.OpenRoot(name + "/.") }

// OpenDir opens a folder, for its names.
func OpenDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|atOnce, 0)
}

// ReadDir is os.ReadDir of a folder that isn't too large.
func ReadDir(path string) ([]fs.DirEntry, error) { return names(OpenDir(path)) }

// Tree is what lies below a root: regular files can be opened, and folders that aren't too
// large be read.
func Tree(root *os.Root) fs.FS { return tree{root} }

// opener is the system, or a root.
type opener interface {
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
}

type system struct{}

func (system) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

func (system) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

func (system) OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// unlinked follows no link at the end.
type unlinked struct{ opener }

func (u unlinked) Stat(name string) (fs.FileInfo, error) { return u.Lstat(name) }

// OpenFile looks at the name again: a root follows its own links, whatever the flags say.
func (u unlinked) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := u.opener.OpenFile(name, flag|syscall.O_NOFOLLOW, perm)
	if err != nil {
		return nil, err
	}
	if info, err := u.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		f.Close() //nolint:errcheck // nothing was written
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
	}
	return f, nil
}

// open looks first, because opening alone has an effect on some devices, and again at what
// it has opened.
func open(in opener, name string) (*os.File, fs.FileInfo, error) {
	no := &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	if info, err := in.Stat(name); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, no
	}
	f, err := in.OpenFile(name, os.O_RDONLY|atOnce, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = no
	}
	if err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

// names are those of an open folder, in order.
func names(f *os.File, err error) ([]fs.DirEntry, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.ReadDir(maxNames + 1)
	if len(all) > maxNames {
		return nil, &fs.PathError{Op: "readdir", Path: f.Name(), Err: fmt.Errorf("it has more than %d files", maxNames)}
	}
	if len(all) == 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all, err
}

type tree struct{ root *os.Root }

func (t tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if info, err := t.root.Stat(name); err == nil && info.IsDir() {
		return t.dir(name)
	}
	f, _, err := OpenIn(t.root, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (t tree) dir(name string) (*os.File, error) {
	return t.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|atOnce, 0)
}

func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	return names(t.dir(name))
}

func (t tree) Stat(name string) (fs.FileInfo, error) { return t.root.Stat(name) }

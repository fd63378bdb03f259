//go:build unix

package git

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A path may be longer than what the system takes in one call, and the longer it is
// the longer a call takes. Who walks down begins its paths at a folder on the way;
// others go down a long path in steps.

// far is how long the rest of a path becomes before a walk begins its paths anew.
const far = 256

// from is where paths begin: an open folder, and how much of them leads there.
type from struct{ dir, skip int }

var fromRoot = from{dir: unix.AT_FDCWD}

// nearer begins paths at a folder, if they have become long. The function returned
// goes back.
func (l *looking) nearer(path string) (back func()) {
	if len(path)-l.from.skip <= far {
		return func() {}
	}
	dir, err := unix.Openat(l.from.dir, path[l.from.skip:], pathOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {} // it is gone, and what is in it too
	}
	before := l.from
	l.from = from{dir, len(path) + 1}
	return func() {
		unix.Close(dir)
		l.from = before
	}
}

// lstat is the system's.
func lstat(at from, path string, st *unix.Stat_t) error {
	return at.in(path, func(dir int, rest string) error { return unix.Fstatat(dir, rest, st, unix.AT_SYMLINK_NOFOLLOW) })
}

// readDir is os.ReadDir, without an order.
func readDir(at from, path string) (all []os.DirEntry, err error) {
	err = at.in(path, func(dir int, rest string) error {
		fd, err := unix.Openat(dir, rest, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), rest)
		defer f.Close()
		all, err = f.ReadDir(-1)
		return err
	})
	return all, err
}

// readlink is os.Readlink.
func readlink(path string) (to string, err error) {
	err = fromRoot.in(path, func(dir int, rest string) error {
		b := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, rest, b)
		to = string(b[:max(n, 0)])
		return err
	})
	return to, err
}

// in calls f with a folder on a path and the rest of the path from there. The folder
// is one without links below the first step.
func (at from) in(path string, f func(dir int, rest string) error) error {
	dir, path := at.dir, path[at.skip:]
	for len(path) >= unix.PathMax {
		cut := strings.LastIndexByte(path[:unix.PathMax-1], '/')
		if cut <= 0 {
			return unix.ENAMETOOLONG
		}
		next, err := unix.Openat(dir, path[:cut], pathOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(next)
		dir, path = next, path[cut+1:]
	}
	return f(dir, path)
}

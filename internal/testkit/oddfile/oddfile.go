//go:build unix

// Package oddfile makes what a program may leave in place of a file that somebody reads:
// pipes, a socket, devices, a file that is too large for any memory, a folder.
package oddfile

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Huge is the size of the file that is too large.
const Huge = 1 << 40

// patience is how long a reader may take that only has to look.
const patience = 30 * time.Second

var kinds = []struct {
	name string
	make func(path string) (end io.Closer, err error)
}{
	{"a pipe", func(path string) (io.Closer, error) { return nil, syscall.Mkfifo(path, 0o644) }},
	{"a pipe that somebody keeps open", func(path string) (io.Closer, error) {
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			return nil, err
		}
		return os.OpenFile(path, os.O_RDWR, 0)
	}},
	{"a socket", func(path string) (io.Closer, error) {
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		short := "/proc/self/fd/" // the name of a socket has at most 107 bytes
		if _, err := os.Stat(short); err != nil {
			short = "/dev/fd/"
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short+strconv.Itoa(int(dir.Fd())), filepath.Base(path)), Net: "unix"})
		if err == nil {
			l.SetUnlinkOnClose(false)
		}
		return l, err
	}},
	{"a link to a device", func(path string) (io.Closer, error) { return nil, os.Symlink("/dev/zero", path) }},
	{"a device", func(path string) (io.Closer, error) {
		if syscall.Mknod(path, syscall.S_IFCHR|0o644, 1<<8|5) != nil { // zero
			return nil, errSkipped
		}
		return nil, nil
	}},
	{"a huge file", func(path string) (io.Closer, error) {
		err := os.WriteFile(path, nil, 0o644)
		if err == nil {
			err = os.Truncate(path, Huge)
		}
		return nil, err
	}},
	{"a folder", func(path string) (io.Closer, error) { return nil, os.Mkdir(path, 0o755) }},
}

var errSkipped = errors.New("only a superuser makes it")

// Each puts one after another in the place of a path, and back what was there. read must
// return soon, though nobody writes to any of it.
func Each(t *testing.T, path string, read func(t *testing.T, kind string)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			aside := path + ".aside"
			was := os.Rename(path, aside) == nil
			end, err := k.make(path)
			t.Cleanup(func() {
				os.RemoveAll(path) //nolint:errcheck // the folder is the test's
				if was {
					os.Rename(aside, path) //nolint:errcheck // as above
				}
			})
			if errors.Is(err, errSkipped) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if end == nil {
				end = io.NopCloser(nil)
			}
			defer end.Close()
			soon(t, path, end, func() { read(t, k.name) })
		})
	}
}

// soon fails if f doesn't return.
func soon(t *testing.T, path string, end io.Closer, f func()) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-over:
		return
	case <-late.C:
		t.Errorf("who reads %s waits for ever", filepath.Base(path))
	}
	door, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0) // who waits goes on then
	os.Remove(path)                                                 //nolint:errcheck // nobody begins to wait
	if err == nil {
		door.Close()
	}
	end.Close()
	<-over
}

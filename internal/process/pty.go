//go:build unix

package process

import (
	"cmp"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// openPTY opens a terminal of a size: our end and the program's.
func openPTY(s Size) (near, far *os.File, err error) {
	opened, far, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer opened.Close()
	if near, err = pollable(opened); err == nil {
		err = resize(near, s)
	}
	if err != nil {
		if near != nil {
			near.Close()
		}
		far.Close()
		return nil, nil, err
	}
	return near, far, nil
}

// pollable returns another file for the same terminal. The library's blocks:
// neither a deadline nor Close would end a read or a write of it.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// resize doesn't use the library's, which would make the file block.
func resize(f *os.File, s Size) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = conn.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(s.Rows), Col: uint16(s.Cols)})
	})
	return cmp.Or(err, set)
}

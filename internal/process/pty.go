//go:build unix

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

func resize(f *os.File, s Size) error {
	return onFD(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(s.Rows), Col: uint16(s.Cols)})
	})
}

// onFD does something with a file's descriptor without changing how it blocks.
func onFD(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var did error
	if err := conn.Control(func(fd uintptr) { did = do(int(fd)) }); err != nil {
		return err
	}
	return did
}

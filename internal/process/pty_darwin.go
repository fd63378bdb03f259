package process

import (
	"bytes"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openPTY makes a terminal of a size: the end that belongs to us, and the
// program's.
func openPTY(s Size) (near, far *os.File, err error) {
	near, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var name [128]byte // the system's length of it
	err = onFD(near, func(fd int) error {
		for _, req := range []uint{unix.TIOCPTYGRANT, unix.TIOCPTYUNLK} {
			if err := unix.IoctlSetInt(fd, req, 0); err != nil {
				return err
			}
		}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCPTYGNAME, uintptr(unsafe.Pointer(&name[0])))
		if errno != 0 {
			return errno
		}
		return nil
	})
	if err == nil {
		end, _, _ := bytes.Cut(name[:], []byte{0})
		far, err = os.OpenFile(string(end), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err == nil {
		err = resize(far, s)
	}
	if err != nil {
		near.Close()
		if far != nil {
			far.Close()
		}
		return nil, nil, err
	}
	return near, far, nil
}

package term

import "golang.org/x/sys/unix"

// noEcho makes a terminal show nothing of what is typed from now on; lines and
// interrupts work as before.
func noEcho(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

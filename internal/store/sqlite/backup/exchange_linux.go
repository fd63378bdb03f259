package backup

import "golang.org/x/sys/unix"

// exchange gives two directories each other's name in one step.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if err == unix.EINVAL || err == unix.ENOSYS { // a file system that can't
		return exchangeInSteps(a, b)
	}
	return err
}

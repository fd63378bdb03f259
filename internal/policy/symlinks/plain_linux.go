package symlinks

import "golang.org/x/sys/unix"

// withoutLinks reports whether a clean absolute path is there and no part of it is
// a link. The path is looked up, nothing is opened. Old kernels don't know the
// question, and some boundaries forbid it: then each part is asked about.
func withoutLinks(p string) bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return false
	}
	_ = unix.Close(fd) // nothing was written
	return true
}

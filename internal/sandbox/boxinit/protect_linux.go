package boxinit

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// protect makes the guarded names read-only, and keeps what they lie in from
// being moved away, because a name that moves leaves its place to another.
func (h *helper) protect() (string, error) {
	for _, p := range h.p.Pinned {
		if err := overItself(p, 0); err != nil {
			return "", fmt.Errorf("pin %s: %w", p, err)
		}
	}
	for _, p := range h.p.Guarded {
		if err := overItself(p, unix.MOUNT_ATTR_RDONLY); err != nil {
			return "", fmt.Errorf("guard %s: %w", p, err)
		}
	}
	return strconv.Itoa(len(h.p.Guarded)) + " names", nil
}

// overItself mounts a file or folder on itself. What was opened is what is
// mounted and what is covered: a link on the way, or in its place, is refused.
func overItself(path string, set uint64) error {
	at, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s went away: %w", path, err)
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	attr := unix.MountAttr{Attr_set: set | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

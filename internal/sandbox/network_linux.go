package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// network brings up the loopback of the new network namespace, where nothing
// else is, and opens the proxy's socket there if one is wanted.
func (h *helper) network() (string, error) {
	if _, err := h.newNamespace("net")(); err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("socket for the loopback: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return "", err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return "", fmt.Errorf("bring up the loopback: %w", err)
	}
	return "", nil
}

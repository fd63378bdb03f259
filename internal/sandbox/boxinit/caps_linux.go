package boxinit

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// KeptCaps are what a helper that isn't root needs inside its user namespace
// until the layers stand. An overlay is made with a folder that nobody may open.
var KeptCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE}

// securebits keep user 0 from getting capabilities by being user 0, for good:
// SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP and their locks.
const securebits = 1<<0 | 1<<1 | 1<<2 | 1<<3

// dropCaps gives up every capability and the way to get one back. Where the
// process has none to begin with, no_new_privs keeps it so.
func (h *helper) dropCaps() (string, error) {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return "", fmt.Errorf("clear the ambient set: %w", err)
	}
	set, err := Capabilities()
	if err != nil {
		return "", err
	}
	if set.Has(unix.CAP_SETPCAP) {
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0); err != nil {
			return "", fmt.Errorf("lock the secure bits: %w", err)
		}
		for c := uintptr(0); c < 64; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
				break // the kernel knows no more
			} else if err != nil {
				return "", fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
			}
		}
	}
	var none CapSets
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	// The other threads of the helper too, where the program is built so that
	// Go knows all of them. The program inherits from this one.
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno == syscall.ENOTSUP {
		_, _, errno = syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&none[0])), 0)
	}
	if errno != 0 {
		return "", fmt.Errorf("drop the capabilities: %w", errno)
	}
	return "", nil
}

// CapSets is the three sets of a thread, 32 capabilities in each entry.
type CapSets [2]unix.CapUserData

// Has reports whether a capability can be used now.
func (c CapSets) Has(n int) bool { return c[n/32].Effective&(1<<(n%32)) != 0 }

// Capabilities are those of the calling thread.
func Capabilities() (set CapSets, err error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err = unix.Capget(&hdr, &set[0]); err != nil {
		err = fmt.Errorf("read the capabilities: %w", err)
	}
	return set, err
}

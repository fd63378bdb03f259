package boxinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock is called by hand: three system calls over one structure each. A
// library would apply it to all threads, which takes a module of C glue, and
// only the thread that starts the program matters here.

const (
	landlockRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockFirst = 1<<13 - 1 // what the first version handles
)

// scopesABI is the first version of Landlock that keeps signals inside.
const scopesABI = 6

// landlockABI is the version of Landlock that the kernel has.
func landlockABI() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(v), nil
}

// handled are the rights that a version knows.
func handled(abi int) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: landlockFirst}
	if abi >= 2 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= scopesABI {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// landlock restricts the calling thread and what it starts. TCP is left to the
// network's namespace where there is one, so that servers work inside.
func (h *helper) landlock() (string, error) {
	abi, err := landlockABI()
	if err != nil {
		return "", err
	}
	attr := handled(abi)
	if h.p.Try[Net] || h.p.Network == networkFull {
		attr.Handled_access_net = 0
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return "", fmt.Errorf("make the rules: %w", errno)
	}
	defer unix.Close(int(fd))
	r := ruleset{fd: int(fd), all: attr.Handled_access_fs}
	if err := h.landlockRules(r); err != nil {
		return "", err
	}
	// Restricting wants no_new_privs, which comes as a layer of its own later.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "", err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return "", fmt.Errorf("restrict: %w", errno)
	}
	return "version " + strconv.Itoa(abi), nil
}

func (h *helper) landlockRules(r ruleset) error {
	reads := h.p.Readable
	if h.p.Try[Mounts] {
		reads = append(reads, "/") // what is hidden is covered by the view
	} else {
		visible, err := h.visible("/")
		if err != nil {
			return err
		}
		reads = append(append(reads, visible...), h.p.Workspace)
	}
	for _, p := range reads {
		if err := r.allow(p, landlockRead); err != nil {
			return err
		}
	}
	for _, p := range slices.Concat(h.p.Writable, h.mine) {
		if err := r.allow(p, r.all&^unix.LANDLOCK_ACCESS_FS_IOCTL_DEV); err != nil {
			return err
		}
	}
	for _, p := range append(devicePaths(), "/dev/pts", "/dev/ptmx") {
		if err := r.allow(p, landlockFile&^unix.LANDLOCK_ACCESS_FS_EXECUTE|unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
			return err
		}
	}
	return nil
}

// visible lists what is below dir but for private and hidden paths. A folder
// that has one of those below is taken apart.
func (h *helper) visible(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	secret := slices.Concat(h.p.Private, h.p.Hidden)
	var all []string
	for _, e := range entries {
		p := strings.TrimSuffix(dir, "/") + "/" + e.Name()
		below := func(s string) bool { return strings.HasPrefix(s, p+"/") }
		switch {
		case slices.Contains(secret, p):
		case slices.ContainsFunc(secret, below) && e.IsDir():
			more, err := h.visible(p)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		default:
			all = append(all, p)
		}
	}
	return all, nil
}

// ruleset is a set of rules that is being made.
type ruleset struct {
	fd  int
	all uint64 // the rights it handles
}

// allow grants rights on a path and what is below. A path that isn't there, or
// that can't be opened, grants nothing.
func (r ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= landlockFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.all, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("rule for %s: %w", path, errno)
	}
	return nil
}

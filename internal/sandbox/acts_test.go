//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/belay-run/belay"
	"golang.org/x/sys/unix"
)

// actName makes this binary try one system call.
const actName = "belay-act"

// acts are calls that no program shows. Each returns nil when it was let do it.
var acts = map[string]func() error{
	"socket-packet":  func() error { return sock(unix.AF_PACKET, unix.SOCK_RAW, 0) },
	"socket-vsock":   func() error { return sock(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"socket-alg":     func() error { return sock(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"socket-audit":   func() error { return sock(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT) },
	"socket-raw":     func() error { return sock(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"ptrace":         func() error { return call(unix.SYS_PTRACE, unix.PTRACE_TRACEME) },
	"ptrace-parent":  func() error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(os.Getppid())) },
	"vm-read":        vmRead,
	"pidfd-getfd":    func() error { return call(unix.SYS_PIDFD_GETFD, 0, 0, 0) },
	"keyctl":         func() error { return call(unix.SYS_KEYCTL, 0, 0xfffffffd, 1) },
	"add-key":        func() error { return call(unix.SYS_ADD_KEY, 0, 0, 0, 0, 0) },
	"io-uring":       ioUring,
	"userfaultfd":    func() error { return call(unix.SYS_USERFAULTFD, 1) },
	"bpf":            func() error { return call(unix.SYS_BPF, 0, 0, 0) },
	"perf":           func() error { return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0) },
	"mount":          func() error { return unix.Mount("tmpfs", "/mnt", "tmpfs", 0, "") },
	"remount":        func() error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"umount":         func() error { return unix.Unmount("/tmp", unix.MNT_DETACH) },
	"open-tree":      func() error { return call(unix.SYS_OPEN_TREE, 0, 0, 1) },
	"mount-setattr":  func() error { return call(unix.SYS_MOUNT_SETATTR, 0, 0, 0, 0, 0) },
	"fsopen":         func() error { _, err := unix.Fsopen("tmpfs", 0); return err },
	"unshare-user":   func() error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) },
	"setns":          func() error { return call(unix.SYS_SETNS, 0, 0) },
	"clone-user":     func() error { return clone(unix.CLONE_NEWUSER) },
	"clone3":         func() error { return call(unix.SYS_CLONE3, 0, 0) },
	"chroot":         func() error { return unix.Chroot("/tmp") },
	"handle":         func() error { return call(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) },
	"module":         func() error { return call(unix.SYS_FINIT_MODULE, 0, 0, 0) },
	"clock":          func() error { var tv unix.Timeval; unix.Gettimeofday(&tv); return unix.Settimeofday(&tv) },
	"hostname":       func() error { return unix.Sethostname([]byte("x")) },
	"kernel-log":     func() error { return call(unix.SYS_SYSLOG, 10) },
	"swap":           func() error { return call(unix.SYS_SWAPON, 0, 0) },
	"kernel-image":   func() error { return call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0xffff) },
	"tiocsti":        pushInput,
	"setuid-chmod":   func() error { os.WriteFile("s", nil, 0o755); return unix.Chmod("s", 0o4755) },
	"setuid-create":  func() error { return setuidByOpen(unix.O_CREAT) },
	"setuid-tmpfile": func() error { return setuidByOpen(unix.O_TMPFILE) },
	"setuid-openat2": func() error {
		_, err := unix.Openat2(unix.AT_FDCWD, "s2", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755})
		return err
	},
	"mknod": func() error { return unix.Mknod("disk", unix.S_IFBLK|0o600, 254<<8) },
	"regain": func() error { // a capability that was dropped
		return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0)
	},
	"x32":        func() error { return call(0x40000000 + 39) },
	"future":     func() error { return call(4000) },
	"raise-core": func() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}) },
}

// actsFrom are the lowest levels at which acts are stopped, if not L2.
var actsFrom = map[string]belay.Level{"raise-core": belay.L1}

// act tries what a level stops, and exits with 0 if nothing of it was let.
func act(level string) int {
	runtime.LockOSThread()
	code, tried := 0, 0
	for name, do := range acts {
		from := belay.L2
		if f, ok := actsFrom[name]; ok {
			from = f
		}
		if !belay.Level(level).AtLeast(from) {
			continue
		}
		tried++
		if err := do(); err == nil || reached(err) {
			fmt.Println(name, err)
			code = 1
		}
	}
	if tried == 0 {
		return 2
	}
	return code
}

// reached reports whether an error is of a kernel that looked at the arguments: no
// filter stood before it.
func reached(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBADF) || errors.Is(err, unix.EFAULT)
}

func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := syscall.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func sock(family, kind, proto int) error {
	_, err := unix.Socket(family, kind, proto)
	return err
}

func vmRead() error {
	b := make([]byte, 8)
	local, remote := []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}}
	_, err := unix.ProcessVMReadv(os.Getppid(), local, remote, 0)
	return err
}

func ioUring() error {
	var params [120]byte
	return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])))
}

func clone(flags uintptr) error {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
	return nil
}

func pushInput() error {
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("no terminal: %w", err)
	}
	c := byte('x')
	err = call(unix.SYS_IOCTL, m.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
	if err == syscall.EIO || err == syscall.ENOTTY {
		return nil // the filter let it pass
	}
	return err
}

func setuidByOpen(how int) error {
	name := "s3"
	if how == unix.O_TMPFILE {
		name = "."
	}
	_, err := unix.Open(name, how|unix.O_WRONLY, 0o4755)
	return err
}

// actor is this binary where programs in a sandbox can see it.
var actor = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "belay-actor-*")
	if err != nil {
		return "", err
	}
	actorDir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "actor"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	if cerr := to.Close(); err == nil {
		err = cerr
	}
	return to.Name(), err
})

var actorDir string

// withActor lets a space's programs run the actor.
func (s *space) withActor() string {
	s.t.Helper()
	path, err := actor()
	if err != nil {
		s.t.Fatal(err)
	}
	s.b.Read = append(s.b.Read, filepath.Dir(path))
	return path
}

// listen gives the address of a server of this process that tells of a visit.
func listen(t testing.TB, network, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func port(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

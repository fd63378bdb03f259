package boxinit

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is written by hand: a list of calls, a handful of looks at their
// arguments, and the machine's word about its own numbers. It lets pass what it
// doesn't name, but not what came after it was written: a number beyond the
// last one known is answered as by a kernel that hasn't got the call.

// lastCall is the highest number of a system call when the list was written.
const lastCall = unix.SYS_OPEN_TREE_ATTR

// deniedCalls reach out of a boundary, or give a program more kernel than it
// needs. They fail with EPERM.
var deniedCalls = []uint32{
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	// the view of the files
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
	// namespaces
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	// doors to much of the kernel
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_VHANGUP,
	// the machine
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// deniedControls are requests of ioctl: pushing input into a terminal, its
// paste, and changing a terminal's discipline.
var deniedControls = []uint32{unix.TIOCSTI, 0x541C /* TIOCLINUX */, unix.TIOCSETD}

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// setID are the bits of a mode that give a file's rights to who runs it.
const setID = unix.S_ISUID | unix.S_ISGID

// Where the kernel puts what a filter looks at: struct seccomp_data, of a
// machine that keeps the low half of a word first.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

// What a filter answers.
const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
)

func retErrno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// filter is a program for the kernel's packet filter, as it is being written.
type filter []unix.SockFilter

func (f *filter) load(at uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at})
}

func (f *filter) loadArg(n uint32) { f.load(atArgs + 8*n) }

func (f *filter) ret(what uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what})
}

// when runs what body writes if the loaded word equals k, and continues behind
// it if not.
func (f *filter) when(k uint32, body func(*filter)) { f.jump(unix.BPF_JEQ, k, true, body) }

// unless runs what body writes if the loaded word differs from k.
func (f *filter) unless(k uint32, body func(*filter)) { f.jump(unix.BPF_JEQ, k, false, body) }

// above runs what body writes if the loaded word is greater than k.
func (f *filter) above(k uint32, body func(*filter)) { f.jump(unix.BPF_JGT, k, true, body) }

// any runs what body writes if the loaded word has a bit of mask.
func (f *filter) any(mask uint32, body func(*filter)) { f.jump(unix.BPF_JSET, mask, true, body) }

func (f *filter) jump(op uint16, k uint32, match bool, body func(*filter)) {
	var inner filter
	body(&inner)
	j := unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k}
	if match {
		j.Jf = uint8(len(inner))
	} else {
		j.Jt = uint8(len(inner))
	}
	*f = append(append(*f, j), inner...)
}

func denying(e unix.Errno) func(*filter) { return func(f *filter) { f.ret(retErrno(e)) } }

// onCall runs what body writes for one system call, and lets the call pass
// when body doesn't answer.
func (f *filter) onCall(nr uint32, body func(*filter)) {
	f.when(nr, func(f *filter) { body(f); f.ret(retAllow) })
}

// signalCalls send signals to processes by their number.
var signalCalls = []uint32{
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_PIDFD_SEND_SIGNAL,
}

// attributeCalls change what a file is but for its content, which Landlock lets pass.
var attributeCalls = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT,
}

// attributeControls are requests of ioctl that do.
var attributeControls = []uint32{unix.FS_IOC_SETFLAGS, 0x401C5820 /* FS_IOC_FSSETXATTR */}

// reach is what programs may reach besides files.
type reach struct {
	internet bool // they have a network of their own, or the whole one
	local    bool // local sockets: one that has a file's name is reached whatever may be written
	signals  bool // other processes, by signals
	files    bool // files, to change what they are: their view holds them
}

// callFilter is the filter for what programs may reach.
func callFilter(may reach) filter {
	var f filter
	f.load(atArch)
	f.unless(auditArch, func(f *filter) { f.ret(retKill) })
	f.load(atNumber)
	f.above(lastCall, denying(unix.ENOSYS)) // x32 too: its numbers have a high bit
	for _, nr := range append(deniedCalls, deniedHere...) {
		f.when(nr, denying(unix.EPERM))
	}
	if !may.files {
		for _, nr := range append(attributeCalls, attributesHere...) {
			f.when(nr, denying(unix.EROFS))
		}
	}
	if !may.signals {
		for _, nr := range signalCalls {
			f.when(nr, denying(unix.EPERM))
		}
		f.onCall(unix.SYS_FCNTL, func(f *filter) {
			f.loadArg(1)
			f.when(unix.F_SETOWN, denying(unix.EPERM))
			f.when(unix.F_SETOWN_EX, denying(unix.EPERM))
		})
	}
	// The flags of clone3 and openat2 are behind a pointer, out of a filter's
	// sight. Without them the libraries use the older calls.
	f.when(unix.SYS_CLONE3, denying(unix.ENOSYS))
	f.when(unix.SYS_OPENAT2, denying(unix.ENOSYS))
	f.onCall(unix.SYS_CLONE, func(f *filter) {
		f.loadArg(0)
		f.any(newNamespaces, denying(unix.EPERM))
	})
	f.onCall(unix.SYS_IOCTL, func(f *filter) {
		f.loadArg(1)
		for _, c := range deniedControls {
			f.when(c, denying(unix.EPERM))
		}
		for _, c := range attributeControls {
			if !may.files {
				f.when(c, denying(unix.EROFS))
			}
		}
	})
	f.onCall(unix.SYS_SOCKET, func(f *filter) { f.families(may) })
	f.onCall(unix.SYS_SOCKETPAIR, func(f *filter) {
		f.loadArg(0)
		f.unless(unix.AF_UNIX, denying(unix.EPERM))
	})
	for _, m := range append(modesHere, modeArg{unix.SYS_FCHMOD, 1}, modeArg{unix.SYS_FCHMODAT, 2}, modeArg{unix.SYS_FCHMODAT2, 2}, modeArg{unix.SYS_MKNODAT, 2}) {
		f.onCall(m.nr, func(f *filter) {
			f.loadArg(m.arg)
			f.any(setID, denying(unix.EPERM))
		})
	}
	for _, o := range append(opensHere, openArgs{unix.SYS_OPENAT, 2, 3}) {
		f.onCall(o.nr, func(f *filter) {
			f.loadArg(o.flags)
			f.any(unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, func(f *filter) {
				f.loadArg(o.mode)
				f.any(setID, denying(unix.EPERM))
			})
		})
	}
	f.ret(retAllow)
	return f
}

// modeArg says which argument of a call is a file's mode.
type modeArg struct{ nr, arg uint32 }

// openArgs says which arguments of a call are flags and the mode of what they
// create.
type openArgs struct{ nr, flags, mode uint32 }

func (f *filter) families(may reach) {
	f.loadArg(0)
	if may.local {
		f.when(unix.AF_UNIX, func(f *filter) { f.ret(retAllow) })
	} else { // as on a system that has none, which libraries know
		f.when(unix.AF_UNIX, denying(unix.EAFNOSUPPORT))
	}
	if may.internet {
		f.when(unix.AF_INET, func(f *filter) { f.ret(retAllow) })
		f.when(unix.AF_INET6, func(f *filter) { f.ret(retAllow) })
		f.when(unix.AF_NETLINK, func(f *filter) { // what asks for the machine's addresses uses it
			f.loadArg(2)
			f.when(unix.NETLINK_ROUTE, func(f *filter) { f.ret(retAllow) })
		})
	}
	f.ret(retErrno(unix.EPERM))
}

// filterCalls puts the filter on every thread of the helper.
func (h *helper) filterCalls() (string, error) {
	prog := callFilter(h.mayReach())
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	// It wants no_new_privs, which may have been left out on purpose.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "", err
	}
	tid, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return "", fmt.Errorf("set the filter: %w", errno)
	}
	if tid != 0 {
		return "", fmt.Errorf("thread %d can't take the filter", tid)
	}
	return "", nil
}

// mayReach is what the profile lets programs reach. Signals stay inside where there
// is a namespace of processes, or a Landlock that holds them.
func (h *helper) mayReach() reach {
	abi, err := landlockABI()
	held := h.p.Try[PID] || h.p.Try[Landlock] && err == nil && abi >= scopesABI
	return reach{
		internet: h.p.Try[Net] || h.p.Network == networkFull, local: !h.p.Reads, signals: !h.p.Reads || held, files: !h.p.Reads || h.p.Try[Mounts],
	}
}

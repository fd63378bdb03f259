package boxinit

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// deniedHere are calls that only this machine has.
var deniedHere = []uint32{unix.SYS_MODIFY_LDT, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_USTAT, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE}

// attributesHere are the older calls that change what a file is.
var attributesHere = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}

var (
	modesHere = []modeArg{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}
	opensHere = []openArgs{{unix.SYS_OPEN, 1, 2}}
)

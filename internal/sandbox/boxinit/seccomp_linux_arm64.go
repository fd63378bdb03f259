package boxinit

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// This machine has none of the older calls.
var (
	deniedHere     []uint32
	attributesHere []uint32
	modesHere      []modeArg
	opensHere      []openArgs
)

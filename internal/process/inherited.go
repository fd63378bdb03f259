//go:build unix

package process

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// KeepInherited keeps the descriptors that this process was given by whoever
// started it, but for the standard three, from every program that it starts. Go
// does that for those it opens itself. It comes before anything is started.
func KeepInherited() {
	if closeOnExec() == nil {
		return
	}
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return // a system without that folder has few processes to hand descriptors on
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd >= firstInherited {
			unix.CloseOnExec(fd)
		}
	}
}

// firstInherited is the descriptor after the standard three.
const firstInherited = 3

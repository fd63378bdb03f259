package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// StartTime is when a process started, as the system tells it. With the pid it
// names a process. A process that is gone, or a zombie, is an error.
func StartTime(pid int) (string, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	const zombie = 5 // SZOMB
	if k.Proc.P_stat == zombie || int(k.Proc.P_pid) != pid {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fmt.Sprintf("%d.%06d", k.Proc.P_starttime.Sec, k.Proc.P_starttime.Usec), nil
}

// marked finds no process: on this system a process can't read another's
// environment.
func marked(mark, since string) []int { return nil }

// strays finds none, as marked.
func strays() []int { return nil }

// pidNamespace is that of every process here.
func pidNamespace() string { return "0" }

// startOfChild is the start time of a child; empty if it has ended already.
func startOfChild(pid int) string {
	start, _ := StartTime(pid)
	return start
}

// Units of what the system says that a process used. It counts how often something
// is written to disks, not how much.
const (
	memoryUnit = 1
	blockUnit  = 0
)

// closeOnExec can't mark all descriptors at once here.
func closeOnExec() error { return unix.ENOSYS }

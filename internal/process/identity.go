//go:build unix

package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Alive reports whether the process that had this pid and start time still runs.
// A zombie doesn't. An empty start means unknown: then any process with the pid
// counts.
func Alive(pid int, start string) bool {
	if pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	now, err := StartTime(pid)
	if err != nil {
		return false
	}
	return start == "" || now == start
}

// signalName is SIGKILL for 9.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

package process

import (
	"os/exec"
	"syscall"
)

// StartDetached starts a program that outlives this one, and an interrupt or the end of its
// terminal. Nothing is read from it. The channel has how it ends, if this program sees that.
func StartDetached(name string, args ...string) <-chan error {
	ended := make(chan error, 1)
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		ended <- err
		return ended
	}
	go func() { ended <- cmd.Wait() }() // it ends with the program, or with this one
	return ended
}

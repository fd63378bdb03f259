//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guard leads the process group of one command.
type guard struct {
	pgid int
	cmd  *exec.Cmd
	pipe *os.File // closing it, also by dying, makes the guard kill the group
}

// guardScript ignores signals for the others, waits for the end of the runtime
// or of the call, and kills the group and those that were registered with it.
const guardScript = `trap '' TERM INT HUP QUIT; while read -r g; do more="$more -$g"; done; kill -s KILL -- $more 0`

func startGuard() (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe for the guard: %w", err)
	}
	defer r.Close()
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"belay-guard", "-c", guardScript},
		Dir: "/", Env: []string{}, Stdin: r,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	return &guard{pgid: cmd.Process.Pid, cmd: cmd, pipe: w}, nil
}

// watch makes the guard take another group with it.
func (g *guard) watch(pgid int) {
	fmt.Fprintln(g.pipe, pgid) //nolint:errcheck // a guard that is gone was killed, and the runtime will see to the group
}

// end kills what is left of the group, and releases its number.
func (g *guard) end() {
	syscall.Kill(-g.pgid, syscall.SIGKILL) //nolint:errcheck // no process left is fine
	g.pipe.Close()
	g.cmd.Wait() //nolint:errcheck // it was killed
}

package process_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/process"
)

// TestWhatAKilledRuntimeLeftIsEnded: a program in a session of its own outlives a
// kill of the runtime, and whichever runtime comes next ends it.
// Guarantee: T112.
func TestWhatAKilledRuntimeLeftIsEnded(t *testing.T) {
	h := newTether(t)
	runtime := exec.Command(os.Args[0])
	runtime.Env = append(os.Environ(), asRuntime+`=exec 3>"`+h.path+`"; setsid sh -c 'trap "" TERM HUP; echo up >&3; sleep 300' & wait`)
	if err := runtime.Start(); err != nil {
		t.Fatal(err)
	}
	if got := h.line(t); got != "up" {
		t.Fatalf("got %q", got)
	}
	runtime.Process.Kill()
	runtime.Wait()
	if process.EndStrays() == 0 {
		t.Error("nobody was left")
	}
	h.cut(t)
}

// TestUnmarkedProcessesAreNotEnded: what a living runtime started, what isn't marked, and what
// belongs to a runtime of another system that can be seen from here.
// Guarantee: T112.
func TestUnmarkedProcessesAreNotEnded(t *testing.T) {
	var said bytes.Buffer
	c := sh(`echo $BELAY_PROCESS_MARK`)
	c.Output = &said
	run(t, t.Context(), c)
	mine := strings.TrimSpace(said.String())
	f := strings.Split(mine, "-")
	if len(f) != 4 {
		t.Fatalf("the mark is %q", mine)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	mark := func(namespace, pid, start string) string {
		return strings.Join([]string{namespace, pid, start, f[3]}, "-")
	}
	t.Setenv("BELAY_PROCESS_MARK", mark(f[0], f[1], "2")) // the person works in what a call started
	for name, c := range map[string]struct {
		mark  string
		ended bool
	}{
		"of this process":               {mine, false},
		"of another namespace":          {mark("1"+f[0], f[1], "1"), false},
		"where the person works":        {mark(f[0], f[1], "2"), false},
		"of nobody":                     {"", false},
		"of an older program":           {"ABCDEF", false},
		"without a number":              {mark(f[0], "x", "1"), false},
		"of a process that isn't there": {mark(f[0], "4194305", f[2]), true},
		"of one that had this number":   {mark(f[0], f[1], "1"), true},
	} {
		cmd := exec.Command("sleep", "300")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "BELAY_PROCESS_MARK=" + c.mark}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		process.EndStrays()
		if !c.ended {
			if !process.Alive(cmd.Process.Pid, "") {
				t.Errorf("%s: it was ended", name)
			}
			cmd.Process.Kill()
		}
		cmd.Wait() // at once, where it is to be ended
	}
}

package kill

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// leaves is a session in whose middle the process is killed: its program says that
// it is there, and leaves another one in a session of its own.
const leaves = `steps:
  - calls: [{tool: exec, args: {command: "sh leaves.sh"}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`

// TestKilledProgramsLeaveNothing: a killed process leaves nothing in the workspace, and
// programs that left their group are gone once any command was started. It is no
// matter where that command works and whether it starts a program.
// Guarantee: T112.
func TestKilledProgramsLeaveNothing(t *testing.T) {
	m := sandbox.Probe()
	needs.Facility(t, "sandbox", m.Level.AtLeast(belay.L3), "level "+string(m.Level)+": "+m.Why)
	next := map[string][]string{
		"doctor":        {"doctor"},
		"sessions list": {"sessions", "list"},
		"serve":         {"serve", "--listen", "127.0.0.1:0"},
		"no command":    {},
		"run":           {"run", "--script", "../done.yaml", "go"},
	}
	for _, boundary := range []string{"workspace-write", "full"} {
		for name, args := range next {
			t.Run(boundary+" then "+name, func(t *testing.T) { killedThen(t, boundary, args) })
		}
	}
}

func killedThen(t *testing.T, boundary string, args []string) {
	l := newMachine(t)
	defer l.discard()
	err := syscall.Mkfifo(filepath.Join(l.ws, "tether"), 0o600)
	for name, text := range map[string]string{
		"ws/leaves.sh": "exec 3>tether\nsetsid sh -c 'trap \"\" TERM HUP; sleep 600' &\necho up >up\nsleep 600\n",
		"leaves.yaml":  leaves, "done.yaml": "steps:\n  - calls: [{tool: complete_task, args: {summary: done}}]\n",
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o644)
		}
	}
	tether, oerr := syscall.Open(filepath.Join(l.ws, "tether"), syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil || oerr != nil {
		t.Fatal(err, oerr)
	}
	defer syscall.Close(tether)
	before := names(t, l.ws)
	e := l.runWith(func(p *os.Process) {
		go func() {
			for begun := time.Now(); time.Since(begun) < patience; time.Sleep(2 * time.Millisecond) {
				if _, err := os.Stat(filepath.Join(l.ws, "up")); err == nil {
					break
				}
			}
			p.Kill()
		}()
	}, nil, "run", "--script", "../leaves.yaml", "--mode", "default", "--allow", "exec", "--boundary", boundary, "go")
	if !e.killed || !slices.Contains(names(t, l.ws), "up") {
		t.Fatalf("it wasn't killed with its program there: exit %d\n%s", e.exit, e.out)
	}
	before = append(before, "up")
	slices.Sort(before)
	if left := names(t, l.ws); !slices.Equal(left, before) {
		t.Fatalf("the kill left %q, and there was %q", left, before)
	}
	// left says what is left once patience is over; empty as soon as nothing is.
	left := func() (what string) {
		for begun := time.Now(); time.Since(begun) < patience; time.Sleep(2 * time.Millisecond) {
			what = ""
			if n, err := syscall.Read(tether, make([]byte, 1)); n != 0 || err != nil {
				what = "a program"
			}
			if now := names(t, l.ws); !slices.Equal(now, before) {
				what += " " + strings.Join(now, " ")
			}
			if what == "" {
				break
			}
		}
		return what
	}
	e = l.runWith(func(p *os.Process) {
		if len(args) > 0 && args[0] == "serve" {
			go func() {
				left()
				p.Signal(syscall.SIGTERM)
			}()
		}
	}, nil, args...)
	if e.killed {
		t.Fatalf("%q: %s", args, e.out)
	}
	if what := left(); what != "" {
		t.Errorf("after %q there is %s, and was %s", args, what, strings.Join(before, " "))
	}
}

// names are what is in a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

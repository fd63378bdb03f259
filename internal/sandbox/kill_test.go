//go:build linux

package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// patience is how long a test waits for what should take a moment: machines
// are loaded.
const patience = 40 * time.Second

// daemons is a shell line that starts what wants to outlive it, each of which
// holds the pipe "tether": a daemon of a session of its own, one that nobody
// knows the parent of, and one that ignores every signal it can.
const daemons = `exec 3>tether
setsid sh -c 'sleep 600' &
sh -c '(setsid sh -c "sleep 600 & sleep 600" &) ; exit 0'
env -i setsid sh -c 'trap "" TERM HUP INT QUIT; i=0; while [ $i -lt 600 ]; do sleep 1; i=$((i+1)); done' &
`

// tether is a named pipe in a workspace. Reading it ends when nobody who
// opened it for writing is left.
func tether(t *testing.T, s *space) *os.File {
	t.Helper()
	path := filepath.Join(s.o.Workspace, "tether")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// cut waits until nobody holds the tether. It is called when somebody did.
func cut(t *testing.T, f *os.File) {
	t.Helper()
	f.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Errorf("somebody is left: %v", err)
	}
}

// runtimeToKill is a runtime that starts a held program in a workspace, and
// releases it if it is told to.
func runtimeToKill(dir string) int {
	o := sandbox.Options{Workspace: dir, Home: filepath.Dir(dir), Protected: isProtected}
	if os.Getenv("BELAY_TEST_LEVEL") == "L2" {
		o.Disabled = []string{boxinit.Mounts}
	}
	box, err := sandbox.New(belay.Boundary{Name: belay.BoundaryWorkspace}, o)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cmd := exec.Command("/bin/sh", "-c", "echo ran > ran\n"+daemons+"echo ready; wait")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, os.Stdout, os.Stderr, []string{"PATH=/usr/bin:/bin"}
	hold, err := box.Prepare(cmd)
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		err = hold.Await(context.Background())
	}
	if err == nil && os.Getenv("BELAY_TEST_RELEASE") != "" {
		err = hold.Release()
	} else if err == nil {
		fmt.Println("held")
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cmd.Wait()
	return 1
}

// killedRuntime starts such a runtime, kills it when it said word, and waits
// until everything that held its output is gone.
func killedRuntime(t *testing.T, s *space, word string, env ...string) time.Duration {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(append(os.Environ(), asRuntime+"="+s.o.Workspace, "TMPDIR="+s.home), env...)
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != word {
		t.Errorf("the runtime said %q, %v", line, err)
	}
	began := time.Now()
	cmd.Process.Kill()
	cmd.Wait()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("somebody holds the runtime's output: %v", err)
	}
	return time.Since(began)
}

// Guarantee: T51.
func TestNobodyIsLeftWhenTheRuntimeIsKilled(t *testing.T) {
	confined(t)
	for _, level := range []string{"L3", "L2"} {
		s := newSpace(t)
		f := tether(t, s)
		took := killedRuntime(t, s, "ready", "BELAY_TEST_RELEASE=1", "BELAY_TEST_LEVEL="+level)
		cut(t, f)
		t.Logf("%s: gone after %s", level, took)
	}
}

// Guarantee: T50.
func TestHeldProgramNeverRunsWhenTheRuntimeIsKilled(t *testing.T) {
	confined(t)
	for range 5 {
		s := newSpace(t)
		killedRuntime(t, s, "held")
		if _, err := os.Stat(filepath.Join(s.o.Workspace, "ran")); err == nil {
			t.Fatal("the program ran")
		}
	}
}

// Guarantee: T50.
func TestHeldProgramNeverRunsWhenTheHoldIsClosed(t *testing.T) {
	confined(t)
	s := newSpace(t)
	for _, release := range []bool{false, true} {
		cmd := s.command("/bin/sh", "-c", "echo ran > ran")
		h := s.start(cmd)
		if _, err := os.Stat(filepath.Join(s.o.Workspace, "ran")); err == nil {
			t.Fatal("the program ran while it was held")
		}
		if release {
			if err := h.Release(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
		}
		h.Close()
		cmd.Wait()
		_, err := os.Stat(filepath.Join(s.o.Workspace, "ran"))
		if code := cmd.ProcessState.ExitCode(); release != (err == nil) || release != (code == 0) {
			t.Errorf("released %v: it ran %v, exit code %d", release, err == nil, code)
		}
	}
}

// Guarantee: T51.
func TestNobodyIsLeftAfterTheProgram(t *testing.T) {
	confined(t)
	for _, level := range []belay.Level{belay.L3, belay.L2} {
		s := newSpace(t).at(level)
		f := tether(t, s)
		r := s.sh(daemons + "exit 4")
		if r.end.Code != 4 {
			t.Errorf("at %s: got %+v", level, r.end)
		}
		cut(t, f)
	}
}

// Guarantee: T51.
func TestNobodyIsLeftWhenTheHelperIsKilled(t *testing.T) {
	confined(t)
	s := newSpace(t)
	f := tether(t, s)
	cmd := s.command("/bin/sh", "-c", daemons+"echo ready; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h := s.start(cmd)
	defer h.Close()
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	cut(t, f)
	if _, said := h.Ended(); said {
		t.Error("a killed helper said how it ended")
	}
}

func TestExitIsTheProgramsOwn(t *testing.T) {
	confined(t)
	s := newSpace(t)
	for _, c := range []struct {
		line   string
		code   int
		signal syscall.Signal
		out    string
	}{
		{"echo a; echo b >&2; exit 0", 0, 0, "a\nb\n"},
		{"exit 7", 7, 0, ""},
		{"kill -SEGV $$", 128 + 11, syscall.SIGSEGV, ""},
		{"kill -KILL $$", 128 + 9, syscall.SIGKILL, ""},
		{"(sleep 0.05; echo late) & echo now", 0, 0, "now\nlate\n"},
		{"exec /nowhere 2>/dev/null", 127, 0, ""},
	} {
		r := s.sh(c.line)
		if r.end.Code != c.code || r.end.Signal != c.signal || r.out != c.out || !r.said || r.state.ExitCode() != c.code {
			t.Errorf("%s: got %+v, exit code %d, %q", c.line, r.end, r.state.ExitCode(), r.out)
		}
	}
	if r := s.run("/nowhere/program"); r.said || r.state.ExitCode() == 0 {
		t.Errorf("a program that isn't there: got %+v", r)
	}
}

func TestExitAfterASignalToTheHelper(t *testing.T) {
	confined(t)
	s := newSpace(t)
	cmd := s.command("/bin/sh", "-c", `trap 'echo tidy; exit 3' TERM; echo ready; while :; do sleep 0.02; done`)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	h := s.start(cmd)
	defer h.Close()
	w.Close()
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(r)
	if line, _ := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("got %q", line)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(lines)
	cmd.Wait()
	if e, _ := h.Ended(); e.Code != 3 || !bytes.Contains(rest, []byte("tidy")) {
		t.Errorf("got %+v and %q", e, rest)
	}
}

// Guarantee: T57.
func TestNobodyIsLeftWhenTheLeaseEnds(t *testing.T) {
	confined(t)
	for _, level := range []belay.Level{belay.L3, belay.L2} {
		s := newSpace(t).at(level)
		f := tether(t, s)
		cmd := s.command("/bin/sh", "-c", daemons+"echo ready; wait")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		h := s.start(cmd)
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
		if err := h.Extend(time.Hour); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		if err := h.Extend(50 * time.Millisecond); err != nil { // the last word counts
			t.Fatal(err)
		}
		cmd.Wait()
		cut(t, f)
		if e := h.Evidence(); e.Limit != belay.LimitLease || e.Reason == "" {
			t.Errorf("at %s: the evidence is %+v", level, e)
		}
		h.Close()
	}
}

//go:build unix

package process_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/process"
	"go.uber.org/goleak"
)

// asRuntime makes this test binary a runtime that somebody kills.
const asRuntime = "BELAY_TEST_AS_RUNTIME"

// onTerminal gives its program a terminal.
const onTerminal = "BELAY_TEST_ON_TERMINAL"

func TestMain(m *testing.M) {
	if script := os.Getenv(asRuntime); script != "" {
		cmd := sh("read -r started; " + script)
		if os.Getenv(onTerminal) != "" {
			cmd.PTY = &process.Size{Rows: 24, Cols: 80}
		} else {
			cmd.Open = true
		}
		p, err := process.Start(cmd)
		if err == nil { // a program on a terminal isn't watched before
			_, err = p.Write([]byte("yes\n"), time.Minute)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		p.Wait(context.Background())
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func sh(script string) process.Command {
	return process.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Grace: 10 * time.Second, Linger: 100 * time.Millisecond}
}

func run(t *testing.T, ctx context.Context, c process.Command) process.Exit {
	t.Helper()
	p, err := process.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return p.Wait(ctx)
}

// tether is a named pipe: a script that opens it for writing holds it with all
// that it starts, and reading ends when the last of them is gone.
type tether struct {
	path string
	file *os.File
}

func newTether(t *testing.T) tether {
	path := filepath.Join(t.TempDir(), "tether")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Both ends: opening must not wait for a writer.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return tether{path, f}
}

// line reads what a script said into the tether.
func (h tether) line(t *testing.T) string {
	t.Helper()
	h.file.SetReadDeadline(time.Now().Add(20 * time.Second))
	var b []byte
	for c := make([]byte, 1); ; b = append(b, c[0]) {
		if _, err := h.file.Read(c); err != nil {
			t.Fatalf("the script said %q, then %v", b, err)
		}
		if c[0] == '\n' {
			return string(b)
		}
	}
}

// cut waits until nobody else holds the tether.
func (h tether) cut(t *testing.T) {
	t.Helper()
	r, err := os.OpenFile(h.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h.file.Close()
	r.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("somebody is left: %v", err)
	}
}

func TestExitAndOutput(t *testing.T) {
	for _, c := range []struct {
		script, out string
		code        int
		signal      string
	}{
		{"echo a; echo b >&2; echo c", "a\nb\nc\n", 0, ""},
		{"exit 7", "", 7, ""},
		{"kill -SEGV $$", "", 128 + 11, "SIGSEGV"},
		{"cat; echo done", "done\n", 0, ""}, // standard input is empty
	} {
		var out bytes.Buffer
		cmd := sh(c.script)
		cmd.Output = &out
		e := run(t, t.Context(), cmd)
		if out.String() != c.out || e.Code != c.code || e.Signal != c.signal || e.How != process.Exited || e.Bytes != int64(len(c.out)) {
			t.Errorf("%s: got %q %+v", c.script, out.String(), e)
		}
	}
}

func TestProgramThatCannotStart(t *testing.T) {
	_, err := process.Start(process.Command{Path: "/nowhere/program", Argv: []string{"program"}})
	if !os.IsNotExist(err) {
		t.Errorf("got %v, want not exist", err)
	}
}

// Guarantee: T6.
func TestDeadlineEndsTheTree(t *testing.T) {
	h := newTether(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cmd := sh(`exec 3>"` + h.path + `"; sleep 300 & (sleep 300; true) & sleep 300`)
	e := run(t, ctx, cmd)
	if e.How != process.TimedOut || e.Signal != "SIGTERM" {
		t.Errorf("got %+v, want a timeout by SIGTERM", e)
	}
	h.cut(t)
}

func TestTermFirstThenKill(t *testing.T) {
	h := newTether(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	cmd := sh(`trap 'echo tidy' TERM; echo ready >"` + h.path + `"; while :; do sleep 0.05; done`)
	cmd.Output, cmd.Grace = &out, 400*time.Millisecond
	go func() { h.line(t); cancel() }()
	e := run(t, ctx, cmd)
	if e.How != process.Cancelled || e.Signal != "SIGKILL" || !strings.Contains(out.String(), "tidy") {
		t.Errorf("got %+v with %q, want TERM to be heard and KILL to end it", e, out.String())
	}
}

func TestGraceLetsAProgramFinish(t *testing.T) {
	h := newTether(t)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := sh(`trap 'exit 3' TERM; echo ready >"` + h.path + `"; while :; do sleep 0.05; done`)
	go func() { h.line(t); cancel() }()
	if e := run(t, ctx, cmd); e.How != process.Cancelled || e.Code != 3 || e.Signal != "" {
		t.Errorf("got %+v, want exit 3 after the signal", e)
	}
}

// Guarantee: T6.
func TestLeftoversNeitherHangNorStay(t *testing.T) {
	setsid := `command -v setsid >/dev/null || exit 0; setsid sh -c 'trap "" TERM HUP; echo up >&3; sleep 300' & `
	if runtime.GOOS != "linux" {
		setsid = ""
	}
	for name, script := range map[string]string{
		"one that holds the output":     `sleep 300 & echo up >&3`,
		"one that closed the output":    `(exec >/dev/null 2>&1; sleep 300) & echo up >&3`,
		"one that ignores TERM":         `(trap '' TERM; sleep 300) & echo up >&3`,
		"one in a session of its own":   setsid + `sleep 0.2`,
		"one whose parent is gone":      `(sleep 300 & ) & wait; echo up >&3`,
		"one in a group of its own":     `set -m; sleep 300 & echo up >&3`,
		"one that left group and shell": setsid + `sleep 0.2; exit 0`,
	} {
		h := newTether(t)
		began := time.Now()
		e := run(t, t.Context(), sh(`exec 3>"`+h.path+`"; `+script))
		if e.How != process.Exited || e.Code != 0 {
			t.Errorf("%s: %+v", name, e)
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("%s: held the call for %v", name, d)
		}
		h.cut(t)
	}
}

// Guarantee: T7.
func TestTreeDiesWithTheRuntime(t *testing.T) { treeDies(t, "") }

// A terminal that goes away sends HUP; who ignores that must go too.
// Guarantee: T65.
func TestTreeDiesWithTheRuntimeOnATerminal(t *testing.T) { treeDies(t, onTerminal+"=yes") }

func treeDies(t *testing.T, env string) {
	h := newTether(t)
	runtime := exec.Command(os.Args[0])
	runtime.Env = append(os.Environ(), env, asRuntime+`=trap '' HUP; exec 3>"`+h.path+`"; sleep 300 & echo up >&3; sleep 300`)
	if err := runtime.Start(); err != nil {
		t.Fatal(err)
	}
	if got := h.line(t); got != "up" {
		t.Fatalf("got %q", got)
	}
	runtime.Process.Kill()
	runtime.Wait()
	h.cut(t)
}

// Guarantee: T9.
func TestOutputCostsNoMemory(t *testing.T) {
	const size = 1 << 30
	preview := &process.Preview{Head: 8 << 10, Tail: 8 << 10}
	cmd := sh(fmt.Sprintf("printf head; head -c %d /dev/zero; printf tail", size))
	cmd.Output = preview
	var before, later runtime.MemStats
	runtime.ReadMemStats(&before)
	e := run(t, t.Context(), cmd)
	runtime.ReadMemStats(&later)
	if e.Bytes != size+8 {
		t.Errorf("got %d bytes", e.Bytes)
	}
	head, left, tail := preview.Parts()
	if !bytes.HasPrefix(head, []byte("head")) || !bytes.HasSuffix(tail, []byte("tail")) || left != size+8-16<<10 {
		t.Errorf("head %.4q, tail %q, %d left out", head, tail[len(tail)-4:], left)
	}
	if got := later.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("allocated %d bytes for 1 GB of output", got)
	}
}

type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) { f.n++; return 0, io.ErrShortWrite }

func TestFailingDestinationDoesNotBlockTheProgram(t *testing.T) {
	f := &failing{}
	cmd := sh("head -c 1000000 /dev/zero; exit 4")
	cmd.Output = f
	if e := run(t, t.Context(), cmd); e.Code != 4 || e.OutputErr != io.ErrShortWrite || e.Bytes != 1000000 || f.n != 1 {
		t.Errorf("got %+v after %d writes", e, f.n)
	}
}

func TestIdentity(t *testing.T) {
	self, err := process.StartTime(os.Getpid())
	if err != nil || self == "" {
		t.Fatalf("start time of this process: %q, %v", self, err)
	}
	if !process.Alive(os.Getpid(), self) || !process.Alive(os.Getpid(), "") {
		t.Error("this process isn't alive")
	}
	if process.Alive(os.Getpid(), self+"1") {
		t.Error("another start time is taken for this process")
	}
	if process.Alive(0, "") || process.Alive(-1, "") {
		t.Error("a pid that names a group is taken for a process")
	}
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out) // it has closed its output: it is ending
	pid := cmd.Process.Pid
	cmd.Wait()
	if process.Alive(pid, "") {
		t.Errorf("process %d has ended and is alive", pid)
	}
}

func TestPreview(t *testing.T) {
	for _, c := range []struct {
		in, head, tail string
		left           int64
	}{
		{"", "", "", 0},
		{"abcd", "abcd", "", 0},
		{"abcdefgh", "abcdefgh", "", 0},
		{"abcdefghi", "abcd", "fghi", 1},
		{"abcdefghijklmnop", "abcd", "mnop", 8},
		{"abcéfghijkléopq", "abc", "opq", 11}, // both cuts would split a character
	} {
		for size := 1; size <= max(1, len(c.in)); size++ {
			p := process.Preview{Head: 4, Tail: 4}
			for b := []byte(c.in); len(b) > 0; b = b[min(size, len(b)):] {
				p.Write(b[:min(size, len(b))])
			}
			head, left, tail := p.Parts()
			if string(head) != c.head || string(tail) != c.tail || left != c.left {
				t.Errorf("%q by %d: got %q, %d, %q; want %q, %d, %q", c.in, size, head, left, tail, c.head, c.left, c.tail)
			}
		}
	}
}

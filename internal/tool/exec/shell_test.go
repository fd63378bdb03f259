//go:build unix

package exec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type args = map[string]any

func config() exec.Config {
	return exec.Config{
		Environ: []string{"PATH=/usr/bin:/bin", "HOME=/nowhere", "LC_ALL=C", "OPENAI_API_KEY=sk-secret", "LD_PRELOAD=/evil.so", "RANDOM_VAR=1"},
		Grace:   500 * time.Millisecond,
	}
}

// facts are the types of a bench's facts in order.
func facts(b *tooltest.Bench) string {
	var names []string
	for _, f := range b.Sink.Facts() {
		names = append(names, event.TypeOf(f))
	}
	return strings.Join(names, " ")
}

func TestExec(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Put("sub/here", "")
	b.Put("sub/tool", "#!/bin/sh\necho tool $0 $1\n")
	if err := os.Chmod(filepath.Join(b.Dir, "sub/tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args args
		text string
	}{
		{"both streams, in order", args{"command": "echo a; echo b >&2; echo c"}, "a\nb\nc\nexit 0"},
		{"no output", args{"command": "true"}, "exit 0"},
		{"failure is a result", args{"command": "echo no; exit 3"}, "no\nexit 3"},
		{"a line that isn't ended", args{"command": "printf x"}, "x\nexit 0"},
		{"a signal of its own", args{"command": "kill -9 $$"}, "exit 137 (ended by SIGKILL)"},
		{"arguments are not a command line", args{"argv": []string{"echo", "$HOME;", "a  b"}}, "$HOME; a  b\nexit 0"},
		{"the folder", args{"command": "ls; pwd", "dir": "sub"}, "here\ntool\n" + b.Dir + "/sub\nexit 0"},
		{"a program of the folder", args{"argv": []string{"./tool", "x"}, "dir": "sub"}, "tool " + b.Dir + "/sub/tool x\nexit 0"},
		{"no input", args{"command": "cat; echo end"}, "end\nexit 0"},
		{"no terminal", args{"command": "test -t 0 || test -t 1 || echo none"}, "none\nexit 0"},
		{"declared variables", args{"command": "echo $A-$PATH", "env": args{"A": "1"}}, "1-/usr/bin:/bin\nexit 0"},
		{"a declared PATH", args{"argv": []string{"tool"}, "env": args{"PATH": filepath.Join(b.Dir, "sub")}}, "tool " + b.Dir + "/sub/tool\nexit 0"},
		{"bytes that are no text", args{"command": `printf 'a\377\000b'`}, "a\ufffd\ufffdb\nexit 0"},
		{"a command the shell doesn't know", args{"command": "no-such-program 2>/dev/null"}, "exit 127"},
	} {
		b.Sink = &tooltest.Sink{}
		r, err := b.Run(t.Context(), exec.Exec(config()), c.args)
		if err != nil || r.Text != c.text || r.Output != nil {
			t.Errorf("%s: got %q, %v; want %q", c.name, r.Text, err, c.text)
		}
		if got := facts(b); got != "process.started process.completed" {
			t.Errorf("%s: facts %s", c.name, got)
		}
	}
}

// Guarantee: T8.
func TestExecRefuses(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Put("plain", "text")
	b.Put("script", "#!/no/such/interpreter\n")
	if err := os.Chmod(filepath.Join(b.Dir, "script"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(b.Dir, "out")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args              args
		class, code, says string
		facts             string
	}{
		{args{}, tool.BadArguments, exec.CodeOneOf, "either command or argv", ""},
		{args{"command": "a", "argv": []string{"a"}}, tool.BadArguments, exec.CodeOneOf, "either", ""},
		{args{"argv": []string{}}, tool.BadArguments, exec.CodeOneOf, "either", ""},
		{args{"argv": []string{""}}, tool.BadArguments, "BAD_ARGUMENTS", "empty", "process.failed"},
		{args{"argv": []string{"no-such-program"}}, tool.NotFound, exec.CodeNoProgram, `"no-such-program"`, "process.failed"},
		{args{"argv": []string{"./none"}}, tool.NotFound, exec.CodeNoProgram, "./none", "process.failed"},
		{args{"argv": []string{"./plain"}}, tool.Denied, exec.CodeNotRunnable, "./plain", "process.failed"},
		{args{"argv": []string{"./script"}}, tool.NotFound, exec.CodeNoProgram, "interpreter", "process.failed"},
		{args{"command": "true", "dir": "none"}, tool.NotFound, file.CodeNoSuchFile, "none", ""},
		{args{"command": "true", "dir": "plain"}, tool.BadArguments, file.CodeNotDirectory, "plain", ""},
		{args{"command": "true", "dir": ".."}, tool.Denied, file.CodeOutside, "outside", ""},
		{args{"command": "true", "dir": "/tmp"}, tool.Denied, file.CodeOutside, "outside", ""},
		{args{"command": "true", "dir": "out"}, tool.Denied, file.CodeOutside, "out", ""},
		{args{"command": "true", "timeout_seconds": 601}, tool.BadArguments, "BAD_ARGUMENTS", "at most 600", ""},
		{args{"command": "true", "timeout_seconds": -1}, tool.BadArguments, "BAD_ARGUMENTS", "at most 600", ""},
		{args{"command": "true", "timeout_seconds": 1e-12}, tool.BadArguments, "BAD_ARGUMENTS", "more than 0", ""},
		{args{"command": "true", "env": args{"A B": "1"}}, tool.BadArguments, "BAD_ARGUMENTS", `"A B"`, ""},
		{args{"command": "true", "env": args{"1A": "1"}}, tool.BadArguments, "BAD_ARGUMENTS", `"1A"`, ""},
		{args{"command": "true", "env": args{"": "1"}}, tool.BadArguments, "BAD_ARGUMENTS", "variable", ""},
	} {
		b.Sink = &tooltest.Sink{}
		_, err := b.Run(t.Context(), exec.Exec(config()), c.args)
		e := tooltest.Failure(err)
		if e == nil || e.Class != c.class || e.Code != c.code || !strings.Contains(e.Message, c.says) {
			t.Errorf("%v: got %+v; want %s %s %q", c.args, err, c.class, c.code, c.says)
		}
		if got := facts(b); got != c.facts {
			t.Errorf("%v: facts %q, want %q", c.args, got, c.facts)
		}
	}
}

// Guarantee: T8.
func TestEnvironmentIsAnAllowList(t *testing.T) {
	b := tooltest.NewBench(t)
	r, err := b.Run(t.Context(), exec.Exec(config()), args{"argv": []string{"env"}, "env": args{"MINE": "x", "HOME": "/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for l := range strings.Lines(r.Text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(l), "="); ok {
			got[k] = v
		}
	}
	delete(got, "BELAY_PROCESS_MARK")
	want := map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/mine", "LC_ALL": "C", "MINE": "x", "PWD": b.Dir, "BELAY_PARENT": "1"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, name := range []string{"LD_PRELOAD", "ld_library_path", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "GIT_DIR",
		"OPENAI_API_KEY", "MY_TOKEN", "DB_PASSWORD", "NODE_OPTIONS", "PYTHONSTARTUP", "IFS", "BELAY_PROCESS_MARK"} {
		_, err := b.Run(t.Context(), exec.Exec(config()), args{"command": "true", "env": args{name: "v"}})
		if e := tooltest.Failure(err); e == nil || e.Code != exec.CodeEnvRefused || e.Class != tool.Denied || !strings.Contains(e.Message, name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Guarantee: T9.
func TestLargeOutputIsKeptWholeAndShownInPart(t *testing.T) {
	b := tooltest.NewBench(t)
	r, err := b.Run(t.Context(), exec.Exec(config()), args{"command": `echo first; i=0; while [ $i -lt 2000 ]; do echo "line $i é"; i=$((i+1)); done; printf '\377'; echo last`})
	if err != nil || r.Output == nil {
		t.Fatalf("got %.80q, %v", r.Text, err)
	}
	whole, err := b.Sink.Kept(r.Output.Digest)
	if err != nil || !bytes.HasSuffix(whole, []byte("\xfflast\n")) || int64(len(whole)) != r.Output.Size {
		t.Errorf("kept %d bytes, %v", len(whole), err)
	}
	left := strings.Index(r.Text, "[")
	var n int
	fmt.Sscanf(r.Text[left:], "[%d bytes left out here", &n)
	if !strings.HasPrefix(r.Text, "first\nline 0 é\n") || !strings.HasSuffix(r.Text, "\ufffdlast\nexit 0") ||
		!strings.Contains(r.Text, string(r.Output.Digest)) || n < len(whole)-16<<10 || n > len(whole)-16<<10+8 {
		t.Errorf("%d of %d left out: %q", n, len(whole), r.Text[left:left+160])
	}
	if limit := exec.Exec(config()).Spec().OutputLimit; len(r.Text) > limit {
		t.Errorf("%d bytes are more than the output limit %d", len(r.Text), limit)
	}
	if got := facts(b); got != "process.started output.spilled output.truncated process.completed" {
		t.Fatalf("facts %s", got)
	}
	c, ok := b.Sink.Facts()[3].(event.ProcessCompleted)
	if !ok || c.Output == nil || *c.Output != *r.Output || c.Bytes != int64(len(whole)) || c.Exit != 0 {
		t.Errorf("got %+v", c)
	}
	if b.Sink.Open() != 0 {
		t.Error("an output is left open")
	}
	if !strings.HasSuffix(b.Sink.Shown(), "\ufffdlast\n") {
		t.Error("progress doesn't show the end")
	}
}

func TestOutputThatFillsThePreviewStaysInline(t *testing.T) {
	b := tooltest.NewBench(t)
	for size, blob := range map[int]bool{16 << 10: false, 16<<10 + 1: true} {
		r, err := b.Run(t.Context(), exec.Exec(config()), args{"command": fmt.Sprintf("head -c %d /dev/zero | tr '\\000' x", size)})
		if err != nil || (r.Output != nil) != blob {
			t.Errorf("%d bytes: %v, %v", size, r.Output, err)
		}
	}
}

func TestTimeoutEndsEverythingAndGivesTheOutput(t *testing.T) {
	b := tooltest.NewBench(t)
	_, err := b.Run(t.Context(), exec.Exec(config()), args{"command": "echo so far; sleep 300 & sleep 300", "timeout_seconds": 1})
	e := tooltest.Failure(err)
	if e == nil || e.Class != tool.Timeout || e.Code != exec.CodeTimeout || e.Text != "so far\n" || !strings.Contains(e.Message, "1s") {
		t.Fatalf("got %+v", err)
	}
	if got := facts(b); got != "process.started process.terminated" {
		t.Fatalf("facts %s", got)
	}
	end := b.Sink.Facts()[1].(event.ProcessTerminated)
	if end.Reason != "timeout" || end.Signal != "SIGTERM" || end.Bytes != 7 {
		t.Errorf("got %+v", end)
	}
	gone(t, b)
}

func gone(t *testing.T, b *tooltest.Bench) {
	t.Helper()
	p := b.Sink.Facts()[0].(event.ProcessStarted)
	if p.PID <= 0 || p.StartTime == "" || process.Alive(p.PID, p.StartTime) {
		t.Errorf("process %d of %s is alive or unknown", p.PID, p.StartTime)
	}
}

// TestASessionsShellRunsItsLines: the line runs in the recorded shell, which reads
// nothing before it and takes over no function or option.
// Guarantee: G86.
func TestASessionsShellRunsItsLines(t *testing.T) {
	needs.Program(t, "bash")
	b := tooltest.NewBench(t)
	home := t.TempDir()
	for _, name := range []string{".bashrc", ".bash_profile", ".profile", "env"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte("touch "+b.Dir+"/planted\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config()
	cfg.Environ = append(cfg.Environ, "HOME="+home, "BASH_ENV="+home+"/env", "ENV="+home+"/env", "SHELLOPTS=xtrace", "BASHOPTS=extglob",
		"PS4=$(touch "+b.Dir+"/planted)", "BASH_FUNC_ls%%=() { touch "+b.Dir+"/planted; }", "POSIXLY_CORRECT=1", "BASH_COMPAT=3.2")
	line := `[[ a =~ b|touch${IFS}planted ]] || echo no; ls; set -o | grep -c 'posix.*on'; shopt -q extglob || echo "${BASH_VERSION:+bash} $-"`
	for _, c := range []struct {
		shell      *belay.Shell
		line, want string
	}{
		{&belay.Shell{Path: "/bin/bash", Dialect: "bash"}, line, "no\n0\nbash hBc\nexit 0"},
		{&belay.Shell{Path: "/bin/sh", Dialect: "sh"}, "echo $0", "/bin/sh\nexit 0"},
		{nil, "echo $0", "/bin/sh\nexit 0"},
	} {
		b.Shell = c.shell
		got, err := b.Run(t.Context(), exec.Exec(cfg), args{"command": c.line})
		if err != nil || strings.TrimSpace(got.Text) != c.want {
			t.Errorf("%v: %q, %v; want %q", c.shell, got.Text, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(b.Dir, "planted")); err == nil {
			t.Errorf("%v: something else ran first", c.shell)
		}
	}
	for _, name := range []string{"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "BASH_FUNC_ls%%", "POSIXLY_CORRECT", "BASH_COMPAT"} {
		if _, err := b.Run(t.Context(), exec.Exec(cfg), args{"command": "true", "env": args{name: "1"}}); err == nil {
			t.Errorf("a call may set %s", name)
		}
	}
}

// Guarantee: T6.
func TestCancellingEndsEverything(t *testing.T) {
	b := tooltest.NewBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.Sink.OnFact = func(p event.Payload) {
		if s, ok := p.(event.ProcessStarted); ok {
			if strings.Join(s.Argv, " ") != "/bin/sh -c sleep 300" || s.Cwd != b.Dir {
				t.Errorf("got %+v", s)
			}
			cancel()
		}
	}
	_, err := b.Run(ctx, exec.Exec(config()), args{"command": "sleep 300"})
	if e := tooltest.Failure(err); e == nil || e.Code != exec.CodeCancelled {
		t.Errorf("got %v", err)
	}
	if end, ok := b.Sink.Facts()[1].(event.ProcessTerminated); !ok || end.Reason != "cancelled" {
		t.Errorf("facts %s", facts(b))
	}
	gone(t, b)
}

func TestOutputThatCannotBeKeptIsSaid(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Sink.Refuse = errors.New("store is full")
	_, err := b.Run(t.Context(), exec.Exec(config()), args{"command": "head -c 100000 /dev/zero | tr '\\000' x; exit 3"})
	e := tooltest.Failure(err)
	if e == nil || e.Code != exec.CodeOutputNotSaved || !strings.Contains(e.Message, "exit 3") || !strings.Contains(e.Text, "not kept") {
		t.Errorf("got %+v", err)
	}
	if got := facts(b); got != "process.started output.truncated process.completed" {
		t.Errorf("facts %s", got)
	}
}

// Guarantee: T9.
func TestGigabyteOfOutputCostsNoMemory(t *testing.T) {
	b := tooltest.NewBench(t)
	sink := &counting{Sink: b.Sink}
	call := b.Call(args{"argv": []string{"head", "-c", fmt.Sprint(1 << 30), "/dev/zero"}})
	call.Sink = sink
	before := live()
	r, err := exec.Exec(config()).Run(t.Context(), call)
	if err != nil || r.Output == nil || sink.n != 1<<30 {
		t.Fatalf("got %d bytes, %v", sink.n, err)
	}
	if sink.looks < 15 || sink.most > before+8<<20 {
		t.Errorf("of %d looks while it ran the most was %d bytes in use; %d before", sink.looks, sink.most, before)
	}
}

// live is how many bytes are in use.
func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// counting is a sink whose outputs go nowhere. After each 64 MB of them it looks
// at how much memory is in use.
type counting struct {
	*tooltest.Sink
	n     int64
	looks int
	most  uint64
}

func (c *counting) Output(string) (tool.OutputWriter, error) { return c, nil }
func (c *counting) Print(int64, string)                      {}
func (c *counting) Progress(tool.Progress)                   {}
func (c *counting) Commit() (belay.Ref, error)               { return belay.Ref{Size: c.n}, nil }
func (c *counting) Close() error                             { return nil }

func (c *counting) Write(p []byte) (int, error) {
	if c.n += int64(len(p)); c.n>>26 > int64(c.looks) {
		c.looks++
		c.most = max(c.most, live())
	}
	return len(p), nil
}

package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/belay-run/belay/internal/lib/signals"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestMain lets the test binary be the program: the terminal tests start it as
// a process of its own.
func TestMain(m *testing.M) {
	sandbox.Main()
	if os.Getenv("BELAY_TEST_PROGRAM") == "1" {
		os.Exit(Main(context.Background(), os.Args[1:], Process()))
	}
	os.Exit(m.Run())
}

// terminal is a program that runs on a terminal of its own.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	mu   sync.Mutex
	more *sync.Cond
	out  bytes.Buffer
	over bool
}

// onTerminal starts belay on a pseudo-terminal, in a workspace with a script.
func onTerminal(t *testing.T, script string, args ...string) *terminal {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return atTerminal(t, append(args, "--script", file)...)
}

// atTerminal starts belay on a pseudo-terminal, in a workspace.
func atTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	return onTerminalIn(t, t.TempDir(), args...)
}

// programIn is belay with a folder for its workspace and its store.
func programIn(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ws := filepath.Join(dir, "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "--store", filepath.Join(dir, "store"))...)
	cmd.Dir = ws
	cmd.Env = []string{"BELAY_TEST_PROGRAM=1", "HOME=" + dir, "USER=tester", "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
	return cmd
}

// onTerminalIn starts belay on a pseudo-terminal, in a folder.
func onTerminalIn(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	return onScreen(t, programIn(t, dir, args...))
}

// onScreen starts a program on a pseudo-terminal.
func onScreen(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	tty, screen, err := pty.Open()
	needs.Facility(t, "pty", err == nil, "no pseudo-terminal can be opened")
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 30, Cols: 200}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, tty: tty}
	x.more = sync.NewCond(&x.mu)
	var wg sync.WaitGroup
	wg.Go(x.read)
	// A terminal that nobody has open may lose what was written last: it stays
	// open here, and a mark behind the program's last word says that it has ended.
	wg.Go(func() {
		cmd.Wait()               //nolint:errcheck // the exit code tells
		screen.WriteString(last) //nolint:errcheck // a test that waits for it fails then
	})
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it has ended
		x.mu.Lock()
		for !x.over {
			x.more.Wait()
		}
		x.mu.Unlock()
		wg.Wait()
		screen.Close()
		tty.Close()
	})
	return x
}

// last stands behind everything that a program showed.
const last = "\x04the program has ended\x04"

func (x *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := x.tty.Read(buf)
		x.mu.Lock()
		x.out.Write(buf[:n])
		shown, _, ended := bytes.Cut(x.out.Bytes(), []byte(last)) // a conversation's guard may write behind it
		if ended {
			x.out.Truncate(len(shown))
		}
		x.over = ended || err != nil
		x.more.Broadcast()
		x.mu.Unlock()
		if x.over {
			return
		}
	}
}

// see waits until the terminal shows something and returns all it has shown.
func (x *terminal) see(pattern string) string {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	x.mu.Lock()
	defer x.mu.Unlock()
	for !re.Match(x.out.Bytes()) {
		if x.over {
			x.t.Fatalf("the program ended without showing %s:\n%s", pattern, x.out.String())
		}
		x.more.Wait()
	}
	return x.out.String()
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.tty.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// exit waits for the end and holds the exit code.
func (x *terminal) exit(want int) string {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for !x.over {
		x.more.Wait()
	}
	if got := x.cmd.ProcessState.ExitCode(); got != want {
		x.t.Fatalf("exit code %d, want %d:\n%s", got, want, x.out.String())
	}
	return x.out.String()
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
)

const tale = `
steps:
  - text: Once upon a time there was
    chunks: 2
    chunkDelay: 1h
`

func TestFirstInterruptEndsTheTurnAndKeepsTheText(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, tale, "run", "tell me")
	x.see("Once upon")
	x.press(ctrlC)
	out := x.exit(130)
	for _, want := range []string{"interrupting; again to leave at once", "cancelled: interrupted at the terminal", "belay sessions resume sess_"} {
		if !strings.Contains(out, want) {
			t.Errorf("the terminal never showed %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\nOnce upon"); n != 1 { // besides the line that is drawn over
		t.Errorf("the partial text was shown %d times, want once:\n%s", n, out)
	}
}

const stubborn = `
steps:
  - calls:
      - {tool: exec, args: {command: "trap '' TERM; touch up; while :; do sleep 0.05; done"}}
`

// stubbornly waits until the program of stubborn can't be ended by a signal any more.
func (x *terminal) stubbornly() {
	x.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(x.cmd.Dir, "up")); err == nil {
			return
		}
		if time.Now().After(deadline) {
			x.t.Fatal("the program didn't begin")
		}
	}
}

// interruptAgain presses the key once more, when that is another interrupt.
func (x *terminal) interruptAgain() {
	time.Sleep(signals.Once)
	x.press(ctrlC)
}

// TestAnInterruptThatComesTwiceIsOne: GNU timeout, npm and make signal a program and then its
// group. The turn is cancelled with all that runs, and nothing is left to find out.
func TestAnInterruptThatComesTwiceIsOne(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, `
steps:
  - calls:
      - {tool: exec, args: {command: "echo up; exec sleep 60"}}
`, "run", "--allow", "exec", "loop")
	x.see("step 1 · echo up")
	for range 2 {
		if err := x.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if out := x.exit(130); strings.Contains(out, "stopped at once") || !strings.Contains(out, "cancelled: interrupted at the terminal") {
		t.Errorf("it ended with:\n%s", out)
	}
}

func TestSecondInterruptLeavesAtOnce(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, stubborn, "run", "--allow", "exec", "loop")
	x.see("step 1 · trap")
	x.stubbornly()
	x.press(ctrlC)
	x.see("interrupting; again to leave at once")
	x.interruptAgain()
	if out := x.exit(130); !strings.Contains(out, "stopped at once; continue with: belay sessions resume sess_") {
		t.Errorf("no way on was shown:\n%s", out)
	}
}

// TestAnInterruptEndsTheTurnThatATaskBecamePartOf steers a turn that waits for an
// answer, and interrupts at its next question: what the person sees ends, and
// nothing of it runs.
func TestAnInterruptEndsTheTurnThatATaskBecamePartOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(script, []byte(asks), 0o600); err != nil {
		t.Fatal(err)
	}
	x := onTerminalIn(t, dir, "run", "write", "--script", script)
	x.see(`write a\.txt  created`)
	x.press(ctrlD)
	x.exit(3)
	y := onTerminalIn(t, dir, "run", "-c", "--queue", "steer", "hello")
	y.see(`(?s)write b\.txt  created.*allow\?`)
	y.press(ctrlC)
	if out := y.exit(130); !strings.Contains(out, "interrupted at the terminal") || strings.Contains(out, "b.txt created, ") {
		t.Errorf("the turn was not interrupted:\n%s", out)
	}
}

func TestTerminateLeavesTheTurnUnfinished(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, tale, "run", "tell me")
	x.see("Once upon")
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if out := x.exit(130); !strings.Contains(out, "stopped on request; continue with: belay sessions resume sess_") {
		t.Errorf("no way on was shown:\n%s", out)
	}
}

const asks = `
steps:
  - calls:
      - {tool: write, args: {path: a.txt, content: a}}
  - calls:
      - {tool: write, args: {path: b.txt, content: b}}
  - calls:
      - {tool: ask_user, args: {question: "Which \e[31mcolour?"}}
  - calls:
      - {tool: complete_task, args: {summary: Done.}}
`

func TestQuestionsAreAskedOnTheTerminal(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, asks, "run", "write")
	x.see(`write a\.txt  created`)
	x.see(`allow\? \[y\] once, \[s\] for this session, \[e\]dit, \[n\]o: `)
	x.press("what\n")
	x.see(`(?s)allow\?.*allow\?`)
	x.press("s\n")
	x.see(`write a\.txt created, .*allowed by you for this session`)
	x.see(`write b\.txt created, .*ok`) // not asked: it was allowed for the session
	out := x.see(`! .*Which \\x1b\[31mcolour\?`)
	if strings.Contains(out, "\x1b[31m") {
		t.Error("an escape of the model reached the terminal")
	}
	x.press("blue\n")
	x.see("you: blue")
	x.exit(0)
}

// TestWhatIsAllowedAtATerminalIsShownWhole asks about a call that is longer than a
// fact holds: its end is there before anybody can say yes.
// Guarantee: X43.
func TestWhatIsAllowedAtATerminalIsShownWhole(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, "steps:\n  - calls:\n      - {tool: write, args: {path: long.txt, content: \""+strings.Repeat("x", 20_000)+"\\n\\u202etheend\"}}\n  - calls:\n      - {tool: complete_task, args: {summary: Left.}}\n", "run", "go")
	x.see(`(?s)write long\.txt  created.*\\u202etheend.*allow\? \[y\]`)
	x.press("n\n")
	x.see(`reason for the model`)
	x.press("\n")
	x.see(`Left\.`)
}

func TestNoIsAskedForAReason(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, asks, "run", "write")
	x.see(`allow\?`)
	x.press("n\n")
	x.see("reason for the model")
	x.press("not here\n")
	x.see(`(?s)write a\.txt .*denied.*not allowed: user:tester said no: not here`)
	x.see(`write b\.txt  created`)
	x.press(ctrlD)
	if out := x.exit(3); !strings.Contains(out, "then: belay sessions resume sess_") {
		t.Errorf("what stands open was not said:\n%s", out)
	}
}

// TestABudgetIsRaisedAtTheTerminal: what isn't a raise of it is said, and asked again.
// Guarantee: E17.
func TestABudgetIsRaisedAtTheTerminal(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, `
steps:
  - calls: [{tool: list, args: {}}]
    usage: {input: 20000, output: 100}
  - calls: [{tool: complete_task, args: {summary: Done.}}]
    usage: {input: 20000, output: 100}
`, "run", "--budget", "60ktok", "go")
	x.see(`has no tokens left for a request\. Raise it by 30ktok\?`)
	x.see(`raise it\? \[y\]es, \[n\]o, or by another amount`)
	x.press("+5\n")
	x.see(`(?s)not taken: "\+5" has no unit.*raise it\?`)
	x.press("+9calls\n")
	x.see(`(?s)not taken: 9calls isn't a raise of tokens.*raise it\?`)
	x.press("+31ktok\n")
	x.see(`allowed by you`)
	x.see(`left 50800tok of 91ktok`)
	x.exit(0)
}

func TestProgressLineTellsWhatRuns(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, stubborn, "run", "--allow", "exec", "loop")
	x.see(`\r\x1b\[Kstep 1 · trap .* · [a-z0-9]`)
	x.stubbornly()
	x.press(ctrlC)
	x.see("interrupting")
	x.interruptAgain()
	x.exit(130)
}

func TestProgressLineShowsReasoning(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, `
steps:
  - reasoning: "Let me see.\nMaybe the \e[31mcolour is what it is all about"
    fault: {kind: hang, attempts: 1}
`, "run", "think")
	if out := x.see(`\r\x1b\[Kstep 1 · .*it is all about · [a-z0-9]`); strings.Contains(out, "\x1b[31m") {
		t.Error("an escape of the model reached the terminal")
	}
	x.press(ctrlC)
	x.exit(130)
}

func TestATerminalShowsWhatACallChanged(t *testing.T) {
	x := onTerminal(t, `
steps:
  - calls: [{tool: write, args: {path: poem.txt, content: "roses are red\nviolets are blue\n"}}]
  - calls: [{tool: edit, args: {path: poem.txt, old: "violets are blue", new: "violets are \x1b[2Jviolet"}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
    usage: {input: 10, output: 5}
`, "run", "--mode", "accept_edits", "write a poem")
	out := x.exit(0)
	for _, want := range []string{
		"write poem.txt created, +2 −0", "\x1b[32m    + roses are red\x1b[0m",
		"edit poem.txt +1 −1", "\x1b[31m    - violets are blue\x1b[0m", `    + violets are \x1b[2Jviolet`, "      roses are red",
		"10 tokens read, 5 written, cost unknown; changed poem.txt (created, +2 −0)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the terminal lacks %q:\n%s", want, out)
		}
	}
}

// At the terminal a call is changed in the person's editor, which has the terminal
// to itself, shown again as it is then, and allowed so.
// Guarantee: G60.
func TestACallIsChangedAtATerminal(t *testing.T) {
	t.Parallel()
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf 'new name? '\nread name\nsed -i \"s/a\\.txt/$name/\" \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(script, []byte(asks), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := programIn(t, dir, "run", "write", "--script", script)
	cmd.Env = append(cmd.Env, "EDITOR="+editor)
	x := onScreen(t, cmd)
	x.see(`(?s)write a\.txt  created.*allow\? \[y\] once, \[s\] for this session, \[e\]dit, \[n\]o: `)
	x.press("e\n")
	x.see("new name\\? ")
	x.press("a.txt\n") // what was left as it was isn't an answer
	x.see("nothing was changed")
	x.see(`(?s)nothing was changed.*allow\? \[y\]`)
	x.press("e\n")
	x.see(`(?s)nothing was changed.*new name\? `)
	x.press("c.txt\n")
	x.see(`changed to: write \{.*c\.txt.*`)
	x.see(`allow it so\? \[y\]es, \[e\]dit again, \[n\]o: `)
	x.press("y\n")
	x.see(`write c\.txt created, .*changed by you.*allowed by you`)
	x.see(`write b\.txt  created`)
	x.press(ctrlD)
	x.exit(3)
}

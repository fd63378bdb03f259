package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/cli/serve"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

// TestAConversationBearsAnyOutput: 300 MB, or a tenth of that, a line of 20,000 characters and what isn't
// UTF-8 are shown as far as they can be; the whole is in the pager.
func TestAConversationBearsAnyOutput(t *testing.T) {
	dir := t.TempDir()
	line := strings.Repeat("x", 20_000)
	cmd := talking(t, dir, "steps:\n  - {text: "+line+", when: {contains: a long line}}\n  - {text: Ready., repeat: 9}\n", "--allow", "exec", "begin")
	pager := filepath.Join(dir, "pager")
	if err := os.WriteFile(pager, []byte("#!/bin/sh\necho paged $(head -c 1000000 | wc -c) bytes\nread key </dev/tty\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "PAGER="+pager)
	p := inTmux(t, cmd)
	p.see(`Ready.`)
	run := func(command string, want ...string) {
		t.Helper()
		p.text("!" + command)
		p.keys("Enter")
		for _, w := range want {
			p.see(w)
		}
	}
	run(`printf 'a\377\376b\nlast\n'`, `^a�b$`, `^last$`)
	run(`head -c 20000 /dev/zero | tr '\0' y; echo; echo end of the line`, `^y{79,80}$`, `^end of the line$`)
	flood := 30_000_000
	if os.Getenv("BELAY_SCREEN") == "full" {
		flood *= 10
	}
	run(fmt.Sprintf(`yes 0123456789012345678901234567890123456789012345678 | head -c %d; echo; echo end of the flood`, flood), `^end of the flood$`)
	p.keys("C-o")
	p.see(`^paged 1000000 bytes$`) // it ended before the text did
	p.keys("Enter")
	p.text("a long line")
	p.see(`› a long line`)
	p.keys("Enter")
	p.see(`completed in (?s:.*)completed in`)
	if n := strings.Count(p.tmux("capture-pane", "-p", "-J", "-S", "-"), "x"); n < 20_000 {
		t.Errorf("%d characters of the line are shown", n)
	}
}

// TestAConversationBearsAnyTerminal: a paste of a megabyte, a terminal of 20 columns and 5
// rows and its size again, Ctrl+Z and fg, and a terminal that goes away.
func TestAConversationBearsAnyTerminal(t *testing.T) {
	dir := t.TempDir()
	paste := filepath.Join(dir, "paste")
	if err := os.WriteFile(paste, []byte(strings.Repeat(strings.Repeat("z", 99)+"\n", 10_000)+"the very end"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := talking(t, dir, "steps:\n  - {text: All of it came., when: {contains: the very end}}\n  - {text: never, delay: 10m}\n")
	args := append([]string{}, cmd.Args...)
	for i, a := range args {
		args[i] = "'" + a + "'"
	}
	cmd.Args = []string{"bash", "--norc", "-i"}
	p := inTmux(t, cmd)
	p.text("PS1='$ '")
	p.keys("Enter")
	p.text(strings.Join(args, " "))
	p.keys("Enter")
	p.see(`\? help`)
	p.tmux("load-buffer", paste, ";", "paste-buffer", "-p")
	p.see(`^› \[pasted 10,?001 lines\]$`)
	p.keys("Enter")
	p.see(`All of it came.`)
	p.text("draft")
	p.see(`^› draft$`)
	p.tmux("resize-window", "-x", "20", "-y", "5")
	p.see(`^› draft$`)
	p.tmux("resize-window", "-x", "80", "-y", "24")
	p.see(`^› draft$(?s:.*)\? help`)
	p.keys("C-z")
	p.see(`Stopped`)
	p.text("stty -a")
	p.keys("Enter")
	p.see(`(^| )icanon`)
	p.text("fg")
	p.keys("Enter")
	p.see(`(?s)fg\n.*^› draft$.*\? help`)
	p.keys("C-c")
	p.see(`^›$`)
	p.keys("Up")
	p.see(`^› draft$`) // what was cleared is in the history
	p.keys("C-c")
	p.text("take your time")
	p.keys("Enter")
	p.see(`Esc stops`)
	p.tmux("kill-session")

	p = inTmux(t, talking(t, dir, "steps:\n  - {text: Continued., repeat: 9}\n", "-c"))
	p.see(`Continued.`) // the turn was parked: nobody else has it
}

// TestAConversationOutlivesItsServer: while the server can't be reached the status says
// since when; behind the last fact it goes on.
func TestAConversationOutlivesItsServer(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(script, []byte("steps:\n  - {text: First answer.}\n  - {text: Second answer.}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serves := func(at string) (*exec.Cmd, serve.Served) {
		t.Helper()
		srv := programIn(t, dir, "--json", "serve", "--listen", at)
		srv.Env = append(srv.Env, "BELAY_SCRIPT="+script)
		out, err := srv.StdoutPipe()
		if err == nil {
			err = srv.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			srv.Process.Kill() //nolint:errcheck // it has ended
			srv.Wait()         //nolint:errcheck // as above
		})
		var said serve.Served
		if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
			t.Fatal(err)
		}
		return srv, said
	}
	srv, said := serves("127.0.0.1:0")
	p := inTmux(t, programIn(t, dir, "--server", said.URL))
	p.see(`\? help`)
	p.text("first")
	p.keys("Enter")
	p.see(`First answer.(?s:.*)completed in`)
	srv.Process.Kill() //nolint:errcheck // the screen tells
	srv.Wait()         //nolint:errcheck // as above
	p.see(`stale since \d\d:\d\d:\d\d`)
	serves(strings.TrimPrefix(said.URL, "http://"))
	p.seeNot(`stale since`)
	p.text("second")
	p.keys("Enter")
	shown := p.see(`Second answer.(?s:.*)completed in`)
	if n := strings.Count(shown, "First answer."); n != 1 {
		t.Errorf("the first answer is shown %d times", n)
	}
	p.text("/queue") // the server says what a command here would
	p.keys("Enter")
	p.see(`^  status +idle$`)
	p.text("/tools")
	p.keys("Enter")
	p.see(`^  write +Write a whole file`)
	p.text("/export there.belay") // into the folder in which the conversation was started
	p.keys("Enter")
	p.see(`^  written to there.belay`)
	if _, err := os.Stat(filepath.Join(dir, "ws", "there.belay")); err != nil {
		t.Error(err)
	}
	p.text("/model")
	p.keys("Enter")
	p.see(`type to search$`)
	p.keys("Escape")
	p.seeNot(`type to search$`)
	p.keys("C-d")
	p.ended()
}

// TestProgressIsCutToTheWidth: on a narrow terminal the line that is drawn over stays one.
func TestProgressIsCutToTheWidth(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, stubborn, "run", "--allow", "exec", "loop")
	if err := pty.Setsize(x.tty, &pty.Winsize{Rows: 30, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(x.see(`(?s)step 1 · trap.*step 1 · trap`), "\r\x1b[K")[1:] {
		if l, _, _ := strings.Cut(l, "\r"); len([]rune(l)) > 39 {
			t.Errorf("%d columns of 40: %q", len([]rune(l)), l)
		}
	}
	x.stubbornly()
	x.press(ctrlC)
	x.see("interrupting")
	x.interruptAgain()
	x.exit(130)
}

// TestThePickerHasManySessions: among 10,000, or a tenth of that, one is found by its
// title.
func TestThePickerHasManySessions(t *testing.T) {
	many := 1000
	if os.Getenv("BELAY_SCREEN") == "full" {
		many = 10_000
	}
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), filepath.Join(dir, "store"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := feedtest.New(t, st, nil)
	for i := range many {
		ids := feedtest.IDs(fmt.Sprintf("%08x", i))
		w.AddTo(ids.Session.Stream(), ids, event.SessionCreated{Workspace: filepath.Join(dir, "ws"), Title: fmt.Sprintf("work %d", i)})
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	p := inTmux(t, talking(t, dir, "steps: [{text: Here.}]\n", "--resume="))
	p.see(`the newest 100 `)
	p.text(fmt.Sprintf("work %d", many-7))
	p.see(`^  1 line `)
	p.keys("Enter")
	p.see(`^›$`)
}

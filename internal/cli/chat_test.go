package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/cli/serve"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// pane is a terminal of tmux with a program in it.
type pane struct {
	t      *testing.T
	socket string
}

// inTmux starts a program in a terminal of tmux, of 80 columns and 24 rows.
func inTmux(t *testing.T, cmd *exec.Cmd) *pane {
	t.Helper()
	needs.Program(t, "tmux")
	p := &pane{t, filepath.Join(t.TempDir(), "tmux")}
	args := []string{"-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", cmd.Dir, "env", "-i", "TERM=screen-256color", "LANG=C.UTF-8"}
	args = append(append(args, cmd.Env...), cmd.Args...)
	p.tmux(append(args, ";", "set", "-g", "remain-on-exit", "on")...)
	t.Cleanup(func() { exec.Command("tmux", "-S", p.socket, "kill-server").Run() }) //nolint:errcheck // it has ended
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// keys presses keys, by tmux's names for them.
func (p *pane) keys(keys ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys"}, keys...)...)
}

// text types a text.
func (p *pane) text(text string) { p.keys("-l", text) }

// paste pastes a text.
func (p *pane) paste(text string) {
	p.t.Helper()
	p.tmux("set-buffer", "--", text, ";", "paste-buffer", "-p")
}

// see waits until the screen with what scrolled off it shows something, and returns it.
func (p *pane) see(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for late := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		shown := p.tmux("capture-pane", "-p", "-S", "-")
		if re.MatchString(shown) {
			return shown
		}
		if time.Now().After(late) {
			p.t.Fatalf("the screen doesn't show %s:\n%s", pattern, shown)
		}
	}
}

// seeNot waits until the screen doesn't show something any more.
func (p *pane) seeNot(pattern string) {
	p.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for late := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		shown := p.tmux("capture-pane", "-p")
		if !re.MatchString(shown) {
			return
		}
		if time.Now().After(late) {
			p.t.Fatalf("the screen shows %s:\n%s", pattern, shown)
		}
	}
}

// ended waits until the program has ended, and with it what it does in the store.
func (p *pane) ended() {
	p.t.Helper()
	for late := time.Now().Add(time.Minute); p.tmux("list-panes", "-F", "#{pane_dead}") != "1\n"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			p.t.Fatal("it doesn't end")
		}
	}
}

// noticed waits until a question that is on the screen takes keys.
func noticed() { time.Sleep(450 * time.Millisecond) }

// talking is belay without a command, with a script.
func talking(t *testing.T, dir, script string, args ...string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return programIn(t, dir, append(args, "--script", file)...)
}

// TestAConversation plays a day with the screen: a message on the command line, a
// question that shows what a yes does, text typed around it that answers nothing, a
// refusal with its reason, a question of the agent, and leaving.
func TestAConversation(t *testing.T) {
	dir := t.TempDir()
	p := inTmux(t, talking(t, dir, `steps:
  - text: "I make **one** file."
    calls:
      - {tool: write, args: {path: a.txt, content: "one\ntwo\n"}}
  - calls:
      - {tool: write, args: {path: b.txt, content: "three\n"}}
  - calls:
      - {tool: ask_user, args: {question: "Which colour?", options: [red, blue]}}
  - text: All is done.
`, "make two files"))
	shown := p.see(`y once(?s:.*)n no`)
	for _, want := range []string{"› make two files\n", "I make one file.\n", "! write a.txt  created, +2 −0", "+ one\n", "+ two\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the question's screen has no %q:\n%s", want, shown)
		}
	}
	noticed()
	p.text("zyes, y and n") // the first key is none of the question's: all of it is composed
	p.see(`^› zyes, y and n$`)
	p.keys("C-c")
	p.see(`^›$`)
	p.keys("y")
	if shown := p.see(`write a.txt .*allowed by you`); strings.Count(shown, "+ one\n") != 1 {
		t.Errorf("the change isn't shown once:\n%s", shown)
	}
	p.see(`! write b.txt`)
	noticed()
	p.keys("n")
	p.see(`^why not`)
	p.text("not needed")
	p.keys("Enter")
	p.see(`! write b.txt .*denied`)
	p.see(`1 red\n +2 blue`)
	noticed()
	p.keys("2")
	p.see(`you: blue`)
	p.see(`All is done.`)
	p.see(`^completed in .* 1 denied`)
	p.keys("C-d")
	p.see(`^resume: belay -r [0-9a-f]{6}`)
	if _, err := os.Stat(filepath.Join(dir, "ws", "b.txt")); err == nil {
		t.Error("the file that was denied is there")
	}
}

// TestTheQueueOfAConversation steers a turn, sends a message for afterwards, takes it
// back, and interrupts.
func TestTheQueueOfAConversation(t *testing.T) {
	dir := t.TempDir()
	p := inTmux(t, talking(t, dir, "steps:\n  - {text: The second answer., when: {contains: steer it}}\n  - {text: Never., delay: 10m}\n"))
	p.see(`\? help`)
	p.text("wait")
	p.keys("Enter")
	p.see(`working 00:`)
	p.text("steer it")
	p.keys("Enter")
	p.see(`steering: steer it`)
	p.text("do more")
	p.keys("Tab")
	p.see(`queued: do more`)
	p.keys("Up")
	p.see(`^› do more$`)
	p.keys("Escape")
	p.see(`^cancelled in `)
	p.see(`The second answer.`)
	p.see(`^› do more$`) // what is composed stays
}

// TestAConversationWithAgents: the threads of agents aren't the conversation. Behind one that
// worked a turn is shown, steered, stopped and gone back to as before it; a person's own
// command waits in the row as it was written.
func TestAConversationWithAgents(t *testing.T) {
	dir := t.TempDir()
	p := inTmux(t, talking(t, dir, `steps:
  - {when: {contains: hand it over}, times: 1, calls: [{tool: spawn_agent, args: {task: "help out", name: kid}}]}
  - {when: {contains: help out}, times: 1, calls: [{tool: complete_task, args: {summary: helped}}]}
  - {when: {contains: steer it}, times: 1, text: Steered.}
  - {when: {contains: take your time}, times: 1, delay: 10m, text: never}
  - {text: The agent helped.}
`, "--tools", "full"))
	p.see(`\? help`)
	p.text("hand it over")
	p.keys("Enter")
	p.see(`The agent helped.`)
	p.see(`^completed in `)
	p.text("take your time")
	p.keys("Enter")
	p.see(`working 00:`)
	p.text("steer it")
	p.keys("Enter")
	p.see(`steering: steer it`)
	p.text("!echo one && echo two")
	p.keys("Enter")
	p.see(`queued: !echo one && echo two `)
	p.keys("Up")
	p.see(`^› !echo one && echo two$`)
	p.keys("C-c")
	p.see(`^›$`)
	p.keys("Escape")
	p.see(`^cancelled in `)
	p.see(`Steered.`)
	p.see(`(?s)^completed in .*^completed in `)
	p.text("/rewind")
	p.keys("Enter")
	p.see(`go back before(?s:.*)steer it(?s:.*)take your time(?s:.*)hand it over`)
}

// TestAKilledConversationAsksAgain: the question of a process that was killed is asked
// again by the one that continues.
func TestAKilledConversationAsksAgain(t *testing.T) {
	dir := t.TempDir()
	script := "steps:\n  - calls:\n      - {tool: write, args: {path: a.txt, content: x}}\n  - {text: Written.}\n"
	p := inTmux(t, talking(t, dir, script, "write the file"))
	p.see(`y once`)
	pid, err := strconv.Atoi(strings.TrimSpace(p.tmux("display-message", "-p", "#{pane_pid}")))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	p = inTmux(t, talking(t, dir, script, "-c"))
	p.see(`› write the file`)
	p.see(`y once`)
	noticed()
	p.keys("y")
	p.see(`Written.`)
}

// dot is a PNG of one pixel.
const dot = "\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"

// TestAMessageTakesImagesAndFilesAlong drops an image on the terminal, takes one from the
// clipboard and names a file. A model that takes no images gets no message; it is in the
// composer again, with its image.
func TestAMessageTakesImagesAndFilesAlong(t *testing.T) {
	dir := t.TempDir()
	const script = `steps:
  - {text: Dropped one seen., when: {matches: '\[image/png image 1 \(my shot.png\)\]'}}
  - {text: Clipboard seen., when: {matches: '\[image/png image 2\]'}}
  - {text: Notes seen., when: {matches: 'attached: notes.md, 6 bytes'}}
`
	cmd := talking(t, dir, "images: true\n"+script)
	shot := filepath.Join(dir, "my shot.png")
	clip := "#!/bin/sh\n[ \"$*\" = '-selection clipboard -target image/png -out' ] && cat '" + shot + "'\n"
	for name, content := range map[string]string{shot: dot, filepath.Join(dir, "ws", "notes.md"): "words\n", filepath.Join(dir, "bin", "xclip"): clip} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range cmd.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			cmd.Env[i] = "PATH=" + filepath.Join(dir, "bin") + ":" + path
		}
	}
	cmd.Env = append(cmd.Env, "DISPLAY=:77")
	p := inTmux(t, cmd)
	p.see(`\? help`)
	p.paste(strings.ReplaceAll(shot, " ", `\ `))
	p.see(`^› \[image 1\]$`)
	p.text(" what is it?")
	p.keys("Enter")
	p.see(`Dropped one seen.`)
	p.see(`› \[image 1\] what is it\?\n  with image 1 \(my shot.png\) \(image/png, 33 bytes\)$`)
	p.text("and ")
	p.keys("C-v")
	p.see(`^› and \[image 2\]$`)
	p.keys("Enter")
	p.see(`Clipboard seen.`)
	p.text("read @notes.md and @nofile.go")
	p.keys("Enter")
	p.see(`^@nofile.go is no file of this workspace; it is sent as text$`)
	p.see(`Notes seen.`)

	p = inTmux(t, talking(t, dir, script))
	p.see(`\? help`)
	p.paste("'" + shot + "'")
	p.see(`^› \[image 1\]$`)
	p.keys("Enter")
	p.see(`^error: image 1 \(my shot.png\): scripted:`)
	p.see(`^› \[image 1\]$`)
}

// TestAConversationNotifiesAsItIsSet: whose window has no focus hears that a question
// waits and that the turn has ended, by a bell and a notification, a bell alone, or not.
func TestAConversationNotifiesAsItIsSet(t *testing.T) {
	for how, want := range map[string]struct{ bells, notes int }{"auto": {2, 2}, "bell": {2, 0}, "off": {0, 0}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, ".config", "belay", "belay.yaml")
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("notify: "+how+"\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			cmd := talking(t, dir, "steps:\n  - calls:\n      - {tool: write, args: {path: a.txt, content: x}}\n  - {text: Written.}\n")
			cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
			x := onScreen(t, cmd)
			x.see(`\? help`)
			x.press("write it\x1b[O\r")
			x.see(`y once`)
			noticed()
			x.press("y")
			out := x.see(`completed in `)
			notes := strings.Count(out, "\x1b]9;belay: write it waits for you\a") + strings.Count(out, "\x1b]9;belay: write it has ended\a")
			if bells := strings.Count(out, "\a") - notes; bells != want.bells || notes != want.notes {
				t.Errorf("%d bells and %d notifications, want %v:\n%q", bells, notes, want, out)
			}
		})
	}
}

// TestTheSecondAnswerHearsWhoWasFirst: two conversations have one session on the screen.
// Who answers a question that the other has answered meanwhile is told by whom.
func TestTheSecondAnswerHearsWhoWasFirst(t *testing.T) {
	dir := t.TempDir()
	script := "steps:\n  - calls:\n      - {tool: write, args: {path: a.txt, content: x}}\n  - {text: Written.}\n"
	first := inTmux(t, talking(t, dir, script, "write the file"))
	first.see(`y once`)
	second := inTmux(t, talking(t, dir, script, "-c"))
	second.see(`y once`)
	noticed()
	second.keys("n")
	second.see(`^why not`)
	first.keys("y")
	first.see(`Written.`)
	second.text("too late")
	second.keys("Enter")
	second.see(`^too late: act_[0-9a-f-]+ was allowed by user:tester`)
	second.see(`Written.`)
}

// TestASessionOfTheServerIsFollowedThroughIt: a conversation on a session that the
// store's server drives says so, shows what flows there, and its messages reach it.
func TestASessionOfTheServerIsFollowedThroughIt(t *testing.T) {
	dir := t.TempDir()
	const script = "steps:\n  - {text: The server answers., when: {contains: steer it}}\n  - {text: Once upon a time there was, chunks: 2, chunkDelay: 1h}\n"
	chat := programIn(t, dir, "-c")
	if err := os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	chat.Env = append(chat.Env, "BELAY_SCRIPT="+filepath.Join(dir, "script.yaml"))
	srv := programIn(t, dir, "--json", "serve", "--listen", "127.0.0.1:0")
	srv.Env = append(srv.Env, "BELAY_SCRIPT="+filepath.Join(dir, "script.yaml"))
	out, err := srv.StdoutPipe()
	if err == nil {
		err = srv.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		srv.Process.Signal(os.Interrupt) //nolint:errcheck // it ends, or has
		srv.Wait()                       //nolint:errcheck // as above
	})
	var said serve.Served
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(said.URL, client.Options{Token: said.Token})
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"sessionId": "sess_tale", "text": "tell it", "settings": map[string]any{"completion": "conversational"}}
	if err := c.Command(t.Context(), "submit_turn", "", in, nil); err != nil {
		t.Fatal(err)
	}
	for e, err := range c.Stream(t.Context(), "/v1/sessions/sess_tale/stream", client.StreamOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == client.TypeText {
			break
		}
	}
	p := inTmux(t, chat)
	p.see(`^the server at http://127.0.0.1:[0-9]+ drives the session; this goes through it$`)
	p.see(`^Once upon`)
	p.text("steer it")
	p.keys("Enter")
	p.see(`steering: steer it`)
	p.keys("Escape")
	p.see(`^The server answers.$`)
	p.keys("C-d")
	p.see(`^resume: belay -r s_tale`)
	p.ended()
}

// TestAConversationThatNobodyWasAskedInAsks: what -p was denied without a question is
// asked about when a person goes on with it, also when they choose it from the list.
func TestAConversationThatNobodyWasAskedInAsks(t *testing.T) {
	dir := t.TempDir()
	script := "steps:\n  - calls:\n      - {tool: write, args: {path: a.txt, content: x}}\n  - {text: Denied.}\n  - calls:\n      - {tool: write, args: {path: a.txt, content: x}}\n  - {text: Written.}\n"
	if out, err := talking(t, dir, script, "-p", "write the file").Output(); err != nil || string(out) != "Denied.\n" {
		t.Fatalf("%v: %s", err, out)
	}
	p := inTmux(t, talking(t, dir, script, "--resume="))
	p.see(`1 line `)
	p.keys("Enter")
	p.see(`Denied.`)
	p.text("now write it")
	p.keys("Enter")
	p.see(`y once`)
}

// Package screens holds what a person sees: the program on a real terminal, whose
// screens are compared with those in testdata. docs/chat.md shows some of them.
package screens

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/golden"
	"github.com/belay-run/belay/internal/testkit/tmux"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	if os.Getenv("SCREENS_PROGRAM") != "" {
		code := cli.Main(context.Background(), os.Args[1:], cli.Process())
		sandbox.Cleanup()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// story is one conversation on a terminal, and its screens.
type story struct {
	*tmux.Window
	t      *testing.T
	server *tmux.Server
	name   string
	dir    string // has the home, the workspace and the model
	size   size
	env    []string
	text   strings.Builder // the screens so far
}

type size struct{ width, height int }

func begin(t *testing.T, name string, s size, env []string, args ...string) *story {
	t.Helper()
	st := &story{t: t, server: tmux.New(t), name: name, size: s, env: env}
	st.dir = st.server.Dir
	for _, d := range []string{"home", "ws"} {
		if err := os.Mkdir(filepath.Join(st.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	model, err := os.ReadFile("testdata/model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"model.yaml": string(model), "ws/result": "--- FAIL: TestQueue (0.01s)\nFAIL\n", "ws/queue.go": "package queue\n\nfunc (q *Queue) Push(x int) {\n\tq.items = append(q.items, x)\n}\n"} {
		if err := os.WriteFile(filepath.Join(st.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st.start("begin", args...)
	return st
}

// start starts the program in a window of its own and waits until it can be used.
func (s *story) start(window string, args ...string) {
	s.t.Helper()
	s.run(window, args...)
	s.Waits("demo")
}

func (s *story) run(window string, args ...string) {
	s.t.Helper()
	argv := append([]string{"env", "-i", "PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"), "USER=tester", "LANG=C.UTF-8",
		"TERM=screen-256color", "TZ=UTC", "SCREENS_PROGRAM=1"}, s.env...)
	argv = append(argv, os.Args[0], "chat", "--script", filepath.Join(s.dir, "model.yaml"), "--model", "demo")
	s.Window = s.server.Window(window, filepath.Join(s.dir, "ws"), s.size.width, s.size.height, append(argv, args...)...)
}

// say types a message and sends it.
func (s *story) say(text string) {
	s.t.Helper()
	s.Type(text)
	s.Waits(text)
	s.Press("Enter")
}

// keep keeps the screen that has a text, when nothing has changed on it for a while,
// under a title.
func (s *story) keep(title, text string) {
	s.t.Helper()
	last, same := "", 0
	s.Until(text+", and rest", func(screen string) bool {
		screen = steady(screen)
		if same++; screen != last {
			last, same = screen, 0
		}
		return same >= 20 && strings.Contains(screen, text)
	})
	fmt.Fprintf(&s.text, "== %s\n%s", title, last)
}

var (
	duration = regexp.MustCompile(`\b\d+(\.\d+)? (ms|s|min)\b`)
	clock    = regexp.MustCompile(`\b\d\d:\d\d\b`)
	spinner  = regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`)
	id       = regexp.MustCompile(`\b[0-9a-f]{6}\b`)
	took     = regexp.MustCompile(`( · |, after )\d+(\.\d+)? (ms|s|min)\b`) // of a call; one that took no millisecond says nothing
	gap      = regexp.MustCompile(`   +`)
)

// steady is a screen without what differs from run to run: times, and the gaps that
// they make wider.
func steady(screen string) string {
	lines := strings.Split(screen, "\n")
	for i, l := range lines {
		l = spinner.ReplaceAllString(l, "⠹")
		l = id.ReplaceAllString(clock.ReplaceAllString(l, "00:00"), "c16f7b")
		if strings.HasPrefix(l, "●") || strings.HasPrefix(l, "✗") || strings.HasPrefix(l, "  exit") || strings.HasPrefix(l, "  ok") {
			l = gap.ReplaceAllString(took.ReplaceAllString(l, ""), "   ")
		}
		if strings.Contains(l, ", after ") {
			l = took.ReplaceAllString(l, "")
		}
		l = duration.ReplaceAllString(l, "9 ms")
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

func (s *story) compare() {
	s.t.Helper()
	golden.Compare(s.t, filepath.Join("testdata", s.name+".screens"), s.text.String())
}

// sizes are the terminals of the golden screens.
var sizes = []size{{40, 12}, {80, 24}, {120, 40}, {300, 50}}

func each(t *testing.T, f func(t *testing.T, s size, name string)) {
	for _, s := range sizes {
		name := fmt.Sprintf("%dx%d", s.width, s.height)
		t.Run(name, func(t *testing.T) { f(t, s, name) })
	}
}

// unnoticed is longer than a question takes no keys after it was drawn.
const unnoticed = 600 * time.Millisecond

// asked waits for a question, and as long as it takes no keys.
func (s *story) asked() {
	s.t.Helper()
	s.Waits("no, and say why")
	time.Sleep(unnoticed)
}

// TestQuestionsOnScreen: a first message, a command that fails, a question and its answer.
func TestQuestionsOnScreen(t *testing.T) {
	each(t, func(t *testing.T, size size, name string) { questions(t, "questions-"+name, size, nil) })
	// what terminals or people can't do with
	t.Run("NO_COLOR", func(t *testing.T) { questions(t, "questions-nocolor", sizes[1], []string{"NO_COLOR=1"}) })
	t.Run("screen reader", func(t *testing.T) { questions(t, "questions-reader", sizes[1], nil, "--screen-reader") })
}

// TestADumbTerminalIsRefused: nothing can be drawn there, and the message says what can
// be done.
func TestADumbTerminalIsRefused(t *testing.T) {
	s := &story{t: t, server: tmux.New(t), size: sizes[1], name: "dumb", env: []string{"TERM=dumb"}}
	s.dir = s.server.Dir
	for _, d := range []string{"home", "ws"} {
		if err := os.Mkdir(filepath.Join(s.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.run("dumb")
	s.Waits("try: belay")
	s.Ended()
}

func questions(t *testing.T, name string, size size, env []string, args ...string) {
	s := begin(t, name, size, env, args...)
	s.keep("first run", "? help")
	s.say("run the test")
	s.keep("a command that fails", "completed in")
	s.say("repair it")
	s.asked()
	s.keep("a question", "no, and say why")
	s.Press("y")
	s.Until("the answer to the question", func(screen string) bool {
		return strings.Contains(screen, "completed in") && !strings.Contains(screen, "no, and say why") && !strings.Contains(screen, "working")
	})
	s.keep("answered", "completed in")
	if colours := s.Colours(); len(env) > 0 && regexp.MustCompile(`\x1b\[[0-9;]*3[0-7]m`).MatchString(colours) {
		t.Errorf("NO_COLOR, and yet:\n%q", colours)
	}
	s.Press("C-d")
	s.Waits("resume: belay -r")
	s.Ended()
	s.compare()
}

// TestSteeringOnScreen: while the model works, one message steers and one waits.
func TestSteeringOnScreen(t *testing.T) {
	each(t, func(t *testing.T, size size, name string) {
		s := begin(t, "steering-"+name, size, nil)
		s.say("take your time")
		s.Waits("Esc stops")
		s.say("look at Push first")
		s.Waits("steering:")
		s.Type("also update the changelog")
		s.Press("Tab")
		s.keep("one message steers, one waits", "queued:")
		s.compare()
	})
}

// TestStreamingOnScreen: an answer with a table and code, half of it, then interrupted.
func TestStreamingOnScreen(t *testing.T) {
	each(t, func(t *testing.T, size size, name string) {
		s := begin(t, "streaming-"+name, size, nil)
		s.say("show me the queue")
		s.keep("half an answer", "q.items")
		s.Press("Escape")
		s.keep("interrupted", "cancelled in")
		s.compare()
	})
}

// TestAKilledChatAsksAgain: the process dies at a question; -c shows it again.
func TestAKilledChatAsksAgain(t *testing.T) {
	each(t, func(t *testing.T, size size, name string) {
		s := begin(t, "killed-"+name, size, nil)
		s.say("repair it")
		s.asked()
		if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.Ended()
		s.start("again", "-c")
		s.keep("after kill -9 at a question", "no, and say why")
		s.compare()
	})
}

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
	args   []string        // of every start
	text   strings.Builder // the screens so far
}

type size struct{ width, height int }

func begin(t *testing.T, name string, s size, env []string, args ...string) *story {
	t.Helper()
	st := &story{t: t, server: tmux.New(t), name: name, size: s, env: env, args: args}
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
	st.start("begin")
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
	argv = append(argv, s.args...)
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
		screen = strings.ReplaceAll(steady(screen), s.dir, "/home/ann")
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
	took     = regexp.MustCompile(`( · |, after )\d+(\.\d+)? (ms|s|min)\b`)    // of a call; one that took no millisecond says nothing
	age      = regexp.MustCompile(` +(now|[0-9]+ min)  (running|completed)  `) // of a session
	program  = regexp.MustCompile(`^  (\w+) is /\S+$`)
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
		l = program.ReplaceAllString(l, "  $1 is /usr/bin/$1")
		l = age.ReplaceAllString(l, "      now  $2  ")
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

// each plays a story at every size, and at one of them without colours and for a screen
// reader.
func each(t *testing.T, name string, tell func(s *story)) {
	for _, s := range sizes {
		play(t, name, fmt.Sprintf("%dx%d", s.width, s.height), s, nil, tell)
	}
	play(t, name, "nocolor", sizes[1], []string{"NO_COLOR=1"}, tell)
	play(t, name, "reader", sizes[1], nil, tell, "--screen-reader")
}

func play(t *testing.T, name, as string, size size, env []string, tell func(s *story), args ...string) {
	t.Run(as, func(t *testing.T) {
		t.Parallel()
		s := begin(t, name+"-"+as, size, env, args...)
		tell(s)
		if colours := s.Colours(); len(env) > 0 && regexp.MustCompile(`\x1b\[[0-9;]*3[0-7]m`).MatchString(colours) {
			t.Errorf("NO_COLOR, and yet:\n%q", colours)
		}
		s.compare()
	})
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
	each(t, "questions", func(s *story) {
		s.keep("first run", "? help")
		s.say("run the test")
		s.keep("a command that fails", "completed in")
		s.repaired()
		s.keep("answered", "completed in")
	})
}

// repaired has a file changed, with a yes.
func (s *story) repaired() {
	s.t.Helper()
	s.say("repair it")
	s.asked()
	s.keep("a question", "no, and say why")
	s.Press("y")
	s.Until("the answer to the question", func(screen string) bool {
		return strings.Contains(screen, "completed in") && !strings.Contains(screen, "no, and say why") && !strings.Contains(strings.ToLower(screen), "working")
	})
}

// TestACommandIsAskedAboutOnScreen: with all that it runs, and where.
func TestACommandIsAskedAboutOnScreen(t *testing.T) {
	play(t, "command", "80x24", sizes[1], nil, func(s *story) {
		s.say("check it")
		s.asked()
		s.keep("a question about a command", "no, and say why")
	})
}

// TestTheDocumentShowsTheseScreens: what docs/chat.md shows is on one of them.
func TestTheDocumentShowsTheseScreens(t *testing.T) {
	doc, err := os.ReadFile("../../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("testdata/*.screens")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	blocks := strings.Split(string(doc), "```\n")
	if len(blocks) < 9 {
		t.Errorf("it shows %d screens, want 4", len(blocks)/2)
	}
	for i := 1; i < len(blocks); i += 2 {
		if !strings.Contains(all.String(), blocks[i]) {
			t.Errorf("no screen has this:\n%s", blocks[i])
		}
	}
}

// TestRewindOnScreen: a message is chosen to go back before, what goes back, and the file
// is as it was.
func TestRewindOnScreen(t *testing.T) {
	each(t, "rewind", func(s *story) {
		s.say("run the test")
		s.Waits("completed in")
		s.repaired()
		s.Press("Escape")
		s.Press("Escape")
		s.keep("which message", "go back before")
		s.Press("Enter")
		s.keep("what goes back", "conversation only")
		s.Press("Enter")
		s.keep("what that means", "yes, take it back")
		s.Press("Enter")
		s.keep("taken back", " repair it\ndemo")
		if text, err := os.ReadFile(filepath.Join(s.dir, "ws", "queue.go")); err != nil || strings.Contains(string(text), "Lock") {
			s.t.Errorf("the file wasn't taken back (%v):\n%s", err, text)
		}
	})
}

// TestPickerOnScreen: two sessions to choose from, one of them by a word of it.
func TestPickerOnScreen(t *testing.T) {
	each(t, "picker", func(s *story) {
		s.say("run the test")
		s.Waits("completed in")
		s.say("/new")
		s.Waits("a new conversation")
		s.say("take your time")
		s.Waits("Esc")
		s.Press("C-d")
		s.Waits("resume: belay -r")
		s.Ended()
		s.start("again", "--resume=")
		s.keep("sessions to choose from", "2 lines")
		s.Type("test")
		s.keep("one has the word", "1 line ")
		s.Press("Enter")
		s.keep("resumed", "completed in")
	})
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

// TestSteeringOnScreen: while the model works, one message steers and one waits.
func TestSteeringOnScreen(t *testing.T) {
	each(t, "steering", func(s *story) {
		s.say("take your time")
		s.Waits("Esc")
		s.say("look at Push first")
		s.Waits("steering:")
		s.Type("also update the changelog")
		s.Press("Tab")
		s.keep("one message steers, one waits", "queued:")
	})
}

// TestStreamingOnScreen: an answer with a table and code, half of it, then interrupted.
func TestStreamingOnScreen(t *testing.T) {
	each(t, "streaming", func(s *story) {
		s.say("show me the queue")
		s.keep("half an answer", "q.items")
		s.Press("Escape")
		s.keep("interrupted", "cancelled in")
	})
}

// TestAKilledChatAsksAgain: the process dies at a question; -c shows it again.
func TestAKilledChatAsksAgain(t *testing.T) {
	each(t, "killed", func(s *story) {
		s.say("repair it")
		s.asked()
		if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
		s.Ended()
		s.start("again", "-c")
		s.keep("after kill -9 at a question", "no, and say why")
	})
}

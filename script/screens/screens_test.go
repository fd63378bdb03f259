// Package screens holds what a person sees: the program on a real terminal, whose
// screens are compared with those in testdata. docs/chat.md shows some of them.
package screens

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	lines  bool // it is held line by line
	env    []string
	args   []string        // of every start
	text   strings.Builder // the screens so far
}

type size struct{ width, height int }

func begin(t *testing.T, name string, s size, lines bool, env []string, args ...string) *story {
	t.Helper()
	st := &story{t: t, server: tmux.New(t), name: name, size: s, lines: lines, env: env, args: args}
	st.dir = filepath.Join(st.server.Dir, strings.Repeat("w", max(1, 24-len(st.server.Dir)))) // paths are as long in each run: lines break where they do
	for _, d := range []string{"home", "ws"} {
		if err := os.MkdirAll(filepath.Join(st.dir, d), 0o700); err != nil {
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
	s.program(window, nil, append([]string{"chat", "--script", filepath.Join(s.dir, "model.yaml"), "--model", "demo"}, append(s.args, args...)...)...)
}

// program starts the program with these arguments alone, and more of an environment.
func (s *story) program(window string, env []string, args ...string) {
	s.t.Helper()
	argv := append([]string{"env", "-i", "PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"), "USER=tester", "LANG=C.UTF-8",
		"TERM=screen-256color", "TZ=UTC", "SCREENS_PROGRAM=1"}, append(s.env, env...)...)
	s.Window = s.server.Window(window, filepath.Join(s.dir, "ws"), s.size.width, s.size.height, append(append(argv, os.Args[0]), args...)...)
}

// say types a message and sends it.
func (s *story) say(text string) {
	s.t.Helper()
	if s.lines {
		s.Until("a prompt, or work", func(screen string) bool {
			last := screen[strings.LastIndex(strings.TrimSuffix(screen, "\n"), "\n")+1:]
			return last == "›\n" || last == ">\n" || strings.HasPrefix(last, "working;") || strings.HasPrefix(last, "steering:")
		})
	}
	s.Type(text)
	s.Waits(text)
	s.Press("Enter")
}

// keepFigures keeps the last lines of a screen whose figures and ids differ from run to
// run.
func (s *story) keepFigures(title, text string, lines int) {
	s.t.Helper()
	kept := spent.ReplaceAllString(s.rests(text), "${1}0        ")
	all := strings.SplitAfter(kept, "\n")
	kept = strings.Join(all[max(0, len(all)-1-lines):], "")
	kept = hex.ReplaceAllStringFunc(kept, func(id string) string {
		if !strings.ContainsAny(id, "0123456789") {
			return id // a piece of a word
		}
		return regexp.MustCompile("[a-f]").ReplaceAllString(id, "0")
	})
	fmt.Fprintf(&s.text, "== %s\n%s", title, regexp.MustCompile("[0-9]").ReplaceAllString(kept, "0"))
}

// keepCommand keeps the screen from a command on. How far what is above it moved depends
// on how tall the list of commands grew while it was typed.
func (s *story) keepCommand(command, text string) {
	s.t.Helper()
	screen := s.rests(text)
	if at := strings.LastIndex(screen, "\n› "+command+"\n"); at >= 0 {
		screen = screen[at+1:]
	}
	fmt.Fprintf(&s.text, "== %s\n%s", command, screen)
}

// keep keeps the screen that has a text under a title.
func (s *story) keep(title, text string) {
	s.t.Helper()
	fmt.Fprintf(&s.text, "== %s\n%s", title, s.rests(text))
}

// rests is the screen that has a text, when nothing has changed on it for a while.
func (s *story) rests(text string) string {
	s.t.Helper()
	last, same := "", 0
	s.Until(text+", and rest", func(screen string) bool {
		screen = strings.ReplaceAll(steady(screen), s.dir, "/home/ann")
		if same++; screen != last {
			last, same = screen, 0
		}
		return same >= 20 && strings.Contains(screen, text)
	})
	return last
}

var (
	duration = regexp.MustCompile(`\b\d+(\.\d+)? (ms|s|min)\b`)
	clock    = regexp.MustCompile(`\b\d\d:\d\d\b`)
	spinner  = regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`)
	id       = regexp.MustCompile(`\b[0-9a-f]{6}\b`)
	took     = regexp.MustCompile(`( · |, after )\d+(\.\d+)? (ms|s|min)\b`) // of a call; one that took no millisecond says nothing
	hex      = regexp.MustCompile(`[0-9a-f][0-9a-f-]{3,}`)
	age      = regexp.MustCompile(` +(now|[0-9]+ min)  (running|parked|completed)  `) // of a session
	program  = regexp.MustCompile(`^  (\w+) is /\S+$`)
	gap      = regexp.MustCompile(`   +`)
	spent    = regexp.MustCompile(`(?m)^(  time    none   )\S+ +`) // what /budget says of time
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

// each plays a story at every size, and at one of them without colours, for a screen
// reader and on a terminal that can't move its cursor.
func each(t *testing.T, name string, tell func(s *story)) {
	for _, s := range sizes {
		play(t, name, fmt.Sprintf("%dx%d", s.width, s.height), s, false, nil, tell)
	}
	play(t, name, "nocolor", sizes[1], false, []string{"NO_COLOR=1"}, tell)
	play(t, name, "reader", sizes[1], true, nil, tell, "--screen-reader")
	play(t, name, "dumb", sizes[1], true, []string{"TERM=dumb"}, tell)
}

// sampled is each, of which one size and one of the others are played, by a seed;
// BELAY_SCREEN=full plays all.
func sampled(t *testing.T, name string, tell func(s *story), env ...string) {
	seed := uint64(time.Now().UnixNano())
	if was := os.Getenv("BELAY_SCREEN_SEED"); was != "" {
		seed, _ = strconv.ParseUint(was, 10, 64)
	}
	t.Logf("seed %d; BELAY_SCREEN_SEED=%d plays the same again", seed, seed)
	all := os.Getenv("BELAY_SCREEN") == "full" || golden.Updates()
	for i, s := range sizes {
		if all || int(seed%4) == i {
			play(t, name, fmt.Sprintf("%dx%d", s.width, s.height), s, false, env, tell)
		}
	}
	if all || seed/4%3 == 0 {
		play(t, name, "nocolor", sizes[1], false, append([]string{"NO_COLOR=1"}, env...), tell)
	}
	if all || seed/4%3 == 1 {
		play(t, name, "reader", sizes[1], true, env, tell, "--screen-reader")
	}
	if all || seed/4%3 == 2 {
		play(t, name, "dumb", sizes[1], true, append([]string{"TERM=dumb"}, env...), tell)
	}
}

func play(t *testing.T, name, as string, size size, lines bool, env []string, tell func(s *story), args ...string) {
	t.Run(as, func(t *testing.T) {
		t.Parallel()
		s := begin(t, name+"-"+as, size, lines, env, args...)
		tell(s)
		if colours := s.Colours(); (slices.Contains(env, "NO_COLOR=1") || slices.Contains(env, "TERM=dumb")) && regexp.MustCompile(`\x1b\[[0-9;]*3[0-7]m`).MatchString(colours) {
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

// TestFirstRunOnScreen: belay alone, with the key of one vendor, with those of two, and with
// none.
func TestFirstRunOnScreen(t *testing.T) {
	sampled(t, "firstrun", func(s *story) {
		s.program("one", []string{"OPENAI_API_KEY=sk-tester"}, s.args...)
		s.keep("one key", map[bool]string{false: "? help", true: "default"}[s.lines])
		s.program("two", []string{"OPENAI_API_KEY=sk-tester", "ANTHROPIC_API_KEY=sk-tester"}, s.args...)
		s.keep("two keys", "from now on?")
		s.program("none", nil, s.args...)
		s.keep("no key", "from now on?")
	})
}

// TestQuestionsOnScreen: a first message, a command that fails, a question and its answer.
func TestQuestionsOnScreen(t *testing.T) {
	each(t, "questions", func(s *story) {
		s.keep("first run", map[bool]string{false: "? help", true: "demo"}[s.lines])
		s.say("run the test")
		s.keep("a command that fails", "completed in")
		s.repaired()
		s.keep("answered", "completed in")
	})
}

// presses presses keys one by one, or enters each on a line of its own.
func (s *story) presses(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		if s.Press(key); s.lines {
			s.Press("Enter")
		}
	}
}

// chooses chooses the first line of a list.
func (s *story) chooses() {
	s.t.Helper()
	if s.lines {
		s.Type("1")
	}
	s.Press("Enter")
}

// repaired has a file changed, with a yes.
func (s *story) repaired() {
	s.t.Helper()
	s.say("repair it")
	s.asked()
	s.keep("a question", "no, and say why")
	s.presses("y")
	s.Until("the answer to the question", func(screen string) bool {
		if s.lines {
			return strings.Contains(screen, "; changed")
		}
		return strings.Contains(screen, "completed in") && !strings.Contains(screen, "no, and say why") && !strings.Contains(strings.ToLower(screen), "working")
	})
}

// TestACommandIsAskedAboutOnScreen: with all that it runs, and where.
func TestACommandIsAskedAboutOnScreen(t *testing.T) {
	play(t, "command", "80x24", sizes[1], false, nil, func(s *story) {
		s.say("check it")
		s.asked()
		s.keep("a question about a command", "no, and say why")
	})
}

// TestCommandsOnScreen: what commands show of a session in which a file was changed.
func TestCommandsOnScreen(t *testing.T) {
	play(t, "commands", "120x40", sizes[2], false, nil, func(s *story) {
		s.Run("set-option", "-s", "set-clipboard", "on")
		s.say("run the test")
		s.Waits("completed in")
		s.repaired()
		s.say("/new")
		s.Waits("a new conversation")
		s.say("/resume")
		s.Waits("1 line")
		s.Press("Enter")
		s.Waits("; changed")
		for _, c := range []struct{ command, shows string }{
			{"/diff", "@@ line 2 @@"}, {"/actions", "nothing waits"}, {"/queue", "wait"}, {"/grants", "nothing is allowed besides"}, {"/copy", "was copied"}, {"/mode", "type to search"},
		} {
			s.say(c.command)
			s.keepCommand(c.command, c.shows)
		}
		if got := s.Run("show-buffer"); got != "The test fails because `Push` has no lock." {
			t.Errorf("the clipboard has %q", got)
		}
		s.Press("Escape")
		s.Until("no list", func(screen string) bool { return !strings.Contains(screen, "type to search") })
		s.say("/help")
		s.keepCommand("/help", "/quit")
	})
}

// TestReadsOnScreen: what commands show of a session that are answers of the runtime.
func TestReadsOnScreen(t *testing.T) {
	sampled(t, "reads", func(s *story) {
		s.say("run the test")
		s.Waits("completed in")
		for _, c := range []struct {
			command, shows string
			lines          int
		}{
			{"/context", "7       run the test", 19}, {"/cost", "of work", 7}, {"/tools", "folders above it", 7}, {"/config", "as they are by default", 7},
			{"/budget", "it has no budget", 11}, {"/out", "\n--- FAIL: TestQueue", 6}, {"/why", "gives the session more to do", 6},
		} {
			s.say(c.command)
			s.keepFigures(c.command, c.shows, c.lines)
		}
	}, "PAGER=cat")
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
		if s.lines {
			s.say("/rewind")
		} else {
			s.Press("Escape", "Escape")
		}
		s.keep("which message", "go back before")
		s.chooses()
		s.keep("what goes back", "conversation only")
		s.chooses()
		s.keep("what that means", "yes, take it back")
		s.chooses()
		s.keep("taken back", map[bool]string{false: " repair it\ndemo", true: "it was: repair it"}[s.lines])
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
		s.works()
		s.Press("C-d")
		s.Waits("resume: belay -r")
		s.Ended()
		s.start("again", "--resume=")
		s.keep("sessions to choose from", "run the ")
		if s.Type("test"); s.lines {
			s.Press("Enter")
		}
		s.Until("one line", func(screen string) bool {
			return strings.Contains(screen, "1 line ") || strings.Count(screen, "  1  ") == 2
		})
		s.keep("one has the word", "run the ")
		s.chooses()
		s.keep("resumed", "completed in")
	})
}

// works waits until a turn runs.
func (s *story) works() {
	s.t.Helper()
	s.Until("a turn that works", func(screen string) bool {
		return strings.Contains(screen, "Esc") || s.lines && strings.Contains(screen[strings.LastIndex(screen, "take your time"):], "working;")
	})
}

// TestSteeringOnScreen: while the model works, one message steers and one waits.
func TestSteeringOnScreen(t *testing.T) {
	each(t, "steering", func(s *story) {
		s.say("take your time")
		s.works()
		s.say("look at Push first")
		s.Waits("steering:")
		if s.lines {
			s.say("/queue also update the changelog")
		} else {
			s.Type("also update the changelog")
			s.Press("Tab")
		}
		s.keep("one message steers, one waits", "queued:")
	})
}

// TestStreamingOnScreen: an answer with a table and code, half of it, then interrupted.
func TestStreamingOnScreen(t *testing.T) {
	each(t, "streaming", func(s *story) {
		s.say("show me the queue")
		s.keep("half an answer", map[bool]string{false: "q.items", true: "fails one time"}[s.lines])
		s.Press(map[bool]string{false: "Escape", true: "C-c"}[s.lines])
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

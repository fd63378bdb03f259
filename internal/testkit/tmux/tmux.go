// Package tmux runs programs in windows of a tmux server of a test's own, which is a
// terminal that can be asked what it shows.
package tmux

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// Patience is how long a test waits for what should come at once: machines that run
// tests are busy.
const Patience = 1 * time.Minute

// Server is a tmux server that ends with the test.
type Server struct {
	t      testing.TB
	Dir    string // its folder; a path in it is short enough for a socket
	socket string
}

// New starts a server; without tmux the test is skipped.
func New(t testing.TB) *Server {
	t.Helper()
	needs.Program(t, "tmux")
	dir, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, Dir: dir, socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		s.command("kill-server").Run() //nolint:errcheck // it may have ended
		os.RemoveAll(dir)
	})
	s.Run("start-server", ";", "set-option", "-s", "exit-empty", "off", ";", "set-option", "-g", "history-limit", "100000", ";", "set-option", "-g", "remain-on-exit", "on")
	return s
}

func (s *Server) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u", "-f", os.DevNull, "-S", s.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=", "TERM=xterm-256color")
	return cmd
}

// Run performs commands of tmux and returns what they print.
func (s *Server) Run(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// Window is a program in a terminal of its own.
type Window struct {
	*Server
	name string
}

// Window starts a program in a folder.
func (s *Server) Window(name, dir string, width, height int, argv ...string) *Window {
	s.t.Helper()
	s.Run(append([]string{"new-session", "-d", "-s", name, "-c", dir, "-x", strconv.Itoa(width), "-y", strconv.Itoa(height)}, argv...)...)
	return &Window{Server: s, name: name}
}

// Type types text, as if its characters were keys.
func (w *Window) Type(text string) {
	w.t.Helper()
	w.Run("send-keys", "-t", w.name, "-l", "--", text)
}

// Press presses keys by tmux's names, such as Enter, Escape, C-c.
func (w *Window) Press(keys ...string) {
	w.t.Helper()
	w.Run(append([]string{"send-keys", "-t", w.name}, keys...)...)
}

// Paste pastes text; a program that asked for it is told that it was pasted.
func (w *Window) Paste(text string) {
	w.t.Helper()
	w.Run("set-buffer", "-b", w.name, "--", text, ";", "paste-buffer", "-p", "-d", "-b", w.name, "-t", w.name)
}

// Resize gives the window another size.
func (w *Window) Resize(width, height int) {
	w.t.Helper()
	w.Run("resize-window", "-t", w.name, "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// Screen is what is on the screen, without the empty rows at its end.
func (w *Window) Screen() string {
	w.t.Helper()
	return strings.TrimRight(w.Run("capture-pane", "-p", "-t", w.name), "\n") + "\n"
}

// Colours is Screen with the sequences for colours.
func (w *Window) Colours() string {
	w.t.Helper()
	return w.Run("capture-pane", "-p", "-e", "-t", w.name)
}

// All is the scrollback and the screen; rows that continue each other are joined.
func (w *Window) All() string {
	w.t.Helper()
	return w.Run("capture-pane", "-p", "-J", "-S", "-", "-t", w.name)
}

// Waits waits until the screen has a text, and returns it.
func (w *Window) Waits(text string) string {
	w.t.Helper()
	return w.Until(text, func(screen string) bool { return strings.Contains(screen, text) })
}

// Until waits until the screen is as it should be, and returns it.
func (w *Window) Until(what string, is func(screen string) bool) string {
	w.t.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(20 * time.Millisecond) {
		screen := w.Screen()
		if is(screen) {
			return screen
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: the screen never has %s:\n%s", w.name, what, screen)
		}
	}
}

// PID is the process that the window was started with.
func (w *Window) PID() int {
	w.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(w.Run("display-message", "-p", "-t", w.name, "#{pane_pid}")))
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}

// Ended waits until the program has ended.
func (w *Window) Ended() {
	w.t.Helper()
	for end := time.Now().Add(Patience); strings.TrimSpace(w.Run("display-message", "-p", "-t", w.name, "#{pane_dead}")) != "1"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: the program doesn't end:\n%s", w.name, w.Screen())
		}
	}
}

// Close ends the window and what runs in it.
func (w *Window) Close() {
	w.t.Helper()
	w.Run("kill-session", "-t", w.name)
}

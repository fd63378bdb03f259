package screen

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// terminalTime is how long a test waits for what should come at once.
const terminalTime = time.Minute

// device is a pseudo terminal, with what was written to it.
type device struct {
	t         *testing.T
	main, tty *os.File
	was       *term.State

	mu   sync.Mutex
	text strings.Builder
}

func newDevice(t *testing.T) *device {
	main, tty, err := pty.Open()
	needs.Facility(t, "pty", err == nil, "no pseudo-terminal can be opened")
	d := &device{t: t, main: main, tty: tty}
	d.was, _ = term.GetState(int(tty.Fd()))
	if err := pty.Setsize(main, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tty.Close()
		main.Close()
	})
	return d
}

type writer struct{ d *device }

func (w writer) Write(p []byte) (int, error) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	return w.d.text.Write(p)
}

func (d *device) written() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// shows waits until something was written.
func (d *device) shows(what string) {
	d.t.Helper()
	for end := time.Now().Add(terminalTime); !strings.Contains(d.written(), what); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("it never wrote %q: %q", what, d.written())
		}
	}
}

// isCooked checks that the terminal is as it was.
func (d *device) isCooked(when string) {
	d.t.Helper()
	if now, err := term.GetState(int(d.tty.Fd())); err != nil || *now != *d.was {
		d.t.Errorf("%s: the terminal isn't as it was (%v)", when, err)
	}
}

// isRaw checks that keys come one by one.
func (d *device) isRaw(when string) {
	d.t.Helper()
	if now, err := term.GetState(int(d.tty.Fd())); err != nil || *now == *d.was {
		d.t.Errorf("%s: the terminal isn't raw (%v)", when, err)
	}
}

func next(t *testing.T, term *Terminal) (e Event, ok bool) {
	t.Helper()
	select {
	case e, ok = <-term.Events():
		return e, ok
	case <-time.After(terminalTime):
		t.Fatal("no event came")
		return nil, false
	}
}

func open(t *testing.T) (*device, *Terminal) {
	t.Helper()
	d := newDevice(t)
	go io.Copy(writer{d}, d.main) //nolint:errcheck // it ends with the device
	terminal, err := Open(d.tty, d.tty)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(terminal.Close)
	return d, terminal
}

// TestATerminalIsGivenBack: keys, a paste and a size come; Release and Close leave the
// terminal as it was.
func TestATerminalIsGivenBack(t *testing.T) {
	d, terminal := open(t)
	d.isRaw("open")
	d.shows(modesOn)
	terminal.Draw(Region{Lines: []string{"› live"}, Row: 0, Col: 2, Cursor: true})
	d.shows("› " + withCursor("live", 0))
	d.main.WriteString("a\x1b[200~b\x1b[201~") //nolint:errcheck // the events tell
	if e, _ := next(t, terminal); e != (Key{"a", "a"}) {
		t.Errorf("%#v", e)
	}
	if e, _ := next(t, terminal); e != (Paste{"b"}) {
		t.Errorf("%#v", e)
	}
	failed := errors.New("the editor failed")
	err := terminal.Release(func() error {
		d.isCooked("released")
		d.shows(modesOff)
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("Release returned %v", err)
	}
	d.isRaw("after Release")
	if err := pty.Setsize(d.main, &pty.Winsize{Rows: 10, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(syscall.Getpid(), syscall.SIGWINCH) //nolint:errcheck // it isn't the controlling terminal
	if e, _ := next(t, terminal); e != (Resize{40, 10}) {
		t.Errorf("%#v", e)
	}
	terminal.Print("last words")
	terminal.Close()
	terminal.Close()
	d.isCooked("closed")
	if _, ok := next(t, terminal); ok {
		t.Error("an event came after Close")
	}
	d.shows("last words" + plainText + endLine + showCursor + syncOff + modesOff)
	if err := terminal.Release(func() error { return nil }); err != nil {
		t.Error(err)
	}
	d.isCooked("released after it was closed")
}

// TestSignalsGiveTheTerminalBack: a process that is asked to end has a cooked terminal
// before its own handlers have done anything, and so has one whose work panics.
func TestSignalsGiveTheTerminalBack(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		d, terminal := open(t)
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		if e, ok := next(t, terminal); ok {
			t.Errorf("%s: %#v", sig, e)
		}
		d.isCooked(sig.String())
		d.shows(modesOff)
	}
	d, terminal := open(t)
	func() {
		defer func() {
			if recover() != "broken" {
				t.Error("the panic went no further")
			}
		}()
		defer terminal.Guard()
		panic("broken")
	}()
	d.isCooked("panic")
}

// dying says how a program ends that has a terminal.
const dying = "SCREEN_TEST_DYING"

// dies takes a terminal over and ends without giving it back.
func dies(how string) {
	terminal, err := Open(os.Stdin, os.Stdout)
	if err != nil {
		os.Exit(1)
	}
	terminal.Draw(Region{Lines: []string{"› live"}, Cursor: true})
	for range terminal.Events() { // a key is the moment
		switch how {
		case "panic":
			go func() { panic("broken") }()
			select {}
		case "exit":
			os.Exit(3)
		}
	}
	select {} // it was asked to end, and doesn't
}

// TestADeadProcessLeavesATerminalAsItWas: whatever ends it, keys come in lines again, and
// pastes aren't marked.
func TestADeadProcessLeavesATerminalAsItWas(t *testing.T) {
	for _, how := range []string{"panic", "exit", "kill", "hangup"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := newDevice(t)
			go io.Copy(writer{d}, d.main) //nolint:errcheck // it ends with the device
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), dying+"="+how)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = d.tty, d.tty, d.tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cmd.Process.Kill() //nolint:errcheck // it has ended
				cmd.Wait()         //nolint:errcheck // how it ends is the test
			}()
			d.shows(withCursor("› live", 0))
			d.isRaw("while it runs")
			switch how {
			case "kill":
				cmd.Process.Kill() //nolint:errcheck // the terminal tells
			case "hangup":
				cmd.Process.Signal(syscall.SIGHUP) //nolint:errcheck // the terminal tells
			default:
				d.main.WriteString("x") //nolint:errcheck // the terminal tells
			}
			d.shows(modesOff)
			for end := time.Now().Add(terminalTime); ; time.Sleep(time.Millisecond) {
				if now, err := term.GetState(int(d.tty.Fd())); err == nil && *now == *d.was {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the terminal isn't as it was")
				}
			}
		})
	}
}

// TestTheEndOfTheInputEndsEvents: the window was closed.
func TestTheEndOfTheInputEndsEvents(t *testing.T) {
	d := newDevice(t)
	terminal, err := Open(d.tty, d.tty)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(terminal.Close)
	d.main.Close()
	for {
		if _, ok := next(t, terminal); !ok {
			return
		}
	}
}

// TestWhatIsNoTerminalIsRefused: a pipe can't be set.
func TestWhatIsNoTerminalIsRefused(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := Open(r, w); err == nil {
		t.Error("a pipe was taken for a terminal")
	}
}

package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/process"
)

// ErrDetached means that the user pressed the detach keys.
var ErrDetached = errors.New("detached")

// Attach shows what a program prints and gives it what is typed, until the program
// ends or the user detaches. eof means that the end of the own input is the end of
// the program's. The terminal that it returns is closed.
func Attach(ctx context.Context, e *Env, c *client.Client, to client.AttachTo, eof bool) (t *client.Terminal, err error) {
	s := &attachSession{env: e, eof: eof}
	to.Missing, to.Refused = s.missing, s.refused
	if s.t, err = c.Attach(ctx, to); err != nil {
		return nil, err
	}
	err = s.run(ctx)
	s.t.Close() //nolint:errcheck // the program continues, or has ended
	return s.t, err
}

// attachSession is a person, or a pipe, in front of a program.
type attachSession struct {
	env *Env
	t   *client.Terminal
	eof bool // the end of the own input is the end of the program's
	raw bool // the keys are the program's

	saying sync.Mutex
}

// run shows what the program prints and gives it what is typed, until the
// program ends or the user detaches.
func (s *attachSession) run(ctx context.Context) error {
	at := s.t.Attached()
	in, _ := s.env.In.(*os.File)
	both := s.env.IsTerminal(s.env.In) && s.env.IsTerminal(s.env.Out)
	s.raw = both && at.Rows > 0 && at.Input == "open"
	if s.raw {
		was, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return belay.Errorf(belay.CodeUsage, "the terminal can't be set: %s", err).WithHint("pipe what is typed: echo TEXT | belay attach ID")
		}
		defer func() {
			fmt.Fprint(s.env.Out, leftover)
			term.Restore(int(in.Fd()), was) //nolint:errcheck // there is nobody to tell
		}()
	}
	ctx, end := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end(nil)
	wg.Go(func() { s.signals(ctx, end) })
	if at.Input == "open" && s.env.In != nil {
		wg.Go(func() { s.keys(ctx, in, end) })
	}
	if s.raw {
		wg.Go(func() { s.sizes(ctx, in) })
	}
	err := s.show(ctx, both && at.Rows > 0)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	return err
}

// leftover undoes what a program may have left of its terminal: another screen, a
// hidden cursor, colours, the mouse, pasting in brackets.
const leftover = "\x1b[?1049l\x1b[?25h\x1b[0m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\r\n"

// show prints the output. What isn't from a terminal goes to one without
// escape sequences.
func (s *attachSession) show(ctx context.Context, whole bool) error {
	out := s.env.Out
	if s.env.IsTerminal(out) && !whole {
		plain := &process.TerminalText{Dst: s.env.Out}
		defer plain.Flush() //nolint:errcheck // the terminal is gone, then
		out = plain
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := s.t.Read(ctx, buf)
		if _, werr := out.Write(buf[:n]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// signals detaches when this process gets a signal to end.
func (s *attachSession) signals(ctx context.Context, end context.CancelCauseFunc) {
	select {
	case <-s.env.Signals:
		end(ErrDetached)
	case <-ctx.Done():
	}
}

// sizes gives the program's terminal the size of this one, now and when it changes.
func (s *attachSession) sizes(ctx context.Context, in *os.File) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if cols, rows, err := term.GetSize(int(in.Fd())); err == nil && cols > 0 && rows > 0 {
			s.t.Resize(ctx, min(cols, 1000), min(rows, 1000)) //nolint:errcheck // the next one may be sent
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (s *attachSession) missing(from, to int64) {
	s.say(fmt.Sprintf("bytes %d to %d aren't kept", from, to))
}

func (s *attachSession) refused(err error) { s.say(Line(err.Error())) }

// say tells the person something that isn't output.
func (s *attachSession) say(what string) {
	s.saying.Lock()
	defer s.saying.Unlock()
	if s.raw {
		what = "\r\n" + what + "\r"
	}
	fmt.Fprintf(s.env.Err, "%s\n", what)
}

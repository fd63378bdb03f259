package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	xterm "golang.org/x/term"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store"
)

type attachCmd struct {
	ID       string `arg:"" help:"The process."`
	ReadOnly bool   `name:"read-only" help:"Only look on."`
	Offset   int64  `default:"-65536" placeholder:"BYTE" help:"Begin here; a negative number counts from the end. The last 64 KiB."`
	EOF      bool   `name:"eof" help:"When standard input ends, end the program's input too."`
	Server   string `placeholder:"URL" help:"A server elsewhere, with --session, and its token in $$BELAY_TOKEN; the store's own."`
	Session  string `placeholder:"ID" help:"The program's session, for --server."`
}

// errDetached means that the user pressed the detach keys.
var errDetached = errors.New("detached")

func (c *attachCmd) run(ctx context.Context, a *app) (int, error) {
	cl, session, done, err := c.server(ctx, a)
	if err != nil {
		return 0, err
	}
	defer done()
	s := &attachSession{a: a, eof: c.EOF}
	to := client.AttachTo{Session: session, Process: belay.ProcessID(c.ID), Offset: c.Offset, ReadOnly: c.ReadOnly, Missing: s.missing, Refused: s.refused}
	if s.t, err = cl.Attach(ctx, to); err != nil {
		return 0, err
	}
	err = s.run(ctx)
	s.t.Close() //nolint:errcheck // the program continues, or has ended
	return c.over(a, s.t, err)
}

// over prints how it ended and returns the exit code.
func (c *attachCmd) over(a *app, t *client.Terminal, err error) (int, error) {
	switch {
	case errors.Is(err, errDetached):
		fmt.Fprintf(a.Err, "detached; the program keeps running: belay attach %s --offset %d%s\n", c.ID, t.Offset(), a.StoreFlag)
		return belay.ExitOK, nil
	case err != nil:
		return 0, err
	}
	e := t.Exit()
	switch {
	case e.Limit != "":
		fmt.Fprintf(a.Err, "%s has ended: it met the limit %s of its boundary\n", c.ID, term.Line(e.Limit))
	case e.Reason == "exited":
		fmt.Fprintf(a.Err, "%s has ended: exit %d\n", c.ID, e.Code)
	default:
		fmt.Fprintf(a.Err, "%s has ended: %s\n", c.ID, term.Line(e.Reason))
	}
	return belay.ExitOK, nil
}

// server is the server to go through: one that was named, or that of the store.
// For the latter a token is made that done takes back.
func (c *attachCmd) server(ctx context.Context, a *app) (cl *client.Client, session belay.SessionID, done func(), err error) {
	done = func() {}
	token := a.Getenv("BELAY_TOKEN")
	if c.Server != "" {
		if c.Session == "" || token == "" {
			return nil, "", nil, belay.Errorf(belay.CodeUsage, "a server elsewhere needs the session, and a token").At("--server").
				WithHint("BELAY_TOKEN=… belay attach %s --server %s --session ID", c.ID, c.Server)
		}
		cl, err = client.New(c.Server, client.Options{Token: token})
		return cl, belay.SessionID(c.Session), done, err
	}
	st, err := a.open(ctx, false)
	if err != nil {
		return nil, "", nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	facts, err := processFacts(ctx, st, c.ID)
	if err != nil {
		return nil, "", nil, err
	}
	session = facts[0].IDs.Session
	dir, err := a.storeDir()
	if err != nil {
		return nil, "", nil, err
	}
	r := serverOf(dir)
	if r == nil {
		return nil, "", nil, c.without(ctx, a, st, session)
	}
	if token == "" {
		if token, done, err = c.token(a); err != nil {
			return nil, "", nil, err
		}
	}
	if cl, err = client.New(r.URL, client.Options{Token: token}); err != nil {
		done()
	}
	return cl, session, done, err
}

// token makes a token that is valid while the client is attached: access to the
// store is enough to make one. The file holds only its hash.
func (c *attachCmd) token(a *app) (text string, done func(), err error) {
	tokens, err := a.serverTokens(false)
	if err != nil {
		return "", nil, err
	}
	role := auth.Operator
	if c.ReadOnly {
		role = auth.Viewer
	}
	text, made, err := tokens.Create("belay attach by "+term.Line(term.Short(a.Getenv("USER"), 60)), role, auth.DefaultTenant, a.Now().Add(24*time.Hour))
	if err != nil {
		return "", nil, err
	}
	return text, func() {
		if err := tokens.Drop(made.ID); err != nil {
			fmt.Fprintf(a.Err, "the token %s isn't taken back, and counts for a day: %v\n", made.ID, err)
		}
	}, nil
}

// without is the error for a store without a server.
func (c *attachCmd) without(ctx context.Context, a *app, st store.Store, id belay.SessionID) error {
	owner, err := st.OwnerOf(ctx, id)
	if err != nil {
		return err
	}
	if owner != nil {
		return belay.Errorf(belay.CodeUnreachable, "process %d on %s runs it, and no server serves this store: one is attached through a server", owner.PID, owner.Host).At(c.ID).
			WithHint("belay process output %s%s shows what it printed, belay process write types; or run belay serve beside it", c.ID, a.StoreFlag)
	}
	return belay.Errorf(belay.CodeUnreachable, "no server serves this store: one is attached through a server").At(c.ID).
		WithHint("belay process output %s%s shows what it printed", c.ID, a.StoreFlag)
}

// attachSession is a person, or a pipe, in front of a program.
type attachSession struct {
	a   *app
	t   *client.Terminal
	eof bool // the end of the own input is the end of the program's
	raw bool // the keys are the program's

	saying sync.Mutex
}

// run shows what the program prints and gives it what is typed, until the
// program ends or the user detaches.
func (s *attachSession) run(ctx context.Context) error {
	at := s.t.Attached()
	in, _ := s.a.In.(*os.File)
	both := s.a.IsTerminal(s.a.In) && s.a.IsTerminal(s.a.Out)
	s.raw = both && at.Rows > 0 && at.Input == "open"
	if s.raw {
		was, err := xterm.MakeRaw(int(in.Fd()))
		if err != nil {
			return belay.Errorf(belay.CodeUsage, "the terminal can't be set: %s", err).WithHint("pipe what is typed: echo TEXT | belay attach ID")
		}
		defer func() {
			fmt.Fprint(s.a.Out, leftover)
			xterm.Restore(int(in.Fd()), was) //nolint:errcheck // there is nobody to tell
		}()
	}
	ctx, end := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end(nil)
	wg.Go(func() { s.signals(ctx, end) })
	if at.Input == "open" && s.a.In != nil {
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
	out := s.a.Out
	if s.a.IsTerminal(out) && !whole {
		plain := &process.TerminalText{Dst: s.a.Out}
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
	case <-s.a.Signals:
		end(errDetached)
	case <-ctx.Done():
	}
}

// sizes gives the program's terminal the size of this one, now and when it changes.
func (s *attachSession) sizes(ctx context.Context, in *os.File) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if cols, rows, err := xterm.GetSize(int(in.Fd())); err == nil && cols > 0 && rows > 0 {
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

func (s *attachSession) refused(err error) { s.say(term.Line(err.Error())) }

// say tells the person something that isn't output.
func (s *attachSession) say(what string) {
	s.saying.Lock()
	defer s.saying.Unlock()
	if s.raw {
		what = "\r\n" + what + "\r"
	}
	fmt.Fprintf(s.a.Err, "%s\n", what)
}

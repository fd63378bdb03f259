package sessions

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/app/processes"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

// AttachCmd is the command "belay attach".
type AttachCmd struct {
	ID       string `arg:"" help:"The process."`
	ReadOnly bool   `name:"read-only" help:"Only watch."`
	Offset   int64  `default:"-65536" placeholder:"BYTE" help:"Begin here; a negative number counts from the end. The last 64 KiB."`
	EOF      bool   `name:"eof" help:"When standard input ends, end the program's input too."`
	Server   string `placeholder:"URL" help:"A server elsewhere, with --session, and its token in $$BELAY_TOKEN; the store's own."`
	Session  string `placeholder:"ID" help:"The program's session, for --server."`
}

// Run implements command.Command.
func (c *AttachCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	cl, session, done, err := c.server(ctx, a)
	if err != nil {
		return 0, err
	}
	defer done()
	to := client.AttachTo{Session: session, Process: belay.ProcessID(c.ID), Offset: c.Offset, ReadOnly: c.ReadOnly}
	t, err := term.Attach(ctx, &a.Env, cl, to, c.EOF)
	return c.over(a, t, err)
}

// over prints how it ended and returns the exit code.
func (c *AttachCmd) over(a *command.Program, t *client.Terminal, err error) (int, error) {
	switch {
	case errors.Is(err, term.ErrDetached):
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
func (c *AttachCmd) server(ctx context.Context, a *command.Program) (cl *client.Client, session belay.SessionID, done func(), err error) {
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
	st, err := a.Open(ctx, false)
	if err != nil {
		return nil, "", nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	o, err := processes.OpenOutput(ctx, a.Reader(st).Call("read_process_output"), "", belay.ProcessID(c.ID))
	if err != nil {
		return nil, "", nil, err
	}
	session = o.IDs.Session
	dir, err := a.StoreDir()
	if err != nil {
		return nil, "", nil, err
	}
	r := command.ServerOf(dir)
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

// token makes a token that is valid while the client is attached.
func (c *AttachCmd) token(a *command.Program) (text string, done func(), err error) {
	role := auth.Operator
	if c.ReadOnly {
		role = auth.Viewer
	}
	text, drop, err := a.PassingToken("belay attach", role)
	if err != nil {
		return "", nil, err
	}
	return text, func() {
		if err := drop(); err != nil {
			fmt.Fprintln(a.Err, err)
		}
	}, nil
}

// without is the error for a store without a server.
func (c *AttachCmd) without(ctx context.Context, a *command.Program, st store.Store, id belay.SessionID) error {
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

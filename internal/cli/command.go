package cli

import (
	"context"
	"fmt"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/store"
)

// What a node of the grammar needs to be run is said by its method.
type (
	// command opens what it needs itself, or needs no store.
	command interface {
		run(ctx context.Context, a *program) (exit int, err error)
	}
	// reader looks into the store that is there.
	reader interface {
		read(ctx context.Context, a *program, st store.Store) (exit int, err error)
	}
	// orderer brings commands to sessions of the store that is there.
	orderer interface {
		order(ctx context.Context, a *program, r *runtime) (exit int, err error)
	}
)

// do runs a node of the grammar; one that only holds others is refused under the
// path that was typed.
func do(ctx context.Context, a *program, node any, path string) (int, error) {
	switch c := node.(type) {
	case command:
		return c.run(ctx, a)
	case reader:
		return a.reading(ctx, func(st store.Store) (int, error) { return c.read(ctx, a, st) })
	case orderer:
		return a.ordering(ctx, func(r *runtime) (int, error) { return c.order(ctx, a, r) })
	}
	return 0, belay.Errorf(belay.CodeUsage, "%s needs a command", path).WithHint("%s --help", path)
}

// tidy removes what processes left that were killed: folders that stood in for
// protected names at once, and programs while the command runs, because looking at
// all processes takes a few milliseconds. The function that it returns waits.
func tidy() (wait func()) {
	sandbox.Clear()
	var strays sync.WaitGroup
	strays.Go(func() { process.EndStrays() })
	return strays.Wait
}

// reading opens the store that is there for as long as f looks into it.
func (a *program) reading(ctx context.Context, f func(store.Store) (int, error)) (int, error) {
	st, err := a.Open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close() //nolint:errcheck // what was written is durable
	return f(st)
}

// ordering makes the runtime of the store that is there for as long as f brings
// commands to sessions.
func (a *program) ordering(ctx context.Context, f func(*runtime) (int, error)) (int, error) {
	st, err := a.Open(ctx, false)
	if err != nil {
		return 0, err
	}
	r, err := a.Runtime(st, nil, nil)
	if err != nil {
		return 0, err
	}
	defer r.Close() //nolint:errcheck // what was accepted is durable
	return f(r)
}

// tell prints the result of a command for a thread. what is said of a success.
func (a *program) tell(ctx context.Context, r *runtime, res *app.Result, what string) (int, error) {
	t := told{Session: res.Session, Result: what, Pending: res.Status == app.Accepted}
	if res.Writer != nil {
		t.Writer = res.Writer.Session
	}
	if err := a.accepted(ctx, r, res.Thread.Stream(), t); err != nil || a.JSON || res.Writer == nil {
		return belay.ExitOK, err
	}
	owner, err := r.Store.OwnerOf(ctx, t.Writer)
	if owner == nil || err != nil {
		return belay.ExitOK, err
	}
	_, err = fmt.Fprintf(a.Out, "session %s (process %d on %s) writes in %s: the call is denied with OTHER_WRITER unless that session has ended when this one continues\n"+
		"belay sessions interrupt %s%s ends it\n", t.Writer, owner.PID, owner.Host, term.Line(res.Writer.Path), t.Writer, a.StoreFlag)
	return belay.ExitOK, err
}

// told is the result of a command, as JSON.
type told struct {
	Session belay.SessionID `json:"session"`
	Result  string          `json:"result"`
	Pending bool            `json:"pending,omitempty"` // accepted, and not handled yet
	Resume  string          `json:"resume,omitempty"`  // no process drives the session, and none will unless asked
	Server  string          `json:"server,omitempty"`  // no process drives the session, and this server will
	Writer  belay.SessionID `json:"writer,omitempty"`  // another session, which writes in the workspace, so what was allowed isn't done
}

// accepted says the outcome of a command for another process's session.
func (a *program) accepted(ctx context.Context, r *runtime, to belay.StreamID, t told) error {
	owner, err := r.Store.OwnerOf(ctx, t.Session)
	if err != nil {
		return err
	}
	if owner == nil && unfinished(ctx, r.Store, to) {
		if t.Server = a.serverURL(); t.Server == "" {
			t.Resume = "belay sessions resume " + string(t.Session) + a.StoreFlag
		}
	}
	switch {
	case a.JSON:
		a.PrintJSON(t)
	case t.Pending:
		fmt.Fprintln(a.Out, "accepted, not yet handled")
	default:
		fmt.Fprintln(a.Out, t.Result)
	}
	switch {
	case a.JSON:
	case t.Resume != "":
		fmt.Fprintf(a.Out, "the session isn't running; continue with: %s\n", t.Resume)
	case t.Server != "":
		fmt.Fprintf(a.Out, "the server at %s continues it\n", t.Server)
	}
	return nil
}

// unfinished reports whether a thread has a turn that hasn't ended.
func unfinished(ctx context.Context, st store.Store, s belay.StreamID) bool {
	d, _, _, err := engine.Load(ctx, st, s)
	if err != nil {
		return false
	}
	t, ok := d.(*thread.Decider)
	return ok && (t.State().Turn != nil || len(t.State().Queue) > 0)
}

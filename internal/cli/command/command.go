// Package command has what every command of the program is made of: one run of the
// program with its environment and its places, the stores and runtimes that it opens,
// and the printing of results.
package command

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

// What a node of the grammar needs to be run is said by its method.
type (
	// Command opens what it needs itself, or needs no store.
	Command interface {
		Run(ctx context.Context, a *Program) (exit int, err error)
	}
	// Reader looks into the store that is there.
	Reader interface {
		Read(ctx context.Context, a *Program, st store.Store) (exit int, err error)
	}
	// Keeper looks after the store that is there.
	Keeper interface {
		Keep(ctx context.Context, a *Program, db store.Admin) (exit int, err error)
	}
	// Orderer brings commands to sessions of the store that is there.
	Orderer interface {
		Order(ctx context.Context, a *Program, r *app.Runtime) (exit int, err error)
	}
)

// Reading opens the store that is there for as long as f looks into it.
func (a *Program) Reading(ctx context.Context, f func(store.Store) (int, error)) (int, error) {
	st, err := a.Open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close() //nolint:errcheck // what was written is durable
	return f(st)
}

// Ordering makes the runtime of the store that is there for as long as f brings
// commands to sessions.
func (a *Program) Ordering(ctx context.Context, f func(*app.Runtime) (int, error)) (int, error) {
	st, err := a.Open(ctx, false)
	if err != nil {
		return 0, err
	}
	r, err := a.Runtime(st, nil)
	if err != nil {
		return 0, err
	}
	defer r.Close() //nolint:errcheck // what was accepted is durable
	return f(r)
}

// Tell prints the result of a command for a thread. what is said of a success.
func (a *Program) Tell(ctx context.Context, r *app.Runtime, res *app.Result, what string) (int, error) {
	t := Outcome{Session: res.Session, Result: what, Pending: res.Status == app.Accepted}
	if res.Programs != "" {
		t.Result += "; in the background go on: " + term.Line(res.Programs)
	}
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

// Outcome is the result of a command, as JSON.
type Outcome struct {
	Session belay.SessionID `json:"session"`
	Result  string          `json:"result"`
	Pending bool            `json:"pending,omitempty"` // accepted, and not handled yet
	Resume  string          `json:"resume,omitempty"`  // no process drives the session, and none will unless asked
	Server  string          `json:"server,omitempty"`  // no process drives the session, and this server will
	Writer  belay.SessionID `json:"writer,omitempty"`  // another session, which writes in the workspace, so what was allowed isn't done
}

// accepted says the outcome of a command for another process's session.
func (a *Program) accepted(ctx context.Context, r *app.Runtime, to belay.StreamID, t Outcome) error {
	owner, err := r.Store.OwnerOf(ctx, t.Session)
	if err != nil {
		return err
	}
	if th, err := app.LoadThread(ctx, r.Store, to); err == nil && owner == nil && app.Unfinished(th) {
		if t.Server = a.ServerURL(); t.Server == "" {
			t.Resume = "belay sessions resume " + string(t.Session) + a.StoreFlag
		}
	}
	_, err = a.Show(t, func() {
		if t.Pending {
			t.Result = "accepted, not yet handled"
		}
		fmt.Fprintln(a.Out, t.Result)
		switch {
		case t.Resume != "":
			fmt.Fprintf(a.Out, "the session isn't running; continue with: %s\n", t.Resume)
		case t.Server != "":
			fmt.Fprintf(a.Out, "the server at %s continues it\n", t.Server)
		}
	})
	return err
}

package sessions

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

// ForkCmd is the command "belay fork".
type ForkCmd struct {
	ID    string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Turn  string `placeholder:"N|TURN" help:"The last turn to take along: its number or its id; 0 takes none. The one that ended last."`
	Title string `placeholder:"TEXT" help:"The title of the new session."`
}

// forked is what a fork made, as JSON.
type forked struct {
	Session belay.SessionID `json:"session"`
	Thread  belay.ThreadID  `json:"thread"`
	From    belay.Fork      `json:"forkedFrom"`
	Turns   int             `json:"turns"` // taken along
	Title   string          `json:"title"`
}

// Order implements command.Orderer.
func (c *ForkCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, err := a.SessionID(ctx, r.Store, c.ID)
	if err != nil {
		return 0, err
	}
	f, err := sessions.Fork(ctx, r.Call("fork_session"), &sessions.ForkSession{Session: id, Turn: c.Turn, Title: term.Short(c.Title, 80)})
	if err != nil {
		return 0, err
	}
	return tellFork(a, f)
}

func tellFork(a *command.Program, f *sessions.SessionForked) (int, error) {
	return a.Show(forked{f.Session, f.Thread, f.From, f.Turns, f.Title}, func() {
		from := "before its first turn"
		if f.Turns > 0 {
			from = fmt.Sprintf("after turn %d of %d", f.Turns, f.Of)
		}
		fmt.Fprintf(a.Out, "%s continues from %s, %s\n", f.Session, f.From.Session, from)
		fmt.Fprintf(a.Out, "give it something to do: belay run --session %s%s TEXT\n", f.Session, a.StoreFlag)
	})
}

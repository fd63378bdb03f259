package cli

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	usecase "github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/store"
)

type forkCmd struct {
	ID    string `arg:"" optional:"" help:"The session, or the beginning of its id; the last one of this workspace."`
	Turn  string `placeholder:"N|TURN" help:"The last turn to take along: its number or its id; 0 takes none. The one that ended last."`
	Title string `placeholder:"TEXT" help:"What lists call the new session."`
}

// forked is what a fork made, as JSON.
type forked struct {
	Session belay.SessionID `json:"session"`
	Thread  belay.ThreadID  `json:"thread"`
	From    belay.Fork      `json:"forkedFrom"`
	Turns   int             `json:"turns"` // taken along
	Title   string          `json:"title"`
}

func (c *forkCmd) order(ctx context.Context, a *app, r *runtime) (int, error) {
	id, err := a.sessionID(ctx, r.Store, c.ID, c.ID == "")
	if err != nil {
		return 0, err
	}
	s, err := usecase.StateOf(ctx, r.Store, id)
	if err != nil {
		return 0, err
	}
	past, err := pastOf(ctx, r.Store, id, s.Threads)
	if err != nil {
		return 0, err
	}
	turn, err := c.turn(past)
	if err != nil {
		return 0, err
	}
	begin, err := past.Fork(ctx, turn)
	if err != nil {
		return 0, err
	}
	f := forked{Session: belay.SessionID(belay.NewID(belay.PrefixSession)), Thread: belay.ThreadID(belay.NewID(belay.PrefixThread)),
		From: *begin.ForkedFrom, Turns: turn.Number, Title: term.Short(c.Title, 80)}
	if c.Title == "" {
		f.Title = term.Short(s.Title, 73) + " (fork)"
	}
	create := belay.CreateSession{Workspace: s.Workspace, Title: string(r.scrub([]byte(f.Title))), Settings: s.Settings, Thread: f.Thread, Begin: &begin}
	if _, err := r.Engine.Submit(ctx, a.order(f.Session, f.Session.Stream(), create)); err != nil {
		return 0, err
	}
	a.tellFork(f, past)
	return belay.ExitOK, nil
}

// turn is the turn to fork at.
func (c *forkCmd) turn(past *history.Past) (history.PastTurn, error) {
	if c.Turn != "" {
		return past.Find(c.Turn)
	}
	last := past.Last()
	if last.ID == "" {
		return last, belay.Errorf(belay.CodeBadState, "none of its turns has ended").At(string(past.Session)).
			WithHint("belay fork %s --turn 1 takes the steps of the running turn that have ended", past.Session)
	}
	return last, nil
}

// pastOf is the history of a session's newest thread.
func pastOf(ctx context.Context, st store.Store, id belay.SessionID, threads []belay.ThreadID) (*history.Past, error) {
	none := belay.Errorf(belay.CodeBadState, "it has no turn yet").At(string(id)).WithHint("belay sessions resume %s", id)
	if len(threads) == 0 {
		return nil, none
	}
	p, err := history.ReadPast(ctx, st, threads[len(threads)-1])
	if err == nil && p.Seq == 0 {
		return nil, none
	}
	return p, err
}

func (a *app) tellFork(f forked, past *history.Past) {
	if a.JSON {
		a.PrintJSON(f)
		return
	}
	from := "before its first turn"
	if f.Turns > 0 {
		from = fmt.Sprintf("after turn %d of %d", f.Turns, len(past.Turns))
	}
	fmt.Fprintf(a.Out, "%s continues from %s, %s\n", f.Session, past.Session, from)
	fmt.Fprintf(a.Out, "give it something to do: belay run --session %s%s TEXT\n", f.Session, a.StoreFlag)
}

package sessions

import (
	"cmp"
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/effect/history"
)

// ForkSession is what fork_session takes.
type ForkSession struct {
	Session belay.SessionID `json:"sessionId"`
	Turn    string          `json:"turn,omitempty" jsonschema:"the last turn to take along: its number or its id, 0 takes none; the one that ended last when it is left out"`
	Title   string          `json:"title,omitempty" jsonschema:"what lists call the new session"`
}

// SessionForked is a session that begins with the history of another one.
type SessionForked struct {
	app.Result
	From  belay.Fork `json:"forkedFrom"`
	Turns int        `json:"turns"`   // that were taken along
	Of    int        `json:"ofTurns"` // that the other one has
	Title string     `json:"title"`
}

// Fork begins a new session with the history of another one, up to a turn.
func Fork(ctx context.Context, r *app.Call, in *ForkSession) (*SessionForked, error) {
	if err := input.Text("title", in.Title, app.MaxTitle); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	past, err := app.PastOf(ctx, r.Store, in.Session, s.Threads)
	if err != nil {
		return nil, r.Hinted(err, "submit_turn gives it a turn")
	}
	f := &SessionForked{Of: len(past.Turns), Title: r.Clean(cmp.Or(app.Cut(in.Title, 80), app.Cut(s.Title, 73)+" (fork)"))}
	f.Session, f.Thread = belay.SessionID(belay.NewID(belay.PrefixSession)), belay.ThreadID(belay.NewID(belay.PrefixThread))
	if r.Key != "" {
		f.Session, f.Thread = belay.SessionID(r.Keyed(belay.PrefixSession)), belay.ThreadID(r.Keyed(belay.PrefixThread))
		if made, err := app.FindSession(ctx, r.Store, string(f.Session)); err == nil && made.Forked != nil && in.Turn == "" {
			in.Turn = cmp.Or(string(made.Forked.Turn), "0") // another turn may have ended meanwhile
		}
	}
	turn, err := forkTurn(r, past, in.Turn)
	if err != nil {
		return nil, input.At("turn", err)
	}
	begin, err := past.Fork(ctx, turn, r.Workspaces.Counts(ctx, s.Workspace, s.Settings))
	if err != nil {
		return nil, input.At("turn", r.Hinted(err, "name a turn before it, or wait until it has ended"))
	}
	f.From, f.Turns = *begin.ForkedFrom, turn.Number
	create := belay.CreateSession{Workspace: s.Workspace, Title: f.Title, Settings: s.Settings, Thread: f.Thread, Begin: &begin}
	th, err := r.Thread(ctx, past.Thread)
	if err != nil {
		return nil, err
	}
	for _, p := range th.Pins {
		create.Pins = append(create.Pins, belay.PinContext{Pin: p.ID, Text: p.Text})
	}
	res, err := r.Send(ctx, f.Session, f.Session.Stream(), create)
	if res, err = app.With(res, err, f.Thread, ""); err != nil {
		return nil, err
	}
	f.Result = *res
	return f, nil
}

// forkTurn is the turn to fork at.
func forkTurn(r *app.Call, past *history.Past, name string) (history.PastTurn, error) {
	if name != "" {
		return findTurn(r, past, name)
	}
	last := past.Last()
	if last.ID != "" {
		return last, nil
	}
	err := belay.Errorf(belay.CodeBadState, "none of its turns has ended").At(string(past.Session)).
		WithHint("belay fork %s --turn 1 takes the steps of the running turn that have ended", past.Session)
	return last, r.Hinted(err, "turn 1 takes the steps of the running turn that have ended")
}

// findTurn is a turn of the history by its number, its id or the beginning of it.
func findTurn(r *app.Call, past *history.Past, name string) (history.PastTurn, error) {
	t, err := past.Find(name)
	return t, r.Hinted(err, "GET /v1/sessions/{id} lists the turns")
}

package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// QueueCmd is the command "belay queue".
type QueueCmd struct {
	List    queueListCmd    `cmd:"" use:"queue_snapshot" default:"withargs" help:"List the turns of a session that wait."`
	Promote queuePromoteCmd `cmd:"" use:"promote_queued_turn" help:"Move a waiting turn to the front, or to another place."`
	Remove  queueRemoveCmd  `cmd:"" use:"remove_queued_turn" help:"Remove a waiting turn: it ends as cancelled and never begins."`
	Reorder queueReorderCmd `cmd:"" use:"reorder_queued_turns" help:"Put the turns that wait into another order."`
	Set     queueSetCmd     `cmd:"" use:"configure_queue" help:"Say how a session takes turns while one runs; without flags, show it."`
}

// queuedRow is a turn that waits, as JSON.
type queuedRow struct {
	Session   belay.SessionID `json:"session"`
	Thread    belay.ThreadID  `json:"thread"`
	Position  int             `json:"position"` // in its thread's row, from 1
	Turn      belay.TurnID    `json:"turn"`
	Task      belay.TaskID    `json:"task,omitempty"`
	Run       belay.RunID     `json:"run,omitempty"`
	Mode      belay.QueueMode `json:"mode"`
	Into      belay.TurnID    `json:"into,omitempty"` // steer: the turn to steer
	Submitted time.Time       `json:"submitted,omitzero"`
	Text      string          `json:"text,omitempty"` // its beginning, in one line
}

// queueView is what waits in a session.
type queueView struct {
	session belay.SessionID
	threads []*app.ThreadState // in the order in which they were opened
	turns   []queuedRow
}

// loadQueue reads what waits in a session.
func loadQueue(ctx context.Context, a *command.Program, st store.Store, id string) (*queueView, error) {
	sid, err := a.SessionID(ctx, st, id)
	if err != nil {
		return nil, err
	}
	s, err := app.FindSession(ctx, st, string(sid))
	if err != nil {
		return nil, err
	}
	r := &queueView{session: s.ID}
	for _, th := range s.Threads {
		t, err := app.LoadThread(ctx, st, th.ID.Stream())
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		r.threads = append(r.threads, t)
		for i, q := range t.Queue {
			given := queuedRow{Session: s.ID, Thread: th.ID, Position: i + 1, Turn: q.Turn, Task: q.Task, Run: q.Run,
				Mode: cmp.Or(q.Mode, belay.QueueEnqueue), Into: q.Into, Text: q.Line}
			if i := slices.IndexFunc(th.Queue, func(t view.Turn) bool { return t.ID == q.Turn }); i >= 0 {
				given.Submitted = th.Queue[i].Submitted
			}
			r.turns = append(r.turns, given)
		}
	}
	return r, nil
}

// turn is a turn that waits, by its id or the beginning of it.
func (r *queueView) turn(id string) (queuedRow, error) {
	if i := slices.IndexFunc(r.turns, func(q queuedRow) bool { return string(q.Turn) == id }); i >= 0 {
		return r.turns[i], nil
	}
	found := slices.DeleteFunc(slices.Clone(r.turns), func(q queuedRow) bool { return id == "" || !strings.HasPrefix(string(q.Turn), id) })
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return queuedRow{}, belay.Errorf(belay.CodeNotFound, "no turn that waits in %s has this id", r.session).At(term.Line(id)).WithHint("%s", r.howToList())
	}
	return queuedRow{}, belay.Errorf(belay.CodeUsage, "%d turns that wait begin with this", len(found)).At(term.Line(id)).WithHint("give more of the id; %s", r.howToList())
}

func (r *queueView) howToList() string { return "belay queue list " + string(r.session) }

// refusal names the command that shows what waits now.
func (r *queueView) refusal(err error) error {
	return app.WithHint(err, r.howToList(), belay.CodeBadState, belay.CodeConflict, belay.CodeBadCommand)
}

type queueListCmd struct {
	ID string `arg:"" optional:"" help:"The session; the last one of this workspace."`
}

func (c *queueListCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	r, err := loadQueue(ctx, a, st, c.ID)
	if err != nil {
		return 0, err
	}
	return term.PrintRows(&a.Env, r.turns, "no turns wait", "PLACE\tTURN\tMODE\tWAITS\tTEXT\tTHREAD", func(q queuedRow) []any {
		waits := "-"
		if !q.Submitted.IsZero() {
			waits = term.Ago(a.Now().Sub(q.Submitted))
		}
		return []any{q.Position, term.Line(string(q.Turn)), q.Mode, waits, term.Short(q.Text, 60), term.Line(string(q.Thread))}
	})
}

type queuePromoteCmd struct {
	ID       string `arg:"" help:"The session, or the beginning of its id."`
	Turn     string `arg:"" help:"The turn, or the beginning of its id."`
	Position int    `placeholder:"N" default:"1" help:"Its place among those that wait, from 1; the front."`
}

func (c *queuePromoteCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.Position < 1 {
		return 0, belay.Errorf(belay.CodeUsage, "places count from 1").At("--position").WithHint("--position 1")
	}
	return updateQueue(ctx, a, c.ID, "promote_queued_turn", fmt.Sprintf("moved to place %d", c.Position), func(call *app.Call, v *queueView) (*app.Result, error) {
		q, err := v.turn(c.Turn)
		if err != nil {
			return nil, err
		}
		return turns.Promote(ctx, call, &turns.PromoteQueuedTurn{Session: v.session, Thread: q.Thread, Turn: q.Turn, Position: c.Position})
	})
}

type queueRemoveCmd struct {
	ID     string `arg:"" help:"The session, or the beginning of its id."`
	Turn   string `arg:"" help:"The turn, or the beginning of its id."`
	Reason string `short:"m" placeholder:"TEXT" help:"Why."`
}

func (c *queueRemoveCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return updateQueue(ctx, a, c.ID, "remove_queued_turn", "removed", func(call *app.Call, v *queueView) (*app.Result, error) {
		q, err := v.turn(c.Turn)
		if err != nil {
			return nil, err
		}
		return turns.Remove(ctx, call, &turns.RemoveQueuedTurn{Session: v.session, Thread: q.Thread, Turn: q.Turn, Reason: c.Reason})
	})
}

type queueReorderCmd struct {
	ID    string   `arg:"" help:"The session, or the beginning of its id."`
	Turns []string `arg:"" help:"All turns that wait, or the beginnings of their ids, in the order they are to run."`
}

func (c *queueReorderCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return updateQueue(ctx, a, c.ID, "reorder_queued_turns", "reordered", func(call *app.Call, v *queueView) (*app.Result, error) {
		in := &turns.ReorderQueuedTurns{Session: v.session}
		for _, id := range c.Turns {
			q, err := v.turn(id)
			if err != nil {
				return nil, err
			}
			if in.Thread = cmp.Or(in.Thread, q.Thread); in.Thread != q.Thread {
				return nil, belay.Errorf(belay.CodeUsage, "turns of two threads have no common order").At(term.Line(id)).WithHint("%s", v.howToList())
			}
			in.Turns = append(in.Turns, q.Turn)
		}
		return turns.Reorder(ctx, call, in)
	})
}

// updateQueue does a use case about the waiting turns of a session. what is said of a
// success.
func updateQueue(ctx context.Context, a *command.Program, session, name, what string, do func(*app.Call, *queueView) (*app.Result, error)) (int, error) {
	return a.Ordering(ctx, func(r *app.Runtime) (int, error) {
		have, err := loadQueue(ctx, a, r.Store, session)
		if err != nil {
			return 0, err
		}
		res, err := do(r.Call(name), have)
		if err != nil {
			return 0, have.refusal(err)
		}
		return a.Tell(ctx, r, res, what)
	})
}

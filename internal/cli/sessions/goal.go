package sessions

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/tasks"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/store"
)

// GoalCmd is the command "belay goal".
type GoalCmd struct {
	Show  goalShowCmd  `cmd:"" use:"get_task" default:"withargs" help:"Show the goal of a session, and how its turns ended."`
	Set   goalSetCmd   `cmd:"" use:"set_goal" help:"Set a goal: turns follow one another until one meets it, at most 10."`
	Clear goalClearCmd `cmd:"" use:"clear_goal" help:"Cancel the goal."`
}

type goalSetCmd struct {
	command.CheckFlags
	Session string   `placeholder:"ID" help:"The session, or the beginning of its id (default the last one of this workspace, or a new one)."`
	New     bool     `help:"In a new session."`
	Text    []string `arg:"" help:"What is to be reached."`
}

// Run implements command.Command.
func (c *goalSetCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return a.OrderingHere(ctx, func(r *app.Runtime, ws string) (int, error) {
		in := tasks.SetGoal{Text: strings.Join(c.Text, " "), Workspace: ws}
		var err error
		if in.Acceptance, err = c.Input(a); err != nil {
			return 0, err
		}
		id, err := a.SessionID(ctx, r.Store, c.Session)
		switch {
		case c.New || c.Session == "" && belay.CodeOf(err) == belay.CodeNotFound:
		case err != nil:
			return 0, err
		default:
			in.Session, in.Workspace = id, ""
		}
		res, err := tasks.Goal(ctx, r.Call("set_goal"), &in)
		if err != nil {
			return 0, err
		}
		return a.Tell(ctx, r, res, fmt.Sprintf("the goal is %s in session %s", res.Task, res.Session))
	})
}

type goalShowCmd struct {
	ID string `arg:"" optional:"" help:"The session, or the beginning of its id (default the last one of this workspace)."`
}

// Read implements command.Reader.
func (c *goalShowCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	id, err := a.SessionID(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	s, err := app.StateOf(ctx, st, id)
	if err != nil {
		return 0, err
	}
	g := s.Plan.LastGoal()
	if g == nil {
		return 0, belay.Errorf(belay.CodeNotFound, "the session has no goal").At(string(id)).WithHint("belay goal set TEXT sets one")
	}
	return (&tasksShowCmd{inSession{string(id)}, string(g.Task)}).Read(ctx, a, st)
}

type goalClearCmd struct {
	ID      string `arg:"" optional:"" help:"The session, or the beginning of its id (default the last one of this workspace)."`
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

// Order implements command.Orderer.
func (c *goalClearCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, err := a.SessionID(ctx, r.Store, c.ID)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Clear(ctx, r.Call("clear_goal"), &tasks.ClearGoal{Session: id, Reason: c.Message})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "cleared")
}

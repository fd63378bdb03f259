package sessions

import (
	"context"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/tasks"
	"github.com/belay-run/belay/internal/cli/command"
)

type tasksPauseCmd struct {
	inSession
	Now     bool   `help:"Cancel running requests and calls, rather than let them finish."`
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
	Task    string `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Order implements command.Orderer.
func (c *tasksPauseCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Pause(ctx, r.Call("pause_task"), &tasks.PauseTask{Session: id, Task: found[0], Now: c.Now, Reason: c.Message})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "paused")
}

type tasksResumeCmd struct {
	inSession
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
	Task    string `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Order implements command.Orderer.
func (c *tasksResumeCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Resume(ctx, r.Call("resume_task"), &tasks.ResumeTask{Session: id, Task: found[0], Reason: c.Message})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "resumed")
}

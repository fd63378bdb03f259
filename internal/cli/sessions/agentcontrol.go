package sessions

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

// agentOrKept names an agent that a session's agents started, or one that is kept as a file.
type agentOrKept struct {
	Agent   string `arg:"" help:"The name of one that is kept as a file; or the id or name of one that an agent started."`
	Session string `placeholder:"ID" help:"Of one that an agent started: its session, or the beginning of the id (default the last one of this workspace)."`
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

// control brings a word about an agent to it: of a name that a file has, to all that the
// agent does, else to the one that an agent started.
func (c *agentOrKept) control(ctx context.Context, a *command.Program, done string, kept func(*app.Runtime) (*agents.AgentControlled, error), one func(*app.Runtime, belay.SessionID, belay.SubagentID) (*app.Result, error)) (int, error) {
	child := &agentFlags{Agent: c.Agent, Session: c.Session}
	if c.Session != "" || strings.HasPrefix(c.Agent, belay.PrefixSubagent+"_") {
		return child.order(ctx, a, done, one)
	}
	var told *agents.AgentControlled
	code, err := a.OrderingHere(ctx, func(r *app.Runtime, _ string) (_ int, err error) {
		told, err = kept(r)
		return belay.ExitOK, err
	})
	if belay.CodeOf(err) == belay.CodeNotFound {
		if code, cerr := child.order(ctx, a, done, one); belay.CodeOf(cerr) != belay.CodeNotFound {
			return code, cerr
		}
	}
	if err != nil {
		return code, err
	}
	return a.Show(told, func() {
		fmt.Fprintf(a.Out, "agent %s: %s\n", term.Line(told.Agent), told.Status)
		for _, t := range told.Turns {
			fmt.Fprintf(a.Out, "  turn %s of session %s\n", t.Turn, t.Session)
		}
	})
}

type agentsPauseCmd struct {
	agentOrKept
	Now bool `help:"Cancel running requests and calls, rather than let them finish."`
}

// Run implements command.Command.
func (c *agentsPauseCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.control(ctx, a, "paused", func(r *app.Runtime) (*agents.AgentControlled, error) {
		return agents.Pause(ctx, r.Call("pause_agent"), &agents.PauseAgent{Agent: c.Agent, Now: c.Now, Reason: c.Message})
	}, func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.PauseAgent(ctx, r.Call("pause_subagent"), &sessions.PauseSubagent{Session: id, Subagent: agent, Now: c.Now, Reason: c.Message})
	})
}

type agentsResumeCmd struct{ agentOrKept }

// Run implements command.Command.
func (c *agentsResumeCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.control(ctx, a, "resumed", func(r *app.Runtime) (*agents.AgentControlled, error) {
		return agents.Resume(ctx, r.Call("resume_agent"), &agents.ResumeAgent{Agent: c.Agent, Reason: c.Message})
	}, func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.ResumeAgent(ctx, r.Call("resume_subagent"), &sessions.ResumeSubagent{Session: id, Subagent: agent, Reason: c.Message})
	})
}

type agentsStopCmd struct {
	agentOrKept
	Now bool `help:"Cancel its running work, rather than let it finish."`
}

// Run implements command.Command.
func (c *agentsStopCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.control(ctx, a, "stopped", func(r *app.Runtime) (*agents.AgentControlled, error) {
		return agents.Stop(ctx, r.Call("stop_agent"), &agents.StopAgent{Agent: c.Agent, Now: c.Now, Reason: c.Message})
	}, func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.CloseAgent(ctx, r.Call("close_subagent"), &sessions.CloseSubagent{Session: id, Subagent: agent, Reason: c.Message, Grace: !c.Now})
	})
}

type agentsHealthCmd struct {
	Name string `arg:"" help:"NAME, NAME@RANGE or ORIGIN:NAME."`
}

// Run implements command.Command.
func (c *agentsHealthCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	var told *agents.AgentChecked
	_, err := a.OrderingHere(ctx, func(r *app.Runtime, _ string) (_ int, err error) {
		told, err = agents.Check(ctx, r.Call("check_agent"), &agents.CheckAgent{Agent: c.Name})
		return belay.ExitOK, err
	})
	if err != nil {
		return 0, err
	}
	code, err := a.Show(told, func() {
		if told.Well {
			fmt.Fprintf(a.Out, "agent %s is well\n", term.Line(told.Agent))
		} else {
			fmt.Fprintf(a.Out, "agent %s isn't well: %s\n", term.Line(told.Agent), term.Line(told.Said))
		}
	})
	if !told.Well && err == nil {
		code = belay.ExitFailed
	}
	return code, err
}

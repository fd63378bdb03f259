package sessions

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/store"
)

// AgentsCmd is the command "belay agents".
type AgentsCmd struct {
	Ps     agentsPsCmd     `cmd:"" use:"list_subagents" default:"withargs" help:"List the agents that a session's agents started."`
	Send   agentsSendCmd   `cmd:"" use:"send_subagent_input" help:"Tell an agent something more; one that has ended goes on with it."`
	Pause  agentsPauseCmd  `cmd:"" use:"pause_subagent" help:"Keep an agent, and those that it started, from beginning anything more."`
	Resume agentsResumeCmd `cmd:"" use:"resume_subagent" help:"Let an agent that was paused go on, with those that it started."`
	Close  agentsCloseCmd  `cmd:"" use:"close_subagent" help:"End an agent, with those that it started."`
	List   agentsListCmd   `cmd:"" use:"listAgents" help:"List the agents that are kept as files."`
	New    agentsNewCmd    `cmd:"" help:"Make a file for a new agent in this workspace."`
	Show   agentsShowCmd   `cmd:"" use:"listAgents" help:"Show an agent that is kept as a file: what it may do, what it needs, what is wrong with it."`
	Check  agentsCheckCmd  `cmd:"" use:"listAgents" help:"Check files of agents, and say where something is wrong."`
}

type agentsPsCmd struct {
	ID string `arg:"" optional:"" help:"The session, or the beginning of its id (default the last one of this workspace)."`
}

// Read implements command.Reader.
func (c *agentsPsCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	id, err := a.SessionID(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	all, err := subagents(ctx, a.Reader(st), id)
	if err != nil {
		return 0, err
	}
	return term.PrintRows(&a.Env, all, "it started no agents", "AGENT\tNAME\tKIND\tSTATUS\tSTEPS\tCALLS\tTOKENS\tACTIVE\tDOING", func(s sessions.SubagentShown) []any {
		return []any{s.Subagent, term.Line(strings.Repeat("  ", s.Depth-1) + cmp.Or(s.Name, "-")), s.Agent, s.Status, s.Steps, s.Calls, term.Count(s.Usage.Total()), time.Duration(s.Active).Round(time.Second), cmp.Or(s.Doing, "-")}
	})
}

func subagents(ctx context.Context, r *app.Runtime, id belay.SessionID) ([]sessions.SubagentShown, error) {
	c := r.Call("list_subagents")
	fresh, err := c.Fresh(ctx, 0)
	if err != nil {
		return nil, err
	}
	shown, err := sessions.Subagents(ctx, c, fresh, &sessions.ListSubagents{Session: id})
	if err != nil {
		return nil, err
	}
	return shown.Agents, nil
}

type agentFlags struct {
	Agent   string `arg:"" help:"Its id or name, or the beginning of its id."`
	Session string `placeholder:"ID" help:"Its session, or the beginning of the id (default the last one of this workspace)."`
}

// order finds the agent and sends it a command. done is what is said of a success.
func (c *agentFlags) order(ctx context.Context, a *command.Program, done string, send func(*app.Runtime, belay.SessionID, belay.SubagentID) (*app.Result, error)) (int, error) {
	return a.Ordering(ctx, func(r *app.Runtime) (int, error) {
		id, err := a.SessionID(ctx, r.Store, c.Session)
		if err != nil {
			return 0, err
		}
		all, err := subagents(ctx, r, id)
		if err != nil {
			return 0, err
		}
		agent, err := findAgent(all, c.Agent)
		if err != nil {
			return 0, err
		}
		res, err := send(r, id, agent)
		if err != nil {
			return 0, err
		}
		return a.Tell(ctx, r, res, done)
	})
}

type agentsSendCmd struct {
	agentFlags
	Text      string `arg:"" help:"What to tell it."`
	Interrupt bool   `help:"It ends what it does now."`
}

// Run implements command.Command.
func (c *agentsSendCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.order(ctx, a, "sent", func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.SendInput(ctx, r.Call("send_subagent_input"), &sessions.SendSubagentInput{Session: id, Subagent: agent, Text: c.Text, Interrupt: c.Interrupt})
	})
}

type agentsPauseCmd struct {
	agentFlags
	Now     bool   `help:"Cancel what is in flight, rather than let it finish."`
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

// Run implements command.Command.
func (c *agentsPauseCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.order(ctx, a, "paused", func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.PauseAgent(ctx, r.Call("pause_subagent"), &sessions.PauseSubagent{Session: id, Subagent: agent, Now: c.Now, Reason: c.Message})
	})
}

type agentsResumeCmd struct {
	agentFlags
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

// Run implements command.Command.
func (c *agentsResumeCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.order(ctx, a, "resumed", func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.ResumeAgent(ctx, r.Call("resume_subagent"), &sessions.ResumeSubagent{Session: id, Subagent: agent, Reason: c.Message})
	})
}

type agentsCloseCmd struct {
	agentFlags
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

// Run implements command.Command.
func (c *agentsCloseCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.order(ctx, a, "closed", func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.CloseAgent(ctx, r.Call("close_subagent"), &sessions.CloseSubagent{Session: id, Subagent: agent, Reason: c.Message})
	})
}

// findAgent returns an agent by its id, the beginning of it, or its name.
func findAgent(all []sessions.SubagentShown, name string) (found belay.SubagentID, err error) {
	var names []string
	for _, s := range all {
		if s.Name == name || string(s.Subagent) == name {
			return s.Subagent, nil
		}
		if strings.HasPrefix(string(s.Subagent), name) {
			if found != "" {
				return "", belay.Errorf(belay.CodeUsage, "%s is the beginning of several ids", name).WithHint("belay agents ps lists them")
			}
			found = s.Subagent
		}
		names = append(names, cmp.Or(s.Name, string(s.Subagent)))
	}
	if found == "" {
		return "", belay.Errorf(belay.CodeNotFound, "the session started no agent %s", name).WithHint("%s", match.Hint(name, names, "belay agents ps lists them"))
	}
	return found, nil
}

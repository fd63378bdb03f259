package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

// AgentsCmd is the command "belay agents".
type AgentsCmd struct {
	Ps     agentsPsCmd     `cmd:"" use:"list_subagents" default:"withargs" help:"List the agents that a session's agents started."`
	Spawn  agentsSpawnCmd  `cmd:"" use:"spawn_subagent" help:"Start an agent, as a child of the session's main agent or of another one."`
	Log    agentsLogCmd    `cmd:"" use:"read_sessions_id_events" help:"Show what an agent did: the facts about it."`
	Wait   agentsWaitCmd   `cmd:"" use:"wait_subagents" help:"Wait until agents have ended, and list them."`
	Send   agentsSendCmd   `cmd:"" use:"send_subagent_input" help:"Send an agent more input; one that has ended continues with it."`
	Pause  agentsPauseCmd  `cmd:"" use:"pause_agent,pause_subagent" help:"Hold what an agent does, and those that it started: one that a session's agent started, or all work of one that is kept as a file."`
	Resume agentsResumeCmd `cmd:"" use:"resume_agent,resume_subagent" help:"Let an agent go on that was paused or stopped, with those that it started."`
	Stop   agentsStopCmd   `cmd:"" use:"stop_agent,close_subagent" help:"Let an agent take no new work; it ends what it has."`
	Close  agentsCloseCmd  `cmd:"" use:"close_subagent" help:"End an agent, with those that it started."`
	Health agentsHealthCmd `cmd:"" use:"check_agent" help:"Run the health command of an agent that is kept as a file."`
	List   agentsListCmd   `cmd:"" use:"listAgents" help:"List the agents that are kept as files."`
	Stats  agentsStatsCmd  `cmd:"" use:"getAgentStats" help:"Count the turns of agents: ends, time, tokens, cost, retries, failed checks."`
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
	return printAgents(&a.Env, all)
}

func printAgents(e *term.Env, all []sessions.SubagentShown) (int, error) {
	return term.PrintRows(e, all, "it started no agents", "AGENT\tNAME\tKIND\tSTATUS\tSTEPS\tCALLS\tTOKENS\tCOST\tACTIVE\tMEMORY\tDOING", func(s sessions.SubagentShown) []any {
		u := used{s.Steps, s.Calls, s.Usage, s.MicroUSD, s.Active, s.Allowed}
		return []any{s.Subagent, term.Line(strings.Repeat("  ", s.Depth-1) + cmp.Or(s.Name, "-")), s.Agent, s.Status, u.steps(), u.calls(), u.tokens(), u.cost(), u.active(), u.memory(), cmp.Or(s.Doing, "-")}
	})
}

// used is what an agent used, beside what it may.
type used struct {
	Steps, Calls int
	Usage        belay.Usage
	MicroUSD     int64
	Active       belay.Duration
	app.Allowed
}

// beside writes a figure beside what is allowed; that is left out where nothing limits it.
func beside(used any, limited bool, allowed any) string {
	if !limited {
		return fmt.Sprint(used)
	}
	return fmt.Sprintf("%v/%v", used, allowed)
}

func (u used) steps() string { return beside(u.Steps, u.Limits.Steps > 0, u.Limits.Steps) }

func (u used) calls() string { return beside(u.Calls, u.Limits.Calls > 0, u.Limits.Calls) }

func (u used) tokens() string {
	tokens := term.Tokens(u.Usage.Total(), u.Usage)
	if u.Steps == 0 {
		tokens = "0"
	}
	return beside(tokens, u.Limits.Tokens > 0, term.Count(u.Limits.Tokens))
}

func (u used) cost() string {
	return beside(cost(u.MicroUSD), u.Limits.MicroUSD > 0, cost(u.Limits.MicroUSD))
}

func (u used) active() string {
	return beside(clock(u.Active), u.Limits.Time > 0, clock(u.Limits.Time))
}

// clock is a length of time in whole seconds, without what of it is zero behind.
func clock(d belay.Duration) string {
	text := time.Duration(d).Round(time.Second).String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		text = strings.TrimSuffix(whole+"m", "h0m") + map[bool]string{true: "h"}[strings.HasSuffix(whole, "h0")]
	}
	return text
}

// memory is the most that a program of the agent had, beside what its file declares.
func (u used) memory() string {
	peak := "-"
	if u.Programs.Peak > 0 {
		peak = term.Megabytes(u.Programs.Peak)
	}
	return beside(peak, u.Memory > 0, term.Megabytes(u.Memory))
}

// cost is what was charged, as far as it is known.
func cost(micro int64) string {
	if micro == 0 {
		return "-"
	}
	return "$" + block.Dollars(micro)
}

// agentTree draws the agents of a session, a line each.
func agentTree(ctx context.Context, a *command.Program, st store.Store, id belay.SessionID) ([]string, error) {
	all, err := subagents(ctx, a.Reader(st), id)
	if err != nil {
		return nil, err
	}
	var branches []story.Branch
	for _, s := range all {
		name := s.Agent
		if s.Name != "" {
			name = s.Name + " (" + s.Agent + ")"
		}
		parts := []string{name, s.Status, block.Plural(s.Calls, "call"), block.Millis(time.Duration(s.Active).Milliseconds())}
		if s.MicroUSD > 0 {
			parts = append(parts, cost(s.MicroUSD))
		}
		branches = append(branches, story.Branch{Thread: s.Thread, Parent: s.Parent, Text: term.Line(strings.Join(parts, ", "))})
	}
	return story.Tree(branches, ""), nil
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

type agentsSpawnCmd struct {
	Task      []string `arg:"" help:"Its task: it knows nothing of the conversation."`
	Agent     string   `placeholder:"KIND" help:"general (default), explore, plan, or one that is kept as a file."`
	Input     string   `placeholder:"JSON" help:"Data for it, by the schema of its file."`
	Name      string   `help:"A name for it."`
	Context   string   `placeholder:"WORD" help:"isolated (default), or fork: it begins with its parent's conversation."`
	Tools     []string `placeholder:"NAME" help:"Only these of its parent's tools."`
	Isolation string   `placeholder:"WORD" help:"worktree: it works on a git branch of its own."`
	Budget    string   `placeholder:"BUDGET" help:"The most that it may use, such as 2usd,500ktok,300calls,30m."`
	Steps     int      `placeholder:"N" help:"The most steps that it may take."`
	ID        string   `placeholder:"ID" help:"Its id; a repeated request with it starts no second agent."`
	Parent    string   `placeholder:"AGENT" help:"The agent whose child it is, by its name or id (default the main agent)."`
	Session   string   `placeholder:"ID" help:"The session, or the beginning of its id (default the last one of this workspace)."`
}

// Order implements command.Orderer.
func (c *agentsSpawnCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, err := a.SessionID(ctx, r.Store, c.Session)
	if err != nil {
		return 0, err
	}
	in := sessions.SpawnSubagent{Session: id, Subagent: belay.SubagentID(c.ID)}
	in.Task, in.Agent, in.Name, in.Context, in.Tools, in.Isolation = strings.Join(c.Task, " "), c.Agent, c.Name, c.Context, c.Tools, c.Isolation
	if c.Input != "" {
		if in.Input = json.RawMessage(c.Input); !json.Valid(in.Input) {
			return 0, belay.Errorf(belay.CodeUsage, "it isn't JSON").At("--input").WithHint(`{"topic": "locks"}`)
		}
	}
	if err := in.Most(c.Steps, c.Budget); err != nil {
		return 0, command.Flagged(err)
	}
	if c.Parent != "" {
		all, err := subagents(ctx, r, id)
		if err == nil {
			in.Parent, err = findAgent(all, c.Parent)
		}
		if err != nil {
			return 0, err
		}
	}
	res, err := sessions.Spawn(ctx, r.Call("spawn_subagent"), &in)
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "started "+string(res.Subagent))
}

type agentsLogCmd struct {
	Agent   string `arg:"" help:"Its id or name, or the beginning of its id."`
	Session string `placeholder:"ID" help:"Its session, or the beginning of the id (default the last one of this workspace)."`
	Follow  bool   `short:"f" help:"Go on with what comes."`
	Type    string `placeholder:"NAME" help:"Only facts of this type, or of a family."`
}

// Read implements command.Reader.
func (c *agentsLogCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	id, err := a.SessionID(ctx, st, c.Session)
	if err != nil {
		return 0, err
	}
	return (&EventsCmd{Session: string(id), Agent: c.Agent, Follow: c.Follow, Type: c.Type}).Read(ctx, a, st)
}

type agentsWaitCmd struct {
	Agents  []string      `arg:"" optional:"" help:"Their ids or names; without any, all that are open."`
	All     bool          `help:"Until all have ended, not one."`
	Timeout time.Duration `placeholder:"TIME" help:"Wait so long at most; then exit with 3 (default: as long as it takes)."`
	Session string        `placeholder:"ID" help:"Their session, or the beginning of the id (default the last one of this workspace)."`
}

// Order implements command.Orderer.
func (c *agentsWaitCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, err := a.SessionID(ctx, r.Store, c.Session)
	if err != nil {
		return 0, err
	}
	all, err := subagents(ctx, r, id)
	if err != nil {
		return 0, err
	}
	var ids []belay.SubagentID
	for _, name := range c.Agents {
		agent, err := findAgent(all, name)
		if err != nil {
			return 0, err
		}
		ids = append(ids, agent)
	}
	until := a.Now().Add(c.Timeout)
	for {
		in := sessions.WaitSubagents{Session: id, Subagents: ids, All: c.All || len(ids) == 0}
		if left := until.Sub(a.Now()); c.Timeout > 0 {
			in.Timeout = int(min(60, max(1, left.Round(time.Second)/time.Second)))
		}
		shown, err := sessions.Wait(ctx, r.Call("wait_subagents"), &in)
		if err != nil {
			return 0, err
		}
		late := c.Timeout > 0 && !a.Now().Before(until)
		if shown.Late && !late {
			continue
		}
		code, err := printAgents(&a.Env, shown.Agents)
		if shown.Late && err == nil {
			code = belay.ExitBlocked
		}
		return code, err
	}
}

type agentsSendCmd struct {
	agentFlags
	Text      string `arg:"" help:"The input."`
	Interrupt bool   `help:"It ends what it does now."`
}

// Run implements command.Command.
func (c *agentsSendCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.order(ctx, a, "sent", func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.SendInput(ctx, r.Call("send_subagent_input"), &sessions.SendSubagentInput{Session: id, Subagent: agent, Text: c.Text, Interrupt: c.Interrupt})
	})
}

type agentsCloseCmd struct {
	agentFlags
	Grace   bool   `help:"Give it one more step, in which it can only complete."`
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

// Run implements command.Command.
func (c *agentsCloseCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return c.order(ctx, a, "closed", func(r *app.Runtime, id belay.SessionID, agent belay.SubagentID) (*app.Result, error) {
		return sessions.CloseAgent(ctx, r.Call("close_subagent"), &sessions.CloseSubagent{Session: id, Subagent: agent, Reason: c.Message, Grace: c.Grace})
	})
}

// findAgent returns an agent by its id, the beginning of it, or its name.
func findAgent(all []sessions.SubagentShown, name string) (found belay.SubagentID, err error) {
	var names []string
	for _, s := range all {
		if s.Name == name || string(s.Subagent) == name {
			return s.Subagent, nil
		}
		if view.Named(string(s.Subagent), name) {
			if found != "" {
				return "", belay.Errorf(belay.CodeUsage, "%s names several agents", name).WithHint("belay agents ps lists them")
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

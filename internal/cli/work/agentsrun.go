package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/app/tasks"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

// AgentsRunCmd is the command "belay agents run".
type AgentsRunCmd struct {
	command.SettingFlags
	WithRequired bool     `help:"Also those that they require."`
	Max          int      `placeholder:"N" help:"How many may work at the same time (default all)."`
	Condition    []string `placeholder:"NAME" help:"Do the tasks of this condition too; may be repeated."`
	Input        string   `placeholder:"JSON" help:"Data that one agent, or a team, is started with."`
	Text         string   `placeholder:"TEXT" help:"What each of them is to do (default the tasks of its file)."`
	Names        []string `arg:"" name:"agent" help:"NAME, NAME@RANGE or ORIGIN:NAME."`
}

// Run implements command.Command.
func (c *AgentsRunCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	var team *agents.TeamStarted
	code, err := a.OrderingHere(ctx, func(r *app.Runtime, ws string) (int, error) {
		p, err := a.PlaceHere(ctx)
		if err != nil {
			return 0, err
		}
		choices, err := a.WithModel(ctx, p, c.Given())
		if err != nil {
			return 0, err
		}
		settings, err := a.Fresh(p, choices)
		if err != nil {
			return 0, err
		}
		in := &agents.RunAgents{Agents: c.Names, Text: c.Text, WithRequired: c.WithRequired, Conditions: c.Condition, Max: c.Max}
		if c.Input != "" {
			if err := json.Unmarshal([]byte(c.Input), &in.Input); err != nil {
				return 0, belay.Errorf(belay.CodeUsage, "it isn't a JSON object").At("--input").WithHint(`{"topic": "locks"}`)
			}
		}
		team, err = agents.Run(ctx, r.Call("run_agents"), in, ws, settings.Settings)
		return belay.ExitOK, err
	})
	if err != nil || code != belay.ExitOK {
		return code, err
	}
	if slices.ContainsFunc(team.Members, func(m agents.Member) bool { return m.Starved == "" }) { // else nobody has a turn
		if code, err := (&ResumeCmd{ID: string(team.Session)}).Run(ctx, a); err != nil || code == belay.ExitCancelled {
			return code, err
		}
	}
	return c.told(ctx, a, team)
}

// told prints how the agents' tasks stand.
func (c *AgentsRunCmd) told(ctx context.Context, a *command.Program, team *agents.TeamStarted) (int, error) {
	st, err := a.Open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close() //nolint:errcheck // it was only read
	r, code := a.Reader(st), belay.ExitOK
	call := r.Call("get_task")
	for _, m := range team.Members {
		t, err := tasks.Get(ctx, call, app.Fresh{}, &tasks.GetTask{Session: team.Session, Task: m.Task})
		if err != nil {
			return 0, err
		}
		if t.Status != "completed" && team.Team == "" {
			code = belay.ExitFailed
		}
		said := t.Status
		if t.Reason != "" {
			said += ": " + t.Reason
		}
		if len(m.After) > 0 {
			said += " (after " + strings.Join(m.After, ", ") + ")"
		}
		name := m.Agent
		if m.Name != "" {
			name = m.Name + " (" + m.Agent + ")"
		}
		fmt.Fprintf(a.Out, "%-30s %s\n", term.Line(name), term.Line(said))
	}
	if team.Team != "" {
		t, err := tasks.Get(ctx, call, app.Fresh{}, &tasks.GetTask{Session: team.Session, Task: team.Team})
		if err != nil {
			return 0, err
		}
		if t.Status != "completed" {
			code = belay.ExitFailed
		}
		fmt.Fprintf(a.Out, "%-30s %s\n", term.Line(t.Title), term.Line(t.Status+before(": ", t.Reason)))
		if t.Output != nil {
			fmt.Fprintln(a.Out, term.Line(t.Output.Text))
		}
	}
	return code, nil
}

// before is a text behind something, if there is one.
func before(sep, text string) string {
	if text == "" {
		return ""
	}
	return sep + text
}

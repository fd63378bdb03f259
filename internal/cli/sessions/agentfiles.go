package sessions

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/lib/files"
)

// agentFiles are the agents that are kept as files, besides those that a folder adds.
func agentFiles(ctx context.Context, a *command.Program, given string, w agents.Wanted) ([]agents.AgentFile, error) {
	p, err := a.PlaceHere(ctx)
	if err != nil {
		return nil, err
	}
	if given != "" {
		given = a.Environment().Abs(given)
		if info, err := os.Stat(given); err != nil || !info.IsDir() {
			return nil, belay.Errorf(belay.CodeUsage, "there is no such folder").At("--agents").WithHint("--agents DIR names a folder of agents")
		}
	}
	c, err := p.Agents(ctx, given)
	if err != nil {
		return nil, err
	}
	return agents.Of(c, w)
}

type agentsListCmd struct {
	Agents     string `placeholder:"DIR" help:"A folder with more agents, which go before all others."`
	Capability string `placeholder:"WORD" help:"Only those with this capability."`
	Tool       string `placeholder:"NAME" help:"Only those that name this tool."`
	Domain     string `placeholder:"NAME" help:"Only those about this."`
}

// Run implements command.Command.
func (c *agentsListCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := agentFiles(ctx, a, c.Agents, agents.Wanted{Capability: c.Capability, Tool: c.Tool, Domain: c.Domain})
	if err != nil {
		return 0, err
	}
	if a.JSON {
		for i := range all { // the texts are long; show has them
			brief := *all[i].Agent
			brief.Instructions = ""
			all[i].Agent = &brief
		}
	}
	return term.PrintRows(&a.Env, all, "no agent is kept as a file here; docs/agent-files.md says where they belong", "AGENT\tVERSION\tORIGIN\tFORMAT\tSTATE\tWHAT IT IS FOR", func(x agents.AgentFile) []any {
		return []any{term.Line(x.Name), dash(x.Version), x.Origin, dash(x.Format), state(x), term.Short(term.Line(x.Description), 60)}
	})
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// state is how an agent stands, in a word.
func state(x agents.AgentFile) string {
	n := 0
	for _, f := range x.Findings {
		if f.Level == agentfile.Warning {
			n++
		}
	}
	switch {
	case x.Is(agentfile.CodeAmbiguous):
		return "ambiguous"
	case !x.Usable:
		return "broken"
	case !x.InForce:
		return "hidden"
	case n > 0:
		return fmt.Sprintf("ok, %d warnings", n)
	}
	return "ok"
}

type agentsShowCmd struct {
	Name   string `arg:"" help:"NAME, NAME@RANGE or ORIGIN:NAME."`
	Agents string `placeholder:"DIR" help:"A folder with more agents, which go before all others."`
}

// Run implements command.Command.
func (c *agentsShowCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := agentFiles(ctx, a, c.Agents, agents.Wanted{Agent: c.Name})
	if err != nil {
		return 0, err
	}
	x := all[0]
	return a.Show(x, func() {
		line := func(name, text string) {
			if text != "" {
				fmt.Fprintf(a.Out, "%-13s %s\n", name, term.Line(text))
			}
		}
		line("agent", x.Title())
		line("file", x.Path)
		line("format", x.Format)
		line("digest", string(x.Digest))
		line("trusted", map[bool]string{true: "yes", false: "no: it never takes another's name, and what it says is untrusted"}[x.Trusted])
		line("what for", x.Description)
		line("domain", x.Domain)
		line("priority", x.Priority)
		line("model", x.Model)
		line("effort", x.Effort)
		line("mode", string(x.Mode))
		switch {
		case x.NoTools:
			line("tools", "none but those that steer the turn")
		case len(x.Tools) > 0:
			line("tools", strings.Join(x.Tools, ", "))
		}
		line("without", strings.Join(x.Without, ", "))
		line("absent", strings.Join(x.Absent, ", "))
		line("programs", strings.Join(x.Programs, ", "))
		line("forbidden", strings.Join(x.Forbidden, ", "))
		line("capabilities", strings.Join(x.Can, ", "))
		line("abilities", strings.Join(x.Abilities, ", "))
		line("limits", x.LimitsText())
		for _, n := range []struct {
			name string
			all  []agentfile.Need
		}{{"requires", x.Requires}, {"optional", x.Optional}, {"conflicts", x.Conflicts}} {
			for _, need := range n.all {
				line(n.name, strings.TrimSuffix(need.String()+": "+need.Reason, ": "))
			}
		}
		for _, t := range x.Tasks {
			line("task", strings.TrimSuffix(t.Description+" ("+t.Priority+")", " ()"))
		}
		for _, f := range x.Findings {
			line(f.Level, found(f))
		}
		if x.Instructions != "" {
			fmt.Fprintf(a.Out, "\n%s\n", term.Text(x.Instructions))
		}
	})
}

// found is a finding in a line.
func found(f agentfile.Finding) string {
	s := f.Code + ": " + f.Message
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}

type agentsCheckCmd struct {
	Path   string `arg:"" optional:"" help:"A file or a folder; all agents that count here, if it is left out."`
	Agents string `placeholder:"DIR" help:"A folder with more agents, which go before all others."`
}

// checked is the outcome of a check.
type checked struct {
	Path     string              `json:"path"`
	Name     string              `json:"name"`
	Usable   bool                `json:"usable"`
	Findings []agentfile.Finding `json:"findings"`
}

// Run implements command.Command.
func (c *agentsCheckCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := c.agents(ctx, a)
	if err != nil {
		return 0, err
	}
	code := belay.ExitOK
	rows := make([]checked, 0, len(all))
	for _, x := range all {
		if !x.Usable() {
			code = belay.ExitFailed
		}
		rows = append(rows, checked{x.Path, x.Name, x.Usable(), append([]agentfile.Finding{}, x.Findings...)})
	}
	if a.JSON {
		_, err := term.PrintRows(&a.Env, rows, "", "", func(checked) []any { return nil })
		return code, err
	}
	bad := 0
	for _, r := range rows {
		if !r.Usable {
			bad++
		}
		for _, f := range r.Findings {
			fmt.Fprintf(a.Out, "%s: %s: %s\n", term.Line(f.Where), f.Level, term.Line(found(f)))
		}
	}
	fmt.Fprintf(a.Err, "%d agents, %d of them can't run\n", len(rows), bad)
	return code, nil
}

// agents are those to check.
func (c *agentsCheckCmd) agents(ctx context.Context, a *command.Program) (all []*agentfile.Agent, err error) {
	if c.Path == "" {
		some, err := agentFiles(ctx, a, c.Agents, agents.Wanted{})
		for _, x := range some {
			all = append(all, x.Agent)
		}
		return all, err
	}
	p, err := a.PlaceHere(ctx)
	if err != nil {
		return nil, err
	}
	name := a.Environment().Abs(c.Path)
	info, err := os.Stat(name)
	if err != nil {
		return nil, belay.Errorf(belay.CodeNotFound, "there is no such file").At(c.Path).WithHint("name a file of an agent, or a folder of some")
	}
	if info.IsDir() {
		cat := agentfile.Open([]agentfile.Place{{Dir: name, Origin: agentfile.Given}})
		cat.HoldAgainst(p.Specs())
		return cat.All, nil
	}
	if !agentfile.Names(filepath.Base(name)) {
		return nil, belay.Errorf(belay.CodeUsage, "the file isn't one of an agent").At(c.Path).WithHint("such files end in .md, .yaml or .yml, and begin with neither . nor _")
	}
	data, err := files.ReadUpTo(name, agentfile.MaxBytes+1)
	if err != nil {
		return nil, belay.Errorf(belay.CodeBadManifest, "it can't be read: %s", files.Reason(err)).At(c.Path).WithHint("name a file that you can read")
	}
	cat := &agentfile.Catalog{All: []*agentfile.Agent{agentfile.Parse(name, data)}}
	cat.HoldAgainst(p.Specs())
	return slices.Clip(cat.All), nil
}

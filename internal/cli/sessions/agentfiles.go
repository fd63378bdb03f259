package sessions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/view/story"
)

// agentFiles are the agents that are kept as files.
func agentFiles(ctx context.Context, a *command.Program, w agents.Wanted) ([]agents.AgentFile, error) {
	p, err := a.PlaceHere(ctx)
	if err != nil {
		return nil, err
	}
	c, err := a.AgentFiles(ctx, p)
	if err != nil {
		return nil, err
	}
	book, runs, err := a.AgentRecords(ctx)
	if err != nil {
		return nil, err
	}
	return agents.Of(c, w, book, runs)
}

type agentsListCmd struct {
	Capability string `placeholder:"WORD" help:"Only those with this capability."`
	Tool       string `placeholder:"NAME" help:"Only those that name this tool."`
	Domain     string `placeholder:"NAME" help:"Only those about this."`
}

// Run implements command.Command.
func (c *agentsListCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := agentFiles(ctx, a, agents.Wanted{Capability: c.Capability, Tool: c.Tool, Domain: c.Domain})
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
	return term.PrintRows(&a.Env, all, "no agent is kept as a file here; belay agents new NAME makes one", "AGENT\tVERSION\tORIGIN\tFORMAT\tSTATE\tHEALTH\tRUNS\tSUCCESS\tWHAT IT IS FOR", func(x agents.AgentFile) []any {
		state, success := fileState(x.Findings, x.Usable, x.InForce), "-"
		if x.Control != "" && x.Usable {
			state, _, _ = strings.Cut(x.Control, " ")
		}
		if x.Success != nil {
			success = fmt.Sprintf("%.0f%%", *x.Success*100)
		}
		return []any{term.Line(x.Name), dash(x.Version), x.Origin, dash(x.Format), state, x.Health.Status, x.Runs, success, term.Short(term.Line(x.Description), 60)}
	})
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// fileState is how an agent or a skill stands, in a word.
func fileState(all agentfile.Findings, usable, inForce bool) string {
	n, ambiguous := 0, false
	for _, f := range all {
		if f.Level == agentfile.Warning {
			n++
		}
		ambiguous = ambiguous || f.Code == agentfile.CodeAmbiguous
	}
	switch {
	case ambiguous:
		return "ambiguous"
	case !usable:
		return "broken"
	case !inForce:
		return "hidden"
	case n == 1:
		return "ok, 1 warning"
	case n > 0:
		return fmt.Sprintf("ok, %d warnings", n)
	}
	return "ok"
}

type agentsShowCmd struct {
	Name string `arg:"" help:"NAME, NAME@RANGE or ORIGIN:NAME."`
}

// Run implements command.Command.
func (c *agentsShowCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := agentFiles(ctx, a, agents.Wanted{Agent: c.Name})
	if err != nil {
		return 0, err
	}
	x := all[0]
	if x.Working, x.Life, err = a.AgentWork(ctx, x.Called(), x.Path, x.Ends); err != nil {
		return 0, err
	}
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
		line("state", x.Control)
		line("health", strings.TrimSuffix(x.Health.Status+": "+strings.Join(x.Health.Why, "; "), ": "))
		if x.Success != nil {
			line("runs", fmt.Sprintf("%d, %.0f%% completed", x.Runs, *x.Success*100))
		}
		if !x.Recorded.IsZero() {
			line("recorded", x.Recorded.UTC().Format(time.RFC3339)+": belay events sess_runtime --type artifact.changed")
		}
		if x.Life != nil {
			for _, p := range x.Life.File {
				line(p.Name, lived(p))
			}
		}
		for _, e := range x.Ends {
			line(map[bool]string{true: "completed", false: "failed"}[e.Good], strings.TrimSuffix(e.At.UTC().Format(time.RFC3339)+": belay why "+string(e.Session), ": belay why "))
		}
		line("what for", x.Description)
		line("domain", x.Domain)
		if x.Wording != nil {
			line("template", x.Wording.Template)
		}
		line("priority", x.Priority)
		line("model", x.Model)
		line("effort", x.Effort)
		line("mode", string(x.Mode))
		switch {
		case x.NoTools:
			line("tools", "none but those that steer the turn")
		case x.ReadOnly:
			line("tools", "those that change nothing")
		case len(x.Tools) > 0:
			line("tools", strings.Join(x.Tools, ", "))
		}
		line("without", strings.Join(x.Without, ", "))
		line("absent", strings.Join(x.Absent, ", "))
		line("programs", strings.Join(x.Programs, ", "))
		line("forbidden", strings.Join(x.Forbidden, ", "))
		line("skills", strings.Join(x.Skills, ", "))
		line("mcp servers", strings.Join(x.Servers, ", "))
		line("capabilities", strings.Join(x.Can, ", "))
		line("abilities", strings.Join(x.GoodAt, ", "))
		line("limits", x.LimitsText())
		for _, w := range x.Working {
			u := used{w.Steps, w.Calls, w.Usage, 0, w.Active, w.Allowed}
			line("works", fmt.Sprintf("%s: steps %s, calls %s, tokens %s, time %s, memory %s", w.Session, u.steps(), u.calls(), u.tokens(), u.active(), u.memory()))
			if u.Programs.Ended > 0 {
				line("programs", term.ProgramsUse(u.Programs))
			}
		}
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
		if x.Life != nil {
			for _, r := range x.Life.Runs {
				line("run", strings.TrimSuffix(fmt.Sprintf("%s of session %s, %s", r.Turn, r.Session, r.Subagent), ", "))
				for _, p := range r.Phases {
					line("  "+p.Name, lived(p))
				}
			}
		}
		if x.Instructions != "" {
			fmt.Fprintf(a.Out, "\n%s\n", term.Text(x.Instructions))
		}
	})
}

// lived is a phase of an agent's life in a line.
func lived(p story.Phase) string {
	s := p.At.UTC().Format(time.RFC3339) + " " + strings.Join(p.Facts, ", ")
	if p.Note != "" {
		s += ": " + p.Note
	}
	return s
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
	Path string `arg:"" optional:"" help:"A file or a folder; all agents that count here, if it is left out."`
	All  bool   `help:"All agents that count here."`
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
	rows := make([]checked, 0, len(all))
	for _, x := range all {
		rows = append(rows, checked{x.Path, x.Name, x.Usable() && x.Broken == nil, slices.Concat([]agentfile.Finding{}, x.Findings, badTests(x), x.Broken)})
	}
	return printChecked(a, "agent", rows)
}

// badTests finds what is wrong with the tests of an agent's file.
func badTests(x *agentfile.Agent) (all agentfile.Findings) {
	if x.Tests == 0 {
		return nil
	}
	content, _ := x.Content()
	_, err := eval.ParseAt(x.Path, content, x.Name, "tests")
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // ParseAt makes it
		for _, err := range joined.Unwrap() {
			all = append(all, agentfile.Finding{Level: agentfile.Warning, Code: agentfile.CodeBadTest, Where: x.Path, Message: err.Error()})
			if e, ok := errors.AsType[*belay.Error](err); ok {
				f := &all[len(all)-1]
				f.Where, f.Message, f.Hint = e.Where, e.Message, e.Hint
			}
		}
	}
	return all
}

// printChecked prints what is wrong with files; a mistake is a failure.
func printChecked(a *command.Program, noun string, rows []checked) (int, error) {
	code, bad := belay.ExitOK, 0
	for _, r := range rows {
		if slices.ContainsFunc(r.Findings, agentfile.Finding.Mistake) {
			code = belay.ExitFailed
			bad++
		}
	}
	if a.JSON {
		_, err := term.PrintRows(&a.Env, rows, "", "", func(checked) []any { return nil })
		return code, err
	}
	for _, r := range rows {
		for _, f := range r.Findings {
			fmt.Fprintf(a.Out, "%s: %s: %s\n", term.Line(f.Where), f.Level, term.Line(found(f)))
		}
	}
	found := 0
	for _, r := range rows {
		found += len(r.Findings)
	}
	switch {
	case found == 0:
		fmt.Fprintf(a.Err, "%s, no findings\n", term.Plural(len(rows), noun))
	case bad == 0:
		fmt.Fprintf(a.Err, "%s, %s; all can be used\n", term.Plural(len(rows), noun), term.Plural(found, "finding"))
	default:
		fmt.Fprintf(a.Err, "%s, %s; repair %d\n", term.Plural(len(rows), noun), term.Plural(found, "finding"), bad)
	}
	return code, nil
}

// agents are those to check.
func (c *agentsCheckCmd) agents(ctx context.Context, a *command.Program) (all []*agentfile.Agent, err error) {
	if c.All && c.Path != "" {
		return nil, belay.Errorf(belay.CodeUsage, "these are all agents, and a path").At("--all").WithHint("leave one of them out")
	}
	if c.Path == "" {
		some, err := agentFiles(ctx, a, agents.Wanted{})
		for _, x := range some {
			if x.Origin != agentfile.BuiltIn {
				all = append(all, x.Agent)
			}
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
		a.TakeAgents(name)
		if p, err = a.PlaceHere(ctx); err != nil {
			return nil, err
		}
		cat, err := p.Agents(ctx)
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(cat.All, func(x *agentfile.Agent) bool { return x.Origin != agentfile.Given || !strings.HasPrefix(x.Path, name) }), nil
	}
	if !agentfile.Names(filepath.Base(name)) {
		return nil, belay.Errorf(belay.CodeUsage, "the file isn't one of an agent").At(c.Path).WithHint("such files end in .md, .yaml or .yml, and begin with neither . nor _")
	}
	data, err := files.ReadUpTo(name, agentfile.MaxBytes+1)
	if err != nil {
		return nil, belay.Errorf(belay.CodeBadManifest, "it can't be read: %s", files.Reason(err)).At(c.Path).WithHint("name a file that you can read")
	}
	others, err := p.Agents(ctx)
	if err != nil {
		return nil, err
	}
	x := agentfile.Parse(name, data)
	p.HoldAgents(ctx, &agentfile.Catalog{All: []*agentfile.Agent{x}})
	others.Hold(x)
	return []*agentfile.Agent{x}, nil
}

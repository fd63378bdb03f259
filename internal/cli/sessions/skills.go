package sessions

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/lib/files"
)

// SkillsCmd is the command "belay skills".
type SkillsCmd struct {
	List  skillsListCmd  `cmd:"" use:"listSkills" default:"withargs" help:"List the skills that agents can read here."`
	Show  skillsShowCmd  `cmd:"" use:"listSkills" help:"Show a skill: its instructions, its files, what is wrong with it."`
	Check skillsCheckCmd `cmd:"" use:"listSkills" help:"Check skills by the rules of Agent Skills, and say where something is wrong."`
}

func skillFiles(ctx context.Context, a *command.Program, name string) ([]agents.SkillFile, error) {
	p, err := a.PlaceHere(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.Skills(ctx)
	if err != nil {
		return nil, err
	}
	return agents.SkillsOf(c, name)
}

type skillsListCmd struct{}

// Run implements command.Command.
func (*skillsListCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := skillFiles(ctx, a, "")
	if err != nil {
		return 0, err
	}
	return term.PrintRows(&a.Env, all, "there are no skills here; one is a folder .belay/skills/NAME with a SKILL.md", "SKILL\tORIGIN\tSTATE\tWHAT IT IS FOR", func(x agents.SkillFile) []any {
		return []any{term.Line(x.Title()), x.Origin, fileState(x.Findings, x.Usable, x.InForce), term.Short(term.Line(x.Description), 80)}
	})
}

type skillsShowCmd struct {
	Name string `arg:"" help:"NAME or ORIGIN:NAME."`
}

// Run implements command.Command.
func (c *skillsShowCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := skillFiles(ctx, a, c.Name)
	if err != nil {
		return 0, err
	}
	x := all[0]
	return a.Show(x, func() {
		line := func(name, text string) {
			if text != "" {
				fmt.Fprintf(a.Out, "%-9s %s\n", name, term.Line(text))
			}
		}
		line("skill", x.Title())
		line("file", x.Path)
		line("digest", string(x.Digest))
		line("trusted", map[bool]string{true: "yes", false: "no: it never takes another's name, and what it says is untrusted"}[x.Trusted])
		line("what for", x.Description)
		for _, f := range x.Files {
			line("has", f)
		}
		for _, f := range x.Findings {
			line(f.Level, found(f))
		}
		if x.Instructions != "" {
			fmt.Fprintf(a.Out, "\n%s\n", term.Text(x.Instructions))
		}
	})
}

type skillsCheckCmd struct {
	Path string `arg:"" optional:"" help:"A skill's folder, or a folder of some; all that count here, if it is left out."`
}

// Run implements command.Command.
func (c *skillsCheckCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	all, err := c.skills(ctx, a)
	if err != nil {
		return 0, err
	}
	rows := make([]checked, 0, len(all))
	for _, x := range all {
		rows = append(rows, checked{x.Path, x.Name, x.Usable(), append([]agentfile.Finding{}, x.Findings...)})
	}
	return printChecked(a, "skill", rows)
}

// skills are those to check.
func (c *skillsCheckCmd) skills(ctx context.Context, a *command.Program) ([]*agentfile.Skill, error) {
	if c.Path == "" {
		p, err := a.PlaceHere(ctx)
		if err != nil {
			return nil, err
		}
		all, err := p.Skills(ctx)
		if err != nil {
			return nil, err
		}
		return all.All, nil
	}
	name := strings.TrimSuffix(a.Environment().Abs(c.Path), string(filepath.Separator)+agentfile.SkillFile)
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return nil, belay.Errorf(belay.CodeNotFound, "there is no such folder").At(c.Path).WithHint("name the folder of a skill, or a folder of some")
	}
	if data, err := files.ReadUpTo(filepath.Join(name, agentfile.SkillFile), agentfile.MaxBytes+1); err == nil {
		return []*agentfile.Skill{agentfile.ParseSkill(filepath.Join(name, agentfile.SkillFile), data)}, nil
	}
	return agentfile.OpenSkills([]agentfile.Place{{Dir: name, Origin: agentfile.Given}}).All, nil
}

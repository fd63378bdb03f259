package permission

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

type policyLintCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Files of rules; without any, those that count in this workspace."`
	As    string   `enum:"user,workspace,admin" default:"user" help:"Treat the files as those of: user, workspace or admin."`
	Quiet bool     `short:"q" help:"No notes."`
}

func (c *policyLintCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	l, p, err := rulesHere(ctx, a, c.Files, c.As)
	if err != nil {
		return 0, err
	}
	sum, err := policies.Lint(l.Document(p.Groups()), p.Tools.Specs())
	if err != nil {
		return 0, err
	}
	for _, f := range sum.Findings {
		if !c.Quiet || f.Level == policies.LintError || f.Level == policies.LintWarning {
			printFound(&a.Env, f)
		}
	}
	exit, err := a.Say(sum, "%s: %s, %s, %s", term.Plural(sum.Rules, "rule"), term.Plural(sum.Errors, "error"), term.Plural(sum.Warnings, "warning"), term.Plural(sum.Notes, "note"))
	if sum.Errors > 0 {
		exit = belay.ExitFailed
	}
	return exit, err
}

func printFound(e *term.Env, f policies.Finding) {
	e.Say(f, "%s%s%s: %s (%s)", term.Line(behind(f.Where, ": ")), f.Level, term.Line(after(": ", f.Rule)), term.Line(f.Text), f.Code)
}

// behind is a text with another behind it, or nothing.
func behind(text, mark string) string {
	if text == "" {
		return ""
	}
	return text + mark
}

package permission

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/rulefile"
)

// ruleFiles are files of rules that a command takes in place of those that
// count.
type ruleFiles struct {
	Rules []string `placeholder:"FILE" sep:"none" help:"Rules to judge by in place of your own files; the others count as ever."`
	As    string   `enum:"user,workspace,admin" default:"user" help:"The files that --rules replaces: user, workspace or admin."`
	Add   bool     `help:"Judge by --rules beside those files, not in their place."`
}

// read reads them.
func (f ruleFiles) read(a *command.Program) (rulefile.Instead, error) {
	all, err := a.Environment().NamedRules(f.Rules, f.As)
	all.Beside = f.Add
	return all, err
}

// rulesHere are the files to look at: those that were named, or all that count
// in this workspace, which is also returned.
func rulesHere(ctx context.Context, a *command.Program, files []string, as policies.Tier) (*rulefile.Layers, *app.Place, error) {
	p, err := a.PlaceHere(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(files) > 0 {
		l := &rulefile.Layers{}
		named, err := a.Environment().NamedRules(files, as)
		if err == nil {
			err = l.Place(named)
		}
		return l, p, err
	}
	a.SayIgnored(p.IgnoredRules())
	l, err := p.RuleFiles()
	return l, p, err
}

type policyTestCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Files of rules; without any, those that count in this workspace."`
	As    string   `enum:"user,workspace,admin" default:"user" help:"Treat the files as those of: user, workspace or admin."`
}

// triedExample is one example, as JSON.
type triedExample struct {
	Rule    string `json:"rule"`
	Where   string `json:"where,omitempty"`
	Example string `json:"example"`
	Want    string `json:"want"` // match, no match
	OK      bool   `json:"ok"`
}

func (c *policyTestCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	l, p, err := rulesHere(ctx, a, c.Files, c.As)
	if err != nil {
		return 0, err
	}
	sum, err := policies.Test(l.Document(p.Groups()))
	if err != nil {
		return 0, err
	}
	for _, t := range sum.Results {
		printTried(&a.Env, t)
	}
	exit, err := a.Say(sum, "%s of %s: %d failed; %d without an example", term.Plural(sum.Examples, "example"), term.Plural(sum.Rules, "rule"), sum.Failed, sum.Without)
	if sum.Failed > 0 {
		exit = belay.ExitFailed
	}
	return exit, err
}

func printTried(e *term.Env, t policies.ExampleResult) {
	x := triedExample{Rule: t.Rule, Where: t.Where, Example: t.Example, Want: "match", OK: t.OK()}
	if !t.Want {
		x.Want = "no match"
	}
	what := map[bool]string{true: "ok    ", false: "FAILED"}[x.OK]
	says := map[bool]string{true: "speaks of", false: "doesn't speak of"}[t.Speaks]
	e.Say(x, "%s  %s: %s %s %s", what, term.Line(x.Where), term.Line(t.Rule), says, term.Line(t.Example))
}

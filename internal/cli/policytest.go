package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/policy"
)

// ruleFiles are files of rules that a command takes in place of those that
// count.
type ruleFiles struct {
	Rules []string `placeholder:"FILE" sep:"none" help:"Rules to judge by in place of your own files; the others count as ever."`
	As    string   `enum:"user,workspace,admin" default:"user" help:"Whose files --rules replaces: user, workspace or admin."`
}

// addNamed adds the files that were named explicitly; each must exist.
func (a *app) addNamed(l *rulefile.Layers, f ruleFiles) error {
	for _, name := range f.Rules {
		path := a.abs(name)
		b, err := readfile.UpTo(path, rulefile.MaxBytes)
		if errors.Is(err, fs.ErrNotExist) {
			return belay.Errorf(belay.CodeNotFound, "there is no such file").At(name).WithHint("name a file of rules; docs/policy.md describes the form")
		}
		if err != nil {
			return belay.Errorf(belay.CodeBadPolicy, "it can't be read: %s", readfile.Reason(err)).At(name).WithHint("name a file of rules; docs/policy.md describes the form")
		}
		if err := l.Add(path, b, f.As, true); err != nil {
			return err
		}
	}
	return nil
}

// rulesHere are the files to look at: those that were named, or all that count
// in this workspace, and the workspace's tools.
func (a *app) rulesHere(ctx context.Context, files []string, as policy.Tier) (*rulefile.Layers, []belay.ToolSpec, error) {
	w, err := a.workshopHere(ctx)
	if err != nil {
		return nil, nil, err
	}
	specs := w.set.Specs()
	if len(files) > 0 {
		l := newLayers()
		return l, specs, a.addNamed(l, ruleFiles{Rules: files, As: as})
	}
	ws, err := a.workspace()
	if err != nil {
		return nil, nil, err
	}
	l, err := a.layers(ctx, ws, ruleFiles{})
	if err != nil {
		return nil, nil, err
	}
	a.sayRulesIgnored(l.Ignored())
	return l, specs, nil
}

type policyTestCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Files of rules; without any, those that count in this workspace."`
	As    string   `enum:"user,workspace,admin" default:"user" help:"Whose files they are: user, workspace or admin."`
}

// triedExample is one example, as JSON.
type triedExample struct {
	Rule    string `json:"rule"`
	Where   string `json:"where,omitempty"`
	Example string `json:"example"`
	Want    string `json:"want"` // match, no match
	OK      bool   `json:"ok"`
}

// testedRules is the sum, as JSON.
type testedRules struct {
	Rules    int `json:"rules"` // that people wrote
	Examples int `json:"examples"`
	Failed   int `json:"failed"`
	Without  int `json:"without"` // rules that have no example
}

func (c *policyTestCmd) run(ctx context.Context, a *app) (int, error) {
	l, specs, err := a.rulesHere(ctx, c.Files, c.As)
	if err != nil {
		return 0, err
	}
	doc := l.Document(groupsOf(specs))
	tried, err := policy.Try(doc)
	if err != nil {
		return 0, err
	}
	sum := testedRules{Examples: len(tried)}
	for i := range doc.Rules {
		r := &doc.Rules[i]
		if r.Where == "" {
			continue
		}
		sum.Rules++
		if len(r.Examples.Match)+len(r.Examples.NoMatch) == 0 {
			sum.Without++
		}
	}
	for _, t := range tried {
		if !t.OK() {
			sum.Failed++
		}
		a.printTried(t)
	}
	if a.JSON {
		a.PrintJSON(sum)
	} else {
		fmt.Fprintf(a.Out, "%s of %s: %d failed; %d without an example\n", term.Plural(sum.Examples, "example"), term.Plural(sum.Rules, "rule"), sum.Failed, sum.Without)
	}
	if sum.Failed > 0 {
		return belay.ExitFailed, nil
	}
	return belay.ExitOK, nil
}

func (a *app) printTried(t policy.ExampleResult) {
	x := triedExample{Rule: t.Rule, Where: t.Where, Example: t.Example, Want: "match", OK: t.OK()}
	if !t.Want {
		x.Want = "no match"
	}
	if a.JSON {
		a.PrintJSON(x)
		return
	}
	what := map[bool]string{true: "ok    ", false: "FAILED"}[x.OK]
	says := map[bool]string{true: "speaks of", false: "doesn't speak of"}[t.Speaks]
	fmt.Fprintf(a.Out, "%s  %s: %s %s %s\n", what, term.Line(x.Where), term.Line(t.Rule), says, term.Line(t.Example))
}

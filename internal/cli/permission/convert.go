package permission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/lib/files"
)

type policyImportCmd struct {
	From    string `enum:"auto,gemini,claude,openclaw,cowork" default:"auto" help:"The format of the rules: gemini (policy TOML), claude (settings.json), openclaw (openclaw.json), cowork (policy JSON); auto looks into the file."`
	Output  string `short:"o" placeholder:"FILE" help:"Where to write; otherwise the rules go to standard output, and count nowhere."`
	Yes     bool   `help:"With --output: write rules that allow what isn't allowed now."`
	Partial bool   `help:"Go on without the rules that deny or ask and can't be carried over."`
	Strict  bool   `help:"Exit with 1 if anything isn't carried over."`
	File    string `arg:"" help:"The file."`
}

// importedRules is the outcome of a file of rules, as JSON.
type importedRules struct {
	*policies.Converted
	Written string `json:"written,omitempty"`
	YAML    string `json:"yaml,omitempty"`
}

// maxForeign bounds what is read; the reader says it better for what is a little
// longer than it takes.
const maxForeign = 16 << 20

func (c *policyImportCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	content, err := files.ReadGiven(a.Environment().Abs(c.File), maxForeign)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, belay.Errorf(belay.CodeNotFound, "there is no such file").At(c.File).WithHint("name a file of rules of another agent")
	}
	if err != nil {
		return 0, belay.Errorf(belay.CodeBadPolicy, "it can't be read: %s", files.Reason(err)).At(c.File).WithHint("name a file of rules of another agent")
	}
	x, err := c.convert(ctx, a, content)
	if err != nil {
		return 0, err
	}
	if !a.JSON {
		reportImport(&a.Env, x)
	}
	if err := c.may(x); err != nil {
		return 0, err
	}
	if err := c.write(a, x); err != nil {
		return 0, err
	}
	if a.JSON {
		a.PrintJSON(x)
	}
	if c.Strict && x.Count(policies.KeptLeft)+x.Count(policies.KeptLost) > 0 {
		return belay.ExitFailed, nil
	}
	return belay.ExitOK, nil
}

// convert makes rules of a file and holds them against those in force.
func (c *policyImportCmd) convert(ctx context.Context, a *command.Program, content []byte) (*importedRules, error) {
	ws, err := a.WorkspaceDir()
	if err != nil {
		return nil, err
	}
	have, err := a.RulesOf(config.Resolve(ctx, a.Input(ws)))
	if err != nil {
		return nil, err
	}
	home := a.Getenv("HOME")
	x, err := policies.Convert(policies.Foreign{Name: c.File, Format: c.From, Content: content, Home: home,
		OfPerson: home != "" && filepath.Dir(a.Environment().Abs(c.File)) == filepath.Join(home, ".claude")}, have.Set)
	return &importedRules{Converted: x}, err
}

// may refuses an import that loses rules or widens permissions without the flag
// that accepts it.
func (c *policyImportCmd) may(x *importedRules) error {
	if n := x.Count(policies.KeptLost); n > 0 && !c.Partial {
		first := x.Items[slices.IndexFunc(x.Items, func(i policies.Item) bool { return i.Kept == policies.KeptLost })]
		return belay.Errorf(belay.CodeBadPolicy, "%s that may deny or ask can't be carried over; the first is %s (%s)", term.Plural(n, "thing"), first.Source, first.Why).At(first.Where).
			WithHint("write it by hand (docs/policy.md), and import the rest with --partial")
	}
	if c.Output != "" && len(x.Widens) > 0 && !c.Yes {
		return belay.Errorf(belay.CodeUntrusted, "%s would allow what isn't allowed now: %s", term.Plural(len(x.Widens), "rule"), someOf(x.Widens)).At(c.Output).
			WithHint("read them without --output, then write them with --yes")
	}
	return nil
}

// someOf names a few of many.
func someOf(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, ", ")
}

func (c *policyImportCmd) write(a *command.Program, x *importedRules) error {
	text := rulefile.Write(x.Document.Rules)
	switch {
	case c.Output == "" && a.JSON:
		x.YAML = text
		return nil
	case c.Output == "":
		_, err := io.WriteString(a.Out, text)
		return err
	}
	path := a.Environment().Abs(c.Output)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return belay.Errorf(belay.CodeExists, "the file is there already").At(c.Output).WithHint("-o FILE names another")
	}
	x.Written = path
	err := files.WriteWhole(files.System{}, path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err == nil && !a.JSON {
		fmt.Fprintln(a.Out, term.Line(path))
	}
	return err
}

// reportImport says the outcome of each rule.
func reportImport(e *term.Env, x *importedRules) {
	for _, i := range x.Items {
		text := fmt.Sprintf("%-8s  %s: %s", i.Kept, i.Where, i.Source)
		if len(i.Rules) > 0 {
			text += " → " + someOf(i.Rules)
		}
		if i.Why != "" {
			text += " (" + i.Why + ")"
		}
		fmt.Fprintln(e.Err, term.Line(text))
	}
	for _, r := range x.Allowing {
		fmt.Fprintln(e.Err, term.Line(fmt.Sprintf("widens    %s: %s allows what isn't allowed now", r.Where, r.ID)))
	}
	fmt.Fprintf(e.Err, "%s: of %d entries %d the same, %d stricter, %d left out, %d lost\n", term.Plural(x.Rules, "rule"), len(x.Items),
		x.Count(policies.KeptSame), x.Count(policies.KeptStricter), x.Count(policies.KeptLeft), x.Count(policies.KeptLost))
}

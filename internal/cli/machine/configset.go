package machine

import (
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lib/match"
)

type configGetCmd struct {
	Name string `arg:"" help:"The setting, such as mode."`
}

func (c *configGetCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	p, err := a.EnterHere(ctx)
	if err != nil {
		return 0, err
	}
	l, err := a.Layers(p, nil)
	if err != nil {
		return 0, err
	}
	all, err := l.CheckedRows()
	if err != nil {
		return 0, err
	}
	var names []string
	for _, r := range all {
		if r.Name == c.Name {
			return a.Say(r, "%s", term.Line(r.Value))
		}
		names = append(names, r.Name)
	}
	return 0, belay.Errorf(belay.CodeUsage, "there is no setting %q", c.Name).WithHint("%s", match.Hint(c.Name, names, "belay config show lists them"))
}

type configSetCmd struct {
	Name  string   `arg:"" help:"The setting, such as mode."`
	Value []string `arg:"" help:"Its value; of a list several, or one with commas."`
}

func (c *configSetCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	values := c.Value
	if len(values) == 1 && c.Name == "allow" {
		values = strings.Split(values[0], ",")
	}
	return change(ctx, a, c.Name, values)
}

type configUnsetCmd struct {
	Name string `arg:"" help:"The setting."`
}

func (c *configUnsetCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return change(ctx, a, c.Name, nil)
}

// changed is what became of a setting in the person's file, as JSON.
type changed struct {
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"` // none: it was taken out
	File   string   `json:"file"`
	Left   []string `json:"left,omitempty"` // what was taken out with it
}

// change writes a setting, or takes it out.
func change(ctx context.Context, a *command.Program, name string, values []string) (int, error) {
	p, err := a.EnterHere(ctx)
	if err != nil {
		return 0, err
	}
	path, err := a.Environment().UserFile()
	if err != nil {
		return 0, err
	}
	left, err := p.Change(ctx, config.Given{name: values})
	if err != nil {
		return 0, err
	}
	text := name + " is not set in " + path
	if len(values) > 0 {
		text = name + " is " + strings.Join(values, ", ") + " in " + path
	}
	if len(left) > 0 {
		text += "; " + strings.Join(left, " and ") + " of the provider before went with it"
	}
	return a.SayBeside(changed{name, values, path, left}, "%s", term.Line(text))
}

type configPathCmd struct{}

func (configPathCmd) Run(_ context.Context, a *command.Program) (int, error) {
	path, err := a.Environment().UserFile()
	if err != nil {
		return 0, err
	}
	return a.Say(struct {
		Path string `json:"path"`
	}{path}, "%s", term.Line(path))
}

type configEditCmd struct{}

func (configEditCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	changed := false
	err := a.Environment().EditUserFile(ctx, func(path string, old []byte) ([]byte, error) {
		text, err := a.EditText(ctx, "belay.yaml", old)
		changed = string(text) != string(old)
		return text, err
	})
	if err != nil {
		return 0, err
	}
	path, _ := a.Environment().UserFile() //nolint:errcheck // it was edited
	word := "unchanged"
	if changed {
		word = "saved"
	}
	return a.SayBeside(struct {
		File    string `json:"file"`
		Changed bool   `json:"changed"`
	}{path, changed}, "%s %s", word, term.Line(path))
}

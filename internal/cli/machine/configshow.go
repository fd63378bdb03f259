package machine

import (
	"cmp"
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
)

// ConfigCmd is the command "belay config".
type ConfigCmd struct {
	Show  configShowCmd  `cmd:"" default:"withargs" help:"Print the settings of a new session, and where each comes from."`
	Get   configGetCmd   `cmd:"" help:"Print the value of a setting."`
	Set   configSetCmd   `cmd:"" help:"Keep a setting in your configuration file."`
	Unset configUnsetCmd `cmd:"" help:"Remove a setting from your configuration file."`
	Path  configPathCmd  `cmd:"" help:"Print the path of your configuration file."`
	Edit  configEditCmd  `cmd:"" help:"Open your configuration file in $$VISUAL, $$EDITOR or vi. A mistake is refused."`
}

type configShowCmd struct {
	command.SettingFlags
}

// overridden is a value that doesn't count, as JSON.
type overridden struct {
	Ignored string `json:"ignored"`
	From    string `json:"from"`
	Reason  string `json:"reason"`
}

func (c *configShowCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	p, err := a.EnterHere(ctx)
	if err != nil {
		return 0, err
	}
	l, err := p.Layers(c.Given())
	if err != nil {
		return 0, err
	}
	rows, err := l.CheckedRows()
	if err != nil {
		return 0, err
	}
	if _, err := term.PrintRows(&a.Env, rows, "", "SETTING\tVALUE\tFROM", func(r config.Row) []any {
		return []any{r.Name, term.Line(r.Value), term.Line(cmp.Or(r.From, r.Source))}
	}); err != nil {
		return 0, err
	}
	for _, i := range l.Ignored() {
		if a.JSON {
			a.PrintJSON(overridden{i.What, i.Where, i.Why})
		}
	}
	a.SayIgnored(l.Ignored())
	return belay.ExitOK, nil
}

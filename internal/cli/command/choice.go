package command

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
)

// ChooseModel settles the provider and the model of a new session in a workspace where
// the settings, with those given over them, leave them open. Nothing is written. The
// zero choice means that the settings say it. Where a person has to choose, the error
// is a config.OpenChoice with the candidates.
func (a *Program) ChooseModel(ctx context.Context, p *app.Place, g config.Given) (config.Choice, error) {
	l, err := a.Layers(p, g)
	if err != nil {
		return config.Choice{}, err
	}
	return l.Choose(func() []config.Candidate { return a.Models().Local(ctx) })
}

// WithModel are settings with the provider and the model of a new session, which are
// chosen where the settings leave them open. It says what was chosen, and why.
func (a *Program) WithModel(ctx context.Context, p *app.Place, g config.Given) (config.Given, error) {
	c, err := a.ChooseModel(ctx, p, g)
	if err != nil || c == (config.Choice{}) {
		return g, err
	}
	if c.Model != "" && !a.JSON {
		fmt.Fprintf(a.Err, "using %s\n", term.Line(c.String()))
	}
	return c.Over(g), nil
}

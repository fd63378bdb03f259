package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// PickModel asks the person at the terminal which of the candidates serves new
// sessions, and keeps the answer in their configuration file. Without candidates, or
// without an answer, the error is the one that was given.
func (a *Program) PickModel(ctx context.Context, p *app.Place, open *config.OpenChoice) (config.Choice, error) {
	if len(open.Candidates) == 0 {
		return config.Choice{}, open
	}
	fmt.Fprintln(a.Err, "Several models could answer, and none is chosen yet:")
	for i, c := range open.Candidates {
		fmt.Fprintf(a.Err, "%2d  %s\n", i+1, term.Line(strings.TrimSuffix(c.Name+" "+c.Model, " ")+"  ("+c.Why()+")"))
	}
	said, err := a.ReadLine(ctx, "which one, from now on? (belay login VENDOR adds one) ")
	if err != nil {
		return config.Choice{}, err
	}
	i := slices.IndexFunc(open.Candidates, func(c config.Candidate) bool { return c.Name == said })
	if n, err := strconv.Atoi(said); err == nil && n <= len(open.Candidates) {
		i = n - 1
	}
	if i < 0 {
		return config.Choice{}, open
	}
	c := open.Candidates[i]
	if c.Model == "" {
		if c.Model, err = a.ReadLine(ctx, "which model of "+c.Name+"? "); err != nil || c.Model == "" {
			return config.Choice{}, errors.Join(err, open)
		}
	}
	chosen := config.Choice{Provider: c.Name, Model: c.Model, Why: "chosen just now, and kept: belay config set provider NAME changes it"}
	if _, err := p.Change(ctx, config.Given{"provider": {c.Name}, "model": {c.Model}}); err != nil {
		chosen.Why = "chosen just now; it couldn't be kept: " + err.Error()
	}
	return chosen, nil
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

package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
)

// talk is what a conversation begins with here.
type talk struct {
	workspace string
	place     *app.Place
	settings  config.Settings // of a new session
	given     map[string]any  // as commands take them
	note      string          // what was chosen for the person; empty: nothing was
}

// picker lets a person choose a model, where several could be meant, or none can answer.
type picker func(context.Context, *app.Place, config.Given, *config.OpenChoice) (config.Choice, error)

// beginTalk enters the workspace and reads the settings of a conversation. pick may be
// nil: nobody is asked.
func beginTalk(ctx context.Context, a *command.Program, g config.Given, pick picker) (*talk, error) {
	ws, p, err := a.EnterChecked(ctx)
	if err != nil {
		return nil, err
	}
	t := &talk{workspace: ws, place: p}
	chosen, err := a.ChooseModel(ctx, p, g)
	if open, ok := errors.AsType[*config.OpenChoice](err); ok && pick != nil {
		chosen, err = pick(ctx, p, g, open)
	}
	if err != nil {
		return nil, err
	}
	if chosen.Model != "" {
		t.note = "using " + chosen.String()
		if b := a.Build.Confined(a).Boundary(); !belay.Level(b.Level).AtLeast(belay.L2) {
			t.note += "; " + app.PlainOnly + " (" + b.Why + ")"
		}
	}
	g = chosen.Over(g)
	if g.Get("completion") == "" {
		g["completion"] = []string{string(belay.CompletionConversational)}
	}
	if t.settings, err = a.Fresh(p, g); err != nil {
		return nil, err
	}
	if t.given, err = settingsOf(g); err != nil {
		return nil, err
	}
	if t.given["provider"] == nil || g.Get("script") != "" {
		t.given["provider"], t.given["model"] = t.settings.Provider, t.settings.Model
	}
	return t, nil
}

// addressed takes the address of the provider out of what was given. No command takes
// one, because a server's callers mustn't say where it connects to: sessions of this
// process have it from the environment.
func addressed(a *command.Program, g config.Given, continued bool) error {
	at := g.Get("base-url")
	if at == "" {
		return nil
	}
	if continued {
		return belay.Errorf(belay.CodeUsage, "a session keeps the address that it began with").At("--base-url").WithHint("belay run --session ID --base-url %s TEXT changes it", at)
	}
	delete(g, "base-url")
	a.Environ = append(slices.Clone(a.Environ), "BELAY_BASE_URL="+at)
	a.Host = a.Build.NewHost(a) // the one before had the environment as it was
	return nil
}

// settingsOf are settings as commands take them.
func settingsOf(g config.Given) (map[string]any, error) {
	out := map[string]any{}
	for _, s := range config.All() {
		v, ok := g[s.Name]
		switch {
		case !ok || s.Name == "script":
		case s.JSON == "":
			return nil, belay.Errorf(belay.CodeUsage, "a conversation doesn't take it").At("--"+s.Name).WithHint("belay config set %s %s", s.Name, strings.Join(v, ","))
		case s.List:
			out[s.JSON] = v
		case s.Switch():
			out[s.JSON] = true
		default:
			out[s.JSON] = v[0]
		}
	}
	return out, nil
}

// errShown ends a conversation that wasn't begun: the person chose to see the demo.
var errShown = errors.New("the demo was shown")

// pickModel asks the person at the terminal which of the candidates serves new sessions,
// and keeps the answer in their configuration file. They may log in first, or see the
// demo instead. Without an answer the error is the one that was given.
func pickModel(a *command.Program) picker {
	return func(ctx context.Context, p *app.Place, g config.Given, open *config.OpenChoice) (config.Choice, error) {
		fmt.Fprintln(a.Err, "No model is chosen yet:")
		names := []string{}
		for _, m := range open.Candidates {
			names = append(names, m.Name)
			fmt.Fprintf(a.Err, "%2d  %s\n", len(names), term.Line(strings.TrimSuffix(m.Name+" "+m.Model, " ")+"  ("+m.Why()+")"))
		}
		for _, m := range [][2]string{{"login", "keep a vendor's key"}, {"demo", "see what this does, without a key"}} {
			names = append(names, m[0])
			fmt.Fprintf(a.Err, "%2d  %s  (%s)\n", len(names), m[0], m[1])
		}
		said, err := a.ReadLine(ctx, "which one, from now on? ")
		if err != nil {
			return config.Choice{}, err
		}
		i := slices.Index(names, said)
		if n, err := strconv.Atoi(said); err == nil && n <= len(names) {
			i = n - 1
		}
		switch {
		case i < 0:
			return config.Choice{}, open
		case names[i] == "demo":
			return config.Choice{}, cmp.Or(desk{a}.Belay(ctx, "demo"), errShown)
		case names[i] == "login":
			if err := (desk{a}).Belay(ctx, "login"); err != nil {
				return config.Choice{}, err
			}
			return a.ChooseModel(ctx, p, g)
		}
		m := open.Candidates[i]
		if m.Model == "" {
			if m.Model, err = a.ReadLine(ctx, "which model of "+m.Name+"? "); err != nil || m.Model == "" {
				return config.Choice{}, errors.Join(err, open)
			}
		}
		chosen := config.Choice{Provider: m.Name, Model: m.Model, Why: "chosen just now, and kept: belay config set provider NAME changes it"}
		if _, err := p.Change(ctx, config.Given{"provider": {m.Name}, "model": {m.Model}}); err != nil {
			chosen.Why = "chosen just now; it couldn't be kept: " + err.Error()
		}
		return chosen, nil
	}
}

package work

import (
	"context"
	"errors"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
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

// picker lets a person choose a model, where several could be meant.
type picker func(context.Context, *app.Place, *config.OpenChoice) (config.Choice, error)

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
		chosen, err = pick(ctx, p, open)
	}
	if err != nil {
		return nil, err
	}
	if chosen.Model != "" {
		t.note = "using " + chosen.String()
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

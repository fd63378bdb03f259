package machine

import (
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
	"github.com/belay-run/belay/internal/secret/vault"
)

// LoginCmd is the command "belay login".
type LoginCmd struct {
	Identity
	Vendor  string `arg:"" optional:"" help:"The key's provider: openai, anthropic, google, or another one; asked for when left out."`
	Model   string `placeholder:"NAME" help:"The model that the key is tried with (default the provider's)."`
	NoCheck bool   `help:"Keep the key without trying it."`
}

// loggedIn is what became of a key, as JSON.
type loggedIn struct {
	Provider string `json:"provider"`
	Secret   string `json:"secret"`
	Checked  bool   `json:"checked"`
}

// Run implements command.Command.
func (c *LoginCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	p, err := a.EnterHere(ctx)
	if err != nil {
		return 0, err
	}
	vendor, err := c.vendor(ctx, a)
	if errors.Is(err, term.ErrInterrupted) {
		return belay.ExitCancelled, nil
	}
	if err != nil {
		return 0, err
	}
	s, err := p.Service(vendor)
	if err != nil {
		return 0, err
	}
	name, err := s.SecretOf()
	if err != nil {
		return 0, err
	}
	v, err := a.Environment().Vault(c.Identity.Identity, a.Secrets())
	if err != nil {
		return 0, err
	}
	if _, err := v.List(); err != nil { // before a key is typed in vain
		return 0, err
	}
	key, err := a.ReadSecret(ctx, name, vault.MaxValue)
	if errors.Is(err, term.ErrInterrupted) {
		return belay.ExitCancelled, nil
	}
	if err != nil {
		return 0, err
	}
	if err := vault.CheckValue(key); err != nil {
		return 0, err
	}
	checked, found := false, []app.Finding(nil)
	if !c.NoCheck {
		if found, checked, err = c.check(ctx, a, s, key); err != nil {
			return 0, err
		}
	}
	if i := slices.IndexFunc(found, func(f app.Finding) bool { return f.State == "failed" }); i >= 0 && !checked {
		try := found[i].Try
		if found[i].Name == "reachable" {
			try = "is the network up?"
		}
		return 0, belay.Errorf(belay.CodeNoKey, "the key isn't kept: %s", found[i].What).At(s.Name).WithHint("%s; --no-check keeps it untried", try)
	}
	if err := v.Set(ctx, name, key, a.Now()); err != nil {
		return 0, err
	}
	return c.say(a, s, name, checked)
}

// say reports what became of the key.
func (c *LoginCmd) say(a *command.Program, s config.Service, name string, checked bool) (int, error) {
	text := s.Name + ": the key is kept as the secret " + name
	if !checked {
		text += "; it wasn't tried: belay models test --provider " + s.Name + " --model NAME"
	}
	if s.Key.Kind == "" && a.Getenv(name) != "" {
		text += "; the variable " + name + " is set, too, and counts first"
	}
	return a.SayBeside(loggedIn{s.Name, name, checked}, "%s", term.Line(text))
}

// check asks the provider with the key. It reports what was found, and whether the key
// was accepted; neither, if no model is known to ask.
func (c *LoginCmd) check(ctx context.Context, a *command.Program, s config.Service, key string) ([]app.Finding, bool, error) {
	ws, err := a.WorkspaceDir()
	if err != nil {
		ws = ""
	}
	in := a.Input(ws)
	in.Typed = config.Typed{Provider: s.Name, Key: key}
	at := &app.Place{Workspace: config.Resolve(ctx, in)}
	given := config.Given{"provider": {s.Name}, "model": {c.Model}}
	l, err := at.Layers(given)
	if err != nil {
		return nil, false, err
	}
	choice, err := l.Choose(func() []config.Candidate { return nil })
	if err != nil {
		return nil, false, err
	}
	if choice.Model != "" {
		l.Set("model", choice.Model)
	}
	settings, err := l.Checked()
	if belay.CodeOf(err) == belay.CodeUsage && c.Model == "" { // it has no default model
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	provider, err := a.Models().Provider(at.Workspace, settings.Settings)
	if err != nil {
		return nil, false, err
	}
	ctx, release := a.UntilSignal(ctx)
	defer release()
	ctx, stop := context.WithTimeout(ctx, trialTime)
	defer stop()
	fmt.Fprintf(a.Err, "trying it with %s\n", term.Line(settings.Model))
	found := judge(a, at, settings, try(ctx, &a.Env, provider, settings.Model))
	accepted := !slices.ContainsFunc(found, func(f app.Finding) bool {
		return f.State == "failed" && slices.Contains([]string{"key", "reachable", "answer"}, f.Name)
	})
	return found, accepted, nil
}

// vendor is whose key it is, which a person at a terminal is asked for.
func (c *LoginCmd) vendor(ctx context.Context, a *command.Program) (string, error) {
	if c.Vendor != "" {
		return c.Vendor, nil
	}
	var names []string
	for _, v := range config.Vendors() {
		if len(v.Keys) > 0 && !v.Open && v.Name != config.OpenAIChat {
			names = append(names, v.Name)
		}
	}
	which := belay.Errorf(belay.CodeUsage, "whose key is it: %s?", strings.Join(names, ", ")).WithHint("belay login %s", names[0])
	if !a.Interactive() {
		return "", which
	}
	for i, name := range names {
		fmt.Fprintf(a.Err, "%2d  %s\n", i+1, name)
	}
	said, err := a.ReadLine(ctx, "whose key is it? ")
	if err != nil {
		return "", err
	}
	if n, err := strconv.Atoi(said); err == nil && n > 0 && n <= len(names) {
		return names[n-1], nil
	}
	if said == "" {
		return "", which
	}
	return said, nil
}

// LogoutCmd is the command "belay logout".
type LogoutCmd struct {
	Identity
	Vendor string `arg:"" help:"The provider whose key is forgotten."`
}

// Run implements command.Command.
func (c *LogoutCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	p, err := a.EnterHere(ctx)
	if err != nil {
		return 0, err
	}
	s, err := p.Service(c.Vendor)
	if err != nil {
		return 0, err
	}
	name, err := s.SecretOf()
	if err != nil {
		return 0, err
	}
	v, err := a.Environment().Vault(c.Identity.Identity, a.Secrets())
	if err != nil {
		return 0, err
	}
	err = v.Remove(ctx, name)
	if belay.CodeOf(err) == belay.CodeNotFound && a.Getenv(name) != "" {
		return 0, belay.Errorf(belay.CodeNotFound, "no key of %s is kept; it is in the environment", s.Name).At(name).WithHint("unset %s", name)
	}
	if belay.CodeOf(err) == belay.CodeNotFound {
		return 0, belay.Errorf(belay.CodeNotFound, "no key of %s is kept", s.Name).WithHint("belay secret list")
	}
	if err != nil {
		return 0, err
	}
	text := s.Name + ": the key is forgotten"
	if a.Getenv(name) != "" {
		text += "; the variable " + name + " is still set"
	}
	return a.SayBeside(struct {
		Provider string `json:"provider"`
		Secret   string `json:"secret"`
		Removed  bool   `json:"removed"`
	}{s.Name, name, true}, "%s", term.Line(text))
}

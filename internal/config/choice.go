package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
)

// Candidate is a provider that could serve a new session: there is a key, an address
// or a description of it.
type Candidate struct {
	Name  string
	Model string // its default; empty: one has to be named
	What  string // what there is
	Try   string // a command that uses it
	Ready bool   // it can be asked: its key is there, or it wants none
}

// Why is what there is, without the name.
func (c Candidate) Why() string { return strings.TrimPrefix(c.What, c.Name+": ") }

// Candidates are the providers that could be used. kept are the names of secrets
// that are kept.
func (w *Workspace) Candidates(kept []string) []Candidate {
	var all []Candidate
	add := func(s Service, what string, ready bool) {
		c := NewCandidate(s.Name, s.Model, s.Name+": "+what)
		c.Ready = ready
		all = append(all, c)
	}
	seen := map[string]bool{"": true}
	for _, v := range vendors {
		name, what := w.in.keyPlace(v, kept)
		ready := name != ""
		if !ready {
			_, name = w.in.address(v)
			what = name + " is set"
		}
		if _, described := w.providers.services[v.Name]; !described && !seen[name] {
			add(v, what, ready)
		}
		seen[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.providers.services)) {
		s := w.providers.services[name]
		what, place := s.Where, ""
		ready := s.Open
		switch {
		case s.Key == (manifest.Reference{}):
			place, _ = w.in.keyPlace(s, kept)
			ready = ready || place != ""
		case s.Key.Kind == "env" && w.in.Get(s.Key.Name) == "":
			what += fmt.Sprintf(", key %s, which is not set", s.Key)
			ready = false
		default:
			what += fmt.Sprintf(", key %s", s.Key)
			ready = s.Key.Kind != "secret" || slices.Contains(kept, s.Key.Name)
		}
		add(s, what, ready)
	}
	return all
}

// NewCandidate is a provider with the command that uses it.
func NewCandidate(name, model, what string) Candidate {
	try := "belay run --provider " + name + " --model NAME TEXT"
	if model != "" {
		try = "belay run --provider " + name + " TEXT"
	}
	return Candidate{Name: name, Model: model, What: what, Try: try}
}

// keyPlace is the variable or the secret that holds a provider's key; both are empty
// where there is none.
func (e Env) keyPlace(s Service, kept []string) (name, what string) {
	if name, _ := e.keyVariable(s); name != "" {
		return name, name + " is set"
	}
	if i := slices.IndexFunc(s.Keys, func(k string) bool { return slices.Contains(kept, k) }); i >= 0 {
		return s.Keys[i], "the secret " + s.Keys[i] + " is kept"
	}
	return "", ""
}

// Choice is the provider and the model of a new session whose settings leave one of
// them open. The zero value is none: the settings say it, or nothing does.
type Choice struct {
	Provider, Model string
	Why             string // what decided

	named bool // the settings name the provider
}

// Over lays the choice over settings: what they say stays where it is.
func (c Choice) Over(g Given) Given {
	g = maps.Clone(g)
	if c.Provider != "" && !c.named {
		g["provider"] = []string{c.Provider}
	}
	if c.Model != "" {
		g["model"] = []string{c.Model}
	}
	return g
}

// String is the choice as a person reads it.
func (c Choice) String() string { return c.Provider + ", model " + c.Model + ": " + c.Why }

// OpenChoice is the error where several providers, or none, could serve a new session.
type OpenChoice struct {
	Candidates []Candidate // that can be asked
	err        *belay.Error
}

// Error implements error.
func (o *OpenChoice) Error() string { return o.err.Error() }

// Unwrap returns the error behind it.
func (o *OpenChoice) Unwrap() error { return o.err }

// Choose settles the provider and the model where the settings leave them open: the
// only provider that can be asked, the vendor of the model, the default model of the
// provider. Nothing that the settings say is replaced. local returns the servers of
// this machine that answer; it is called when there is nothing else. Where several
// providers could be used, or none, the error is an OpenChoice.
func (l *Layers) Choose(local func() []Candidate) (Choice, error) {
	provider, model := l.set["provider"].text, l.set["model"].text
	if l.set["script"].text != "" || strings.HasPrefix(provider, ScriptedPrefix) || provider != "" && model != "" {
		return Choice{}, nil
	}
	p := parser{w: l.w, in: l.w.in, set: l.set, out: Settings{Settings: l.w.in.Defaults()}}
	if p.all(); p.err != nil { // what is wrong is told first
		return Choice{}, p.err
	}
	cat, err := l.w.in.Catalog()
	if err != nil {
		return Choice{}, err
	}
	if provider != "" {
		s, err := l.w.Service(provider)
		def, ok := cat.Default(provider)
		if err != nil || !ok || s.Model != "" {
			return Choice{}, nil //nolint:nilerr // checking the settings tells what is wrong
		}
		return Choice{Provider: provider, Model: def.Name, Why: "it is the default model of " + provider, named: true}, nil
	}
	if from := l.set["base-url"]; from.text != "" {
		return Choice{}, belay.Errorf(belay.CodeNoProvider, "an address belongs to a provider, and none is named").At(from.from).WithHint("%s NAME", l.w.in.flag("provider"))
	}
	known, unknown := cat.Show(model)
	if model != "" && unknown == nil && !strings.Contains(model, "/") {
		if _, ok := vendor(known.Provider); ok {
			return Choice{Provider: known.Provider, Model: model, Why: "it is a model of " + known.Provider}, nil
		}
	}
	kept, err := l.w.in.KeptSecrets(l.w.in.Secrets)
	if err != nil { // a choice without them may be another one
		return Choice{}, err
	}
	all := slices.DeleteFunc(l.w.Candidates(kept), func(c Candidate) bool { return !c.Ready })
	for i, c := range all {
		if def, ok := cat.Default(c.Name); ok && c.Model == "" {
			all[i] = NewCandidate(c.Name, def.Name, c.What)
		}
	}
	flag := l.w.in.flag("provider")
	switch len(all) {
	case 1:
		return Choice{Provider: all[0].Name, Model: cmp.Or(model, all[0].Model), Why: all[0].Why() + ", and is the only key"}, nil
	case 0:
		hint := "belay login VENDOR, or belay demo, which needs no key"
		if all = local(); len(all) > 0 {
			hint = all[0].Try + "; " + hint
		} else if e, ok := errors.AsType[*belay.Error](unknown); ok && model != "" {
			return Choice{}, belay.Errorf(belay.CodeNoProvider, "no provider is named, none has a key, and %s", e.Message).At(l.w.in.flag("model")).WithHint("%s", e.Hint)
		}
		return Choice{}, open("no provider is named, and none has a key", all, flag, hint)
	}
	return Choice{}, open("several providers could be used, and none is named", all, flag, flag+" "+all[0].Name+"; belay config set provider "+all[0].Name+" keeps the choice")
}

// open is an OpenChoice that lists what there is.
func open(text string, all []Candidate, where, hint string) error {
	var said []string
	for _, c := range all {
		said = append(said, c.What)
	}
	if len(said) > 0 {
		text += " (" + strings.Join(said, "; ") + ")"
	}
	return &OpenChoice{all, belay.Errorf(belay.CodeNoProvider, "%s", text).At(where).WithHint("%s", hint)}
}

package providers

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/catalog"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/tokens"
)

// Routes are the models that a turn's requests may go to, the session's own
// first, with what the catalogue knows of each.
func (m *Providers) Routes(w *config.Workspace, s belay.Settings) []core.Candidate {
	all := []core.Candidate{m.Candidate(w, s)}
	for _, f := range s.Fallback {
		var r event.Route
		r.Provider, r.Model, _ = config.Route(f)
		if !slices.ContainsFunc(all, func(c core.Candidate) bool { return c.Route == r }) {
			all = append(all, m.Candidate(w, w.Of(s, r.Provider, r.Model)))
		}
	}
	return all
}

// Candidate is one model as the catalogue knows it.
func (m *Providers) Candidate(w *config.Workspace, s belay.Settings) core.Candidate {
	c := core.Candidate{Candidate: event.Candidate{Route: event.Route{Provider: s.Provider, Model: s.Model}, Address: w.Address(s)}, BaseURL: s.BaseURL}
	known, ok := m.Known(w, s)
	if c.Known = ok; ok {
		c.Context, c.Factor = known.Context, known.Factor
		for _, x := range known.Abilities {
			if x != catalog.Images && x != catalog.Files {
				c.Capabilities = append(c.Capabilities, string(x))
			}
		}
		if p := known.Prices.At(m.Now()); p != nil {
			c.Prices = p
			c.InputPrice, c.OutputPrice = p.Input, p.Output
		}
	}
	p, err := m.Provider(w, s)
	switch can := model.AbilitiesOf(p, s.Model); {
	case belay.CodeOf(err) == belay.CodeNoKey:
		c.Lacks = "credential"
	case err != nil:
		c.Lacks = "network"
	default: // what it is sent, not what it could take at its vendor's
		if can.Images {
			c.Capabilities = append(c.Capabilities, core.Images)
		}
		if can.Files {
			c.Capabilities = append(c.Capabilities, core.Files)
		}
	}
	return c
}

// Known is what the catalogue knows of a session's model. A catalogue that can't
// be read is empty; belay models reports the error.
func (m *Providers) Known(w *config.Workspace, s belay.Settings) (catalog.Model, bool) {
	if w == nil || s.Provider == scripted.DirectName || strings.HasPrefix(s.Provider, config.ScriptedPrefix) {
		return catalog.Model{}, false
	}
	v, err := w.Service(s.Provider)
	if err != nil {
		return catalog.Model{}, false
	}
	base, err := url.Parse(cmp.Or(s.BaseURL, v.Base))
	if err != nil {
		return catalog.Model{}, false
	}
	return m.entry(s.Provider, base.Hostname(), s.Model)
}

// entry is what the catalogue has of a model at a host, by the names that a person gave
// provider and model.
func (m *Providers) entry(provider, host, name string) (catalog.Model, bool) {
	if cat := m.catalog(); cat != nil {
		return cat.Lookup(name, catalog.Servers(provider, host)...)
	}
	return catalog.Model{}, false
}

// catalog is the catalogue, read once; nil: it can't be read.
func (m *Providers) catalog() *catalog.Catalog {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.looked {
		m.looked = true
		if cat, err := m.Env.Catalog(); err == nil {
			m.cat = cat
		}
	}
	return m.cat
}

// Turns answers what performing the effects of turns asks of the models.
type Turns struct {
	*Providers
	Entered func() *config.Workspace                                        // the workspace that was entered last, which is what answers count and cost by; nil: none was
	In      func(ctx context.Context, ws string) (*config.Workspace, error) // where a turn runs
}

// Provider is the client of a turn's model in a workspace.
func (t Turns) Provider(ctx context.Context, ws string, s belay.Settings) (model.Provider, error) {
	w, err := t.In(ctx, ws)
	if err != nil {
		return nil, err
	}
	p, err := t.Providers.Provider(w, s)
	if err != nil || t.Wrap == nil {
		return p, err
	}
	return t.Wrap(p), nil
}

// Counts is how the model of settings counts tokens.
func (t Turns) Counts(s belay.Settings) tokens.Profile { return t.Providers.Counts(t.Entered(), s) }

// Counts is how the model of settings counts tokens, as the catalogue knows.
func (m *Providers) Counts(w *config.Workspace, s belay.Settings) tokens.Profile {
	known, _ := m.Known(w, s)
	return tokens.Profile{Vocabulary: known.Vocabulary, Factor: known.Factor, Pictures: known.Pictures}
}

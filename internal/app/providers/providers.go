// Package providers makes the providers of models and knows the catalogue: what a model
// can do, costs and counts by. A provider is made once for each place where it is
// described, and the catalogue is read once.
package providers

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/anthropic"
	"github.com/belay-run/belay/internal/model/catalog"
	"github.com/belay-run/belay/internal/model/google"
	"github.com/belay-run/belay/internal/model/openai"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/secret"
)

// Providers finds providers by what settings say, each made once.
type Providers struct {
	Env     config.Env
	Now     func() time.Time
	Secrets *secret.Scrubber
	Cache   *lru.Cache                          // of encoded conversations; nil: they have one of their own
	Wrap    func(model.Provider) model.Provider // stands between the engine and a provider; nil is nothing

	mu       sync.Mutex
	made     map[string]model.Provider
	prefixes *wire.Prefixes
	gateway  *wire.Gateway
	cat      *catalog.Catalog
	looked   bool // for the catalogue
}

// Forget lets everything be made and read again.
func (m *Providers) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made, m.cat, m.looked = nil, nil, false
}

// Provider is the client that serves the model of some settings, by what a workspace calls
// providers. It is made once for each place where it is described.
func (m *Providers) Provider(w *config.Workspace, s belay.Settings) (model.Provider, error) {
	name := s.Provider + " " + s.BaseURL + " "
	if v, err := w.Service(s.Provider); err == nil {
		name += v.Where
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.made[name]; p != nil {
		return p, nil
	}
	p, err := m.makeProvider(w, s)
	if err != nil {
		return nil, err
	}
	if m.made == nil {
		m.made = map[string]model.Provider{}
	}
	m.made[name] = p
	return p, nil
}

func (m *Providers) makeProvider(w *config.Workspace, s belay.Settings) (model.Provider, error) {
	if s.Provider == scripted.DirectName {
		return scripted.Direct{}, nil
	}
	if file, ok := strings.CutPrefix(s.Provider, config.ScriptedPrefix); ok {
		script, err := scripted.Load(file)
		if err != nil {
			return nil, err
		}
		return scripted.New(script), nil
	}
	at, err := w.Endpoint(s)
	if err != nil {
		return nil, err
	}
	if m.prefixes == nil {
		if m.Cache == nil {
			m.Cache = lru.New(belay.DefaultCacheMB << 20)
		}
		m.prefixes = wire.NewPrefixes(m.Cache)
	}
	if m.gateway == nil {
		m.gateway = wire.NewGateway(m.Now)
	}
	e := wire.Endpoint{Name: at.Name, Base: at.URL, Key: at.Secret, Header: at.Header, First: at.Limits.First, Idle: at.Limits.Idle, Scrub: m.Secrets.String,
		// Whoever names a server of this machine or network means it: the name
		// comes from the person, never from a model or an untrusted workspace.
		Client: netdial.Client(netdial.Rules{Loopback: true, Private: true})}
	l := wire.Limits{Requests: at.Limits.Requests, Tokens: at.Limits.Tokens, Concurrent: at.Limits.Concurrent, Total: at.Limits.Total}
	p := m.gateway.Wrap(accountOf(s.Provider, e), adapter(at.Protocol, e, m.prefixes, m.able(at.Name, at.URL)), l)
	return &advised{Provider: p, at: at, env: m.Env, models: m.names}, nil
}

// adapter makes the client of a protocol.
func adapter(protocol string, e wire.Endpoint, p *wire.Prefixes, can able) model.Provider {
	switch protocol {
	case config.OpenAIResponses:
		return &openai.Responses{Service: wire.Service{Endpoint: e, Prefixes: p, Images: can.or(catalog.Images, openai.TakesImages), Files: can.or(catalog.Files, openai.TakesFiles)}}
	case config.Anthropic:
		return &anthropic.Messages{Service: wire.Service{Endpoint: e, Prefixes: p, Images: can.or(catalog.Images, anthropic.TakesImages), Files: can.or(catalog.Files, anthropic.TakesFiles)}}
	case config.Google:
		return &google.Gemini{Service: wire.Service{Endpoint: e, Prefixes: p, Images: can.or(catalog.Images, google.TakesImages), Files: can.or(catalog.Files, google.TakesFiles)}}
	}
	return &openai.Chat{Service: wire.Service{Endpoint: e, Prefixes: p, Images: can.or(catalog.Images, openai.TakesImages), Files: can.or(catalog.Files, openai.TakesFiles)}}
}

// accountOf is whose limits and failures count for an endpoint. The key is in it
// as a digest, and so are header fields, because some providers' keys are among
// them.
func accountOf(provider string, e wire.Endpoint) wire.Account {
	h := sha256.New()
	fmt.Fprintf(h, "%q", e.Key)
	for _, name := range slices.Sorted(maps.Keys(e.Header)) {
		fmt.Fprintf(h, " %q %q", name, e.Header[name])
	}
	return wire.Account{Provider: provider, Endpoint: e.Base.String(), Credential: [sha256.Size]byte(h.Sum(nil))}
}

// able reports whether the catalogue knows that a model has an ability.
type able func(model string, x catalog.Ability) bool

// or is an ability of a model by the catalogue, or by what an adapter knows.
func (c able) or(x catalog.Ability, known func(string) bool) func(string) bool {
	return func(name string) bool { return known != nil && known(name) || c(name, x) }
}

// names are the models of a provider that the catalogue knows.
func (m *Providers) names(provider string) (names []string) {
	if cat := m.catalog(); cat != nil {
		for _, known := range cat.Models(provider) {
			names = append(append(names, known.Name), known.Aliases...)
		}
	}
	return names
}

// able looks a model up in the catalogue, which is read on first use. A
// catalogue that can't be read is empty; belay models list reports the error.
func (m *Providers) able(provider string, base *url.URL) able {
	return func(name string, x catalog.Ability) bool {
		known, ok := m.entry(provider, base.Hostname(), name)
		return ok && known.Can(x)
	}
}

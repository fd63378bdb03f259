package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/catalog"
	"github.com/belay-run/belay/internal/model/direct"
	"github.com/belay-run/belay/internal/model/gateway"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/wire"
)

// scriptedPrefix begins the names of the providers that play a file.
const scriptedPrefix = "scripted:"

// prefixBudget bounds the encoded conversations kept in memory, in bytes.
const prefixBudget = 64 << 20

// models finds providers by what settings say, each made once.
type models struct {
	mu       sync.Mutex
	made     map[string]model.Provider
	prefixes *wire.Prefixes
	gateway  *gateway.Gateway
	cat      *catalog.Catalog
	looked   bool // for the catalogue
	entries  map[modelRef]entryOf
	said     map[string]bool // provider and host that the person named together, in this process

	offer
	offers map[string]offer // by workspace, of a server: as they were when the configuration was read
}

// offer are the providers that the files of a place describe.
type offer struct {
	services map[string]service // what files describe
	passed   map[string]string  // described in a file that doesn't count: where
	broken   error              // of reading those files
}

// describe reads the providers that the files of a place describe. Errors in
// them are reported when a provider is used.
func (a *app) describe(ctx context.Context, ws string) {
	a.models.mu.Lock()
	o, known := a.models.offers[ws]
	a.models.mu.Unlock()
	if !known {
		o = a.offered(ctx, ws)
	}
	a.models.mu.Lock()
	defer a.models.mu.Unlock()
	a.models.offer = o
	a.models.keep(a, ws, o)
}

// keep lets a server's turns have what a workspace offers. The lock is held.
func (m *models) keep(a *app, ws string, o offer) {
	if !a.held || o.broken != nil {
		return
	}
	if m.offers == nil {
		m.offers = map[string]offer{}
	}
	m.offers[ws] = o
}

// offeredTo is what the files describe that count for turns in a workspace: a
// process that runs one command has looked at its own.
func (a *app) offeredTo(ctx context.Context, ws string) offer {
	a.models.mu.Lock()
	o, known := a.models.offers[ws]
	if !a.held {
		o, known = a.models.offer, true
	}
	a.models.mu.Unlock()
	if known {
		return o
	}
	o = a.offered(ctx, ws)
	a.models.mu.Lock()
	defer a.models.mu.Unlock()
	a.models.keep(a, ws, o)
	return o
}

// offered reads what the files of a place describe.
func (a *app) offered(ctx context.Context, ws string) offer {
	files, err := a.configFiles(ctx, ws)
	o := offer{services: map[string]service{}, passed: map[string]string{}, broken: err}
	for _, f := range files {
		for _, p := range f.Providers {
			if f.counts {
				o.services[p.Name] = serviceOf(p)
			} else {
				o.passed[p.Name] = p.Where
			}
		}
	}
	return o
}

// service is the provider of a name.
func (a *app) service(name string) (service, error) {
	a.models.mu.Lock()
	defer a.models.mu.Unlock()
	return a.models.service(name)
}

func (o offer) service(name string) (service, error) {
	s, ok := o.services[name]
	i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == name })
	switch {
	case o.broken != nil:
		return s, o.broken
	case !ok && i >= 0:
		return service{vendor: vendors[i]}, nil
	case !ok && o.passed[name] != "":
		return s, belay.Errorf(belay.CodeNoProvider, "%s describes a provider %q, but the file isn't trusted", o.passed[name], name).WithHint("read the file, then: belay trust .belay/belay.yaml")
	case !ok:
		return s, belay.Errorf(belay.CodeNoProvider, "there is no provider %q; there are %s", name, strings.Join(o.names(), ", ")).
			WithHint("describe it under providers in belay.yaml, or --script FILE")
	case s.protocol == "":
		return s, belay.Errorf(belay.CodeBadConfig, "the provider %s has no protocol", name).At(s.where).WithHint("protocol: %s", openaiChat)
	case s.base == "":
		return s, belay.Errorf(belay.CodeBadConfig, "the provider %s has no base-url", name).At(s.where).WithHint("base-url: http://127.0.0.1:8080/v1")
	}
	return s, nil
}

// names lists the providers that settings can name.
func (o offer) names() []string {
	var names []string
	for _, v := range vendors {
		names = append(names, v.name)
	}
	for name := range o.services {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return append(names, scriptedPrefix+"FILE")
}

// provider is who serves the model of some settings, by what the workspace that
// was entered last calls providers.
func (a *app) provider(s belay.Settings) (model.Provider, error) {
	a.models.mu.Lock()
	defer a.models.mu.Unlock()
	return a.providerOf(a.models.offer, s)
}

// providerOf is the provider that an offer has under a name, made once for each
// place where it is described. The lock is held.
func (a *app) providerOf(o offer, s belay.Settings) (model.Provider, error) {
	name := s.Provider + " " + s.BaseURL + " " + o.services[s.Provider].where
	if p := a.models.made[name]; p != nil && o.broken == nil {
		return p, nil
	}
	p, err := a.makeProvider(o, s)
	if err != nil {
		return nil, err
	}
	if a.models.made == nil {
		a.models.made = map[string]model.Provider{}
	}
	a.models.made[name] = p
	return p, nil
}

// served is the provider of a turn in a workspace, as the engine gets it.
func (a *app) served(ctx context.Context, ws string, s belay.Settings) (model.Provider, error) {
	o := a.offeredTo(ctx, ws)
	a.models.mu.Lock()
	p, err := a.providerOf(o, s)
	a.models.mu.Unlock()
	if err != nil || a.wrapProvider == nil {
		return p, err
	}
	return a.wrapProvider(p), nil
}

func (a *app) makeProvider(o offer, s belay.Settings) (model.Provider, error) {
	if s.Provider == direct.Name {
		return direct.Provider{}, nil
	}
	if file, ok := strings.CutPrefix(s.Provider, scriptedPrefix); ok {
		script, err := scripted.Load(file)
		if err != nil {
			return nil, err
		}
		return scripted.New(script), nil
	}
	v, err := o.service(s.Provider)
	if err != nil {
		return nil, err
	}
	e, err := a.endpoint(v, s.BaseURL)
	if err != nil {
		return nil, err
	}
	if a.models.prefixes == nil {
		a.models.prefixes = wire.NewPrefixes(prefixBudget)
	}
	if a.models.gateway == nil {
		a.models.gateway = gateway.New(a.Now)
	}
	l := gateway.Limits{Requests: v.limits.Requests, Tokens: v.limits.Tokens, Concurrent: v.limits.Concurrent, Total: v.limits.Total}
	return a.models.gateway.Wrap(accountOf(s.Provider, e), protocolOf(v.protocol).make(e, a.models.prefixes, a.able(v.name, e.Base)), l), nil
}

// accountOf is whose limits and failures count for an endpoint. The key is in it
// as a digest, and so are header fields, because some providers' keys are among
// them.
func accountOf(provider string, e wire.Endpoint) gateway.Account {
	h := sha256.New()
	fmt.Fprintf(h, "%q", e.Key)
	for _, name := range slices.Sorted(maps.Keys(e.Header)) {
		fmt.Fprintf(h, " %q %q", name, e.Header[name])
	}
	return gateway.Account{Provider: provider, Endpoint: e.Base.String(), Credential: [sha256.Size]byte(h.Sum(nil))}
}

// able looks a model up in the catalogue, which is read on first use. A
// catalogue that can't be read is empty; belay models list reports the error.
func (a *app) able(provider string, base *url.URL) able {
	return func(name string, x catalog.Ability) bool {
		m, ok := a.models.entry(a, modelRef{provider, base.Hostname(), name})
		return ok && m.Can(x)
	}
}

// endpoint is where a provider is reached, with what is sent along: its key and
// header fields, if the host is one that they belong to.
func (a *app) endpoint(v service, baseURL string) (wire.Endpoint, error) {
	base, err := netdial.ParseBase(cmp.Or(baseURL, v.base))
	if err != nil {
		return wire.Endpoint{}, err
	}
	base.Path = protocolOf(v.protocol).versioned(base.Path)
	e := wire.Endpoint{Name: v.name, Base: base, First: v.limits.First, Idle: v.limits.Idle, Scrub: a.secrets().String,
		// Whoever names a server of this machine or network means it: the name
		// comes from the person, never from a model or an untrusted workspace.
		Client: netdial.Client(netdial.Rules{Loopback: true, Private: true})}
	if !a.models.belongs(v, base) {
		return e, nil
	}
	v.open = v.open || baseURL != "" && !sameOrigin(baseURL, v.base)
	if e.Key, err = a.keyOf(v); err != nil {
		return e, err
	}
	for _, h := range v.headers {
		value, err := a.headerOf(h)
		if err != nil {
			return e, err
		}
		if e.Header == nil {
			e.Header = http.Header{}
		}
		e.Header.Set(h.Name, value)
	}
	return e, nil
}

// belongs reports whether a provider's key may be sent to a host: the host is
// the one that its description names, or the user named the two together in this
// process, by flag, environment or their own file. A recorded session may come
// from another user, so the address in it gets no key.
func (m *models) belongs(v service, base *url.URL) bool {
	return sameOrigin(v.base, base.String()) || m.said[v.name+" "+origin(base)]
}

func sameOrigin(a, b string) bool {
	x, errX := netdial.ParseBase(a)
	y, errY := netdial.ParseBase(b)
	return errX == nil && errY == nil && origin(x) == origin(y)
}

func origin(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(u.Host) }

// says notes a base URL that the person named for a provider in this process.
func (a *app) says(provider, base string) {
	u, err := netdial.ParseBase(base)
	if err != nil {
		return
	}
	a.models.mu.Lock()
	defer a.models.mu.Unlock()
	if a.models.said == nil {
		a.models.said = map[string]bool{}
	}
	a.models.said[provider+" "+origin(u)] = true
}

// found are the providers for which there is something here: a key, which may be
// one of the kept secrets that are named, an address, a description.
func (a *app) found(kept []string) []finding {
	a.models.mu.Lock()
	defer a.models.mu.Unlock()
	var all []finding
	add := func(s service, what string) {
		try := "belay run --provider " + s.name + " --model NAME TEXT"
		if s.model != "" {
			try = "belay run --provider " + s.name + " TEXT"
		}
		all = append(all, finding{Name: "provider", State: "ok", What: s.name + ": " + what, Try: try})
	}
	seen := map[string]bool{"": true}
	for _, v := range vendors {
		s := service{vendor: v}
		variable, _ := a.keyVariable(s)
		if variable == "" {
			_, variable = v.address(a.Environ)
		}
		what := variable + " is set"
		if i := slices.IndexFunc(v.keys, func(k string) bool { return slices.Contains(kept, k) }); variable == "" && i >= 0 {
			variable, what = v.keys[i], "the secret "+v.keys[i]+" is kept"
		}
		if _, described := a.models.services[v.name]; !described && !seen[variable] {
			add(s, what)
		}
		seen[variable] = true
	}
	for _, name := range slices.Sorted(maps.Keys(a.models.services)) {
		s := a.models.services[name]
		what := s.where
		if s.key != (manifest.Reference{}) {
			what += fmt.Sprintf(", key %s", s.key)
		}
		if s.key.Kind == "env" && a.Getenv(s.key.Name) == "" {
			what += ", which is not set"
		}
		add(s, what)
	}
	return all
}

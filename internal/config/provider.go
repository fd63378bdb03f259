package config

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/netdial"
)

// Protocols are the ways to speak to models over HTTP, by name.
const (
	OpenAIResponses = "openai"
	OpenAIChat      = "openai-chat" // most servers imitate it
	Anthropic       = "anthropic"
	Google          = "google"
)

// Protocols lists those that a provider can name.
func Protocols() []string { return []string{OpenAIResponses, OpenAIChat, Anthropic, Google} }

// versioned is a base URL's path with the protocol's version at its end. One that
// is given without any gets it.
func versioned(protocol, path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return path
	}
	switch protocol {
	case Anthropic:
		return path + "/v1"
	case Google:
		return path + "/v1beta"
	}
	return path
}

// Names of providers that are no service: one runs the calls of a person, the
// others play a file.
const (
	Direct         = "direct"
	ScriptedPrefix = "scripted:"
)

// Service is a provider of models as it is used here: a vendor that is known by
// name, what a configuration file says of it, or all of it from a file.
type Service struct {
	Name     string
	Protocol string
	Base     string
	Model    string   // the default
	Keys     []string // variables that hold its key; the first that is set counts
	Bases    []string // variables that name its address
	Open     bool     // wants no key: it is a server of one's own
	Key      manifest.Reference
	Headers  []manifest.Header
	Limits   manifest.Limits
	Where    string // of the file's part; empty: there is none
}

// vendors are the providers that need no configuration. Addresses are those
// that the vendors' documents name, November 2026.
var vendors = []Service{
	{Name: "openai", Protocol: OpenAIResponses, Base: "https://api.openai.com/v1", Keys: []string{"OPENAI_API_KEY"}, Bases: []string{"OPENAI_BASE_URL"}},
	{Name: OpenAIChat, Protocol: OpenAIChat, Base: "https://api.openai.com/v1", Keys: []string{"OPENAI_API_KEY"}, Bases: []string{"OPENAI_BASE_URL"}},
	{Name: "anthropic", Protocol: Anthropic, Base: "https://api.anthropic.com/v1", Keys: []string{"ANTHROPIC_API_KEY"}, Bases: []string{"ANTHROPIC_BASE_URL"}},
	{Name: "google", Protocol: Google, Base: "https://generativelanguage.googleapis.com/v1beta", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Bases: []string{"GOOGLE_GEMINI_BASE_URL"}},
	{Name: "openrouter", Protocol: OpenAIChat, Base: "https://openrouter.ai/api/v1", Keys: []string{"OPENROUTER_API_KEY"}},
	{Name: "mistral", Protocol: OpenAIChat, Base: "https://api.mistral.ai/v1", Keys: []string{"MISTRAL_API_KEY"}},
	{Name: "deepseek", Protocol: OpenAIChat, Base: "https://api.deepseek.com/v1", Keys: []string{"DEEPSEEK_API_KEY"}},
	{Name: "groq", Protocol: OpenAIChat, Base: "https://api.groq.com/openai/v1", Keys: []string{"GROQ_API_KEY"}},
	{Name: "xai", Protocol: OpenAIChat, Base: "https://api.x.ai/v1", Keys: []string{"XAI_API_KEY"}},
	{Name: "together", Protocol: OpenAIChat, Base: "https://api.together.xyz/v1", Keys: []string{"TOGETHER_API_KEY"}},
	{Name: "fireworks", Protocol: OpenAIChat, Base: "https://api.fireworks.ai/inference/v1", Keys: []string{"FIREWORKS_API_KEY"}},
	{Name: "cerebras", Protocol: OpenAIChat, Base: "https://api.cerebras.ai/v1", Keys: []string{"CEREBRAS_API_KEY"}},
	{Name: "ollama", Protocol: OpenAIChat, Base: "http://127.0.0.1:11434/v1", Bases: []string{"OLLAMA_HOST"}, Open: true},
	{Name: "lmstudio", Protocol: OpenAIChat, Base: "http://127.0.0.1:1234/v1", Open: true},
	{Name: "llamacpp", Protocol: OpenAIChat, Base: "http://127.0.0.1:8080/v1", Keys: []string{"LLAMA_API_KEY"}, Open: true},
	{Name: "vllm", Protocol: OpenAIChat, Base: "http://127.0.0.1:8000/v1", Keys: []string{"VLLM_API_KEY"}, Open: true},
}

// Vendors are the providers that need no configuration.
func Vendors() []Service { return slices.Clone(vendors) }

// vendor is the vendor of a name.
func vendor(name string) (Service, bool) {
	i := slices.IndexFunc(vendors, func(v Service) bool { return v.Name == name })
	if i < 0 {
		return Service{}, false
	}
	return vendors[i], true
}

// ServiceOf puts what a file says of a provider over what is known of it.
func ServiceOf(p manifest.Provider) Service {
	s, known := vendor(p.Name)
	if !known {
		s = Service{Name: p.Name, Open: true}
	}
	s.Protocol, s.Base = cmp.Or(p.Protocol, s.Protocol), cmp.Or(p.BaseURL, s.Base)
	s.Open = s.Open || p.BaseURL != "" // a server of one's own may want none
	s.Model, s.Key, s.Headers, s.Limits, s.Where = p.Model, p.Key, p.Headers, p.Limits, p.Where
	return s
}

// String is the provider in one line, without its secrets.
func (s Service) String() string {
	words := []string{s.Protocol, s.Base}
	if s.Model != "" {
		words = append(words, "model "+s.Model)
	}
	switch {
	case s.Key != (manifest.Reference{}):
		words = append(words, "key "+s.Key.String())
	case len(s.Keys) > 0:
		words = append(words, "key env:"+s.Keys[0])
	}
	for _, h := range s.Headers {
		words = append(words, "header "+h.Name)
	}
	return strings.Join(words, ", ")
}

// providers are the providers that the files of a place describe.
type providers struct {
	services  map[string]Service
	untrusted map[string]string // described in a file that doesn't count: where
	broken    error             // of reading those files
}

func offered(files []file, err error) providers {
	p := providers{services: map[string]Service{}, untrusted: map[string]string{}, broken: err}
	for _, f := range files {
		for _, d := range f.Providers {
			if f.counts {
				p.services[d.Name] = ServiceOf(d)
			} else {
				p.untrusted[d.Name] = d.Where
			}
		}
	}
	return p
}

// ProvidersError is why the providers that files describe aren't known.
func (w *Workspace) ProvidersError() error { return w.providers.broken }

// Service is the provider of a name.
func (w *Workspace) Service(name string) (Service, error) { return w.providers.service(name) }

func (p providers) service(name string) (Service, error) {
	s, ok := p.services[name]
	v, known := vendor(name)
	switch {
	case p.broken != nil:
		return s, p.broken
	case !ok && known:
		return v, nil
	case !ok && p.untrusted[name] != "":
		return s, belay.Errorf(belay.CodeNoProvider, "%s describes a provider %q, but the file isn't trusted", p.untrusted[name], name).WithHint("read the file, then: belay trust .belay/belay.yaml")
	case !ok:
		return s, belay.Errorf(belay.CodeNoProvider, "there is no provider %q; there are %s", name, strings.Join(p.names(), ", ")).
			WithHint("describe it under providers in belay.yaml, or --script FILE")
	case s.Protocol == "":
		return s, belay.Errorf(belay.CodeBadConfig, "the provider %s has no protocol", name).At(s.Where).WithHint("protocol: %s", OpenAIChat)
	case s.Base == "":
		return s, belay.Errorf(belay.CodeBadConfig, "the provider %s has no base-url", name).At(s.Where).WithHint("base-url: http://127.0.0.1:8080/v1")
	}
	return s, nil
}

// names lists the providers that settings can name.
func (p providers) names() []string {
	var names []string
	for _, v := range vendors {
		names = append(names, v.Name)
	}
	for name := range p.services {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return append(names, ScriptedPrefix+"FILE")
}

// check returns the first mistake in what files say of providers.
func (p providers) check() error {
	if p.broken != nil {
		return p.broken
	}
	for _, name := range slices.Sorted(maps.Keys(p.services)) {
		s, err := p.service(name)
		if err == nil {
			_, err = netdial.ParseBase(s.Base)
		}
		if err != nil {
			return at(err, s.Where)
		}
	}
	return nil
}

// Endpoint is where a provider is reached, with what is sent along.
type Endpoint struct {
	Service
	URL    *url.URL
	Secret string // the key; empty: none is sent
	Header http.Header
}

// Endpoint is where the provider of some settings is reached, with its key and
// header fields if the host is one that they belong to.
func (w *Workspace) Endpoint(s belay.Settings) (Endpoint, error) {
	v, err := w.Service(s.Provider)
	if err != nil {
		return Endpoint{}, err
	}
	return w.in.endpoint(v, s.BaseURL)
}

// at is where a provider is reached; baseURL is the address of its own that it was given,
// perhaps none.
func (s Service) at(baseURL string) (*url.URL, error) {
	base, err := netdial.ParseBase(cmp.Or(baseURL, s.Base))
	if err == nil {
		base.Path = versioned(s.Protocol, base.Path)
	}
	return base, err
}

// Address is where the provider of some settings is reached; empty: it is no server's, or
// can't be reached.
func (w *Workspace) Address(s belay.Settings) string {
	v, err := w.Service(s.Provider)
	if err != nil {
		return ""
	}
	at, err := v.at(s.BaseURL)
	if err != nil {
		return ""
	}
	return at.String()
}

func (in Input) endpoint(v Service, baseURL string) (Endpoint, error) {
	base, err := v.at(baseURL)
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{Service: v, URL: base}
	if !in.belongs(v, base) {
		return e, nil
	}
	v.Open = v.Open || baseURL != "" && !sameOrigin(baseURL, v.Base)
	if e.Secret, err = in.keyOf(v); err != nil {
		return e, err
	}
	for _, h := range v.Headers {
		value, err := in.headerOf(h)
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
func (in Input) belongs(v Service, base *url.URL) bool {
	named, _ := in.address(v)
	return sameOrigin(v.Base, base.String()) || sameOrigin(named, base.String()) || in.Hosts.has(v.Name, base)
}

// Of are the settings of another model that is asked under some: its provider is reached
// where it is under them, else where the environment or its description says. What serves
// one vendor's models by another protocol is reached where that vendor is.
func (w *Workspace) Of(s belay.Settings, provider, model string) belay.Settings {
	to := belay.Settings{Provider: provider, Model: model}
	v, err := w.Service(provider)
	own, ownErr := w.Service(s.Provider)
	switch {
	case provider == s.Provider:
		to.BaseURL = s.BaseURL
	case err != nil: // it can't be asked at all
	case ownErr == nil && s.BaseURL != "" && len(v.Bases) > 0 && slices.Equal(v.Bases, own.Bases):
		if base, err := netdial.ParseBase(s.BaseURL); err == nil && w.in.belongs(own, base) {
			w.in.Hosts.name(v.Name, s.BaseURL)
		}
		to.BaseURL = s.BaseURL
	default:
		to.BaseURL, _ = w.in.address(v)
	}
	return to
}

// Hosts are the hosts that a person named together with a provider. The zero value
// is ready, and may be used at the same time by several.
type Hosts struct {
	mu    sync.Mutex
	named map[string]bool // provider and origin
}

// name notes a base URL that a person named for a provider.
func (h *Hosts) name(provider, base string) {
	u, err := netdial.ParseBase(base)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.named == nil {
		h.named = map[string]bool{}
	}
	h.named[provider+" "+origin(u)] = true
}

func (h *Hosts) has(provider string, base *url.URL) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.named[provider+" "+origin(base)]
}

func sameOrigin(a, b string) bool {
	x, errX := netdial.ParseBase(a)
	y, errY := netdial.ParseBase(b)
	return errX == nil && errY == nil && origin(x) == origin(y)
}

func origin(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(u.Host) }

// address is a provider's address from the environment, and the variable that
// sets it.
func (e Env) address(s Service) (base, from string) {
	for _, name := range s.Bases {
		if v := e.Get(name); v != "" {
			if name == "OLLAMA_HOST" {
				v = ollamaBase(v)
			}
			return v, name
		}
	}
	return "", ""
}

// LocalServers are the vendors' servers of one's own that are on this machine.
func (e Env) LocalServers() (all []Service) {
	for _, v := range vendors {
		if named, _ := e.address(v); named != "" {
			v.Base = named
		}
		if base, err := netdial.ParseBase(v.Base); v.Open && err == nil && isLoopback(base.Hostname()) {
			all = append(all, v)
		}
	}
	return all
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ollamaBase is the base URL that OLLAMA_HOST means. The variable also tells the
// server where to listen, so it may be a host, a port or an unspecified address
// such as 0.0.0.0. Source: github.com/ollama/ollama, envconfig, November 2026.
func ollamaBase(s string) string {
	s = strings.Trim(strings.TrimSpace(s), `"'`)
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		scheme, rest = "http", s
	}
	host, path, _ := strings.Cut(rest, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), map[string]string{"http": "80", "https": "443"}[scheme]
		if !found {
			port = "11434"
		}
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port), Path: strings.TrimRight("/"+path, "/")}
	return u.String() + "/v1"
}

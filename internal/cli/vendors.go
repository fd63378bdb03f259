package cli

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/anthropic"
	"github.com/belay-run/belay/internal/model/catalog"
	"github.com/belay-run/belay/internal/model/google"
	"github.com/belay-run/belay/internal/model/openai"
	"github.com/belay-run/belay/internal/model/wire"
)

// protocol is a way to speak to models over HTTP.
type protocol struct {
	name string
	path string // the version that ends a base URL; one that is given without any gets it
	make func(e wire.Endpoint, p *wire.Prefixes, can able) model.Provider
}

// able reports whether the catalogue knows that a model has an ability.
type able func(model string, x catalog.Ability) bool

// protocols are those that this build speaks.
var protocols = []protocol{
	{openaiResponses, "", func(e wire.Endpoint, p *wire.Prefixes, can able) model.Provider {
		return &openai.Responses{Endpoint: e, Prefixes: p, Images: can.or(catalog.Images, openai.TakesImages), Files: can.or(catalog.Files, openai.TakesFiles)}
	}},
	{openaiChat, "", func(e wire.Endpoint, p *wire.Prefixes, can able) model.Provider {
		return &openai.Chat{Endpoint: e, Prefixes: p, Images: can.or(catalog.Images, openai.TakesImages), Files: can.or(catalog.Files, openai.TakesFiles)}
	}},
	{"anthropic", "/v1", func(e wire.Endpoint, p *wire.Prefixes, can able) model.Provider {
		return &anthropic.Messages{Endpoint: e, Prefixes: p, Images: can.or(catalog.Images, anthropic.TakesImages), Files: can.or(catalog.Files, anthropic.TakesFiles)}
	}},
	{"google", "/v1beta", func(e wire.Endpoint, p *wire.Prefixes, can able) model.Provider {
		return &google.Gemini{Endpoint: e, Prefixes: p, Images: can.or(catalog.Images, google.TakesImages), Files: can.or(catalog.Files, google.TakesFiles)}
	}},
}

func protocolOf(name string) protocol {
	return protocols[slices.IndexFunc(protocols, func(p protocol) bool { return p.name == name })]
}

// versioned is a base URL's path with the protocol's version at its end.
func (p protocol) versioned(path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return path
	}
	return path + p.path
}

// or is an ability of a model by the catalogue, or by what an adapter knows.
func (c able) or(x catalog.Ability, known func(string) bool) func(string) bool {
	return func(name string) bool { return known != nil && known(name) || c(name, x) }
}

// Protocols by name.
const (
	openaiResponses = "openai"
	openaiChat      = "openai-chat" // most servers imitate it
)

// vendor is a provider that is known by name: its API, and the default places of
// its address and key.
type vendor struct {
	name     string
	protocol string
	base     string
	keys     []string // variables that hold its key; the first that is set counts
	bases    []string // variables that name its address
	open     bool     // wants no key: it is a server of one's own
}

// vendors are the providers that need no configuration. Addresses are those
// that the vendors' documents name, November 2026.
var vendors = []vendor{
	{name: "openai", protocol: openaiResponses, base: "https://api.openai.com/v1", keys: []string{"OPENAI_API_KEY"}, bases: []string{"OPENAI_BASE_URL"}},
	{name: openaiChat, protocol: openaiChat, base: "https://api.openai.com/v1", keys: []string{"OPENAI_API_KEY"}, bases: []string{"OPENAI_BASE_URL"}},
	{name: "anthropic", protocol: "anthropic", base: "https://api.anthropic.com/v1", keys: []string{"ANTHROPIC_API_KEY"}, bases: []string{"ANTHROPIC_BASE_URL"}},
	{name: "google", protocol: "google", base: "https://generativelanguage.googleapis.com/v1beta", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, bases: []string{"GOOGLE_GEMINI_BASE_URL"}},
	{name: "openrouter", protocol: openaiChat, base: "https://openrouter.ai/api/v1", keys: []string{"OPENROUTER_API_KEY"}},
	{name: "mistral", protocol: openaiChat, base: "https://api.mistral.ai/v1", keys: []string{"MISTRAL_API_KEY"}},
	{name: "deepseek", protocol: openaiChat, base: "https://api.deepseek.com/v1", keys: []string{"DEEPSEEK_API_KEY"}},
	{name: "groq", protocol: openaiChat, base: "https://api.groq.com/openai/v1", keys: []string{"GROQ_API_KEY"}},
	{name: "xai", protocol: openaiChat, base: "https://api.x.ai/v1", keys: []string{"XAI_API_KEY"}},
	{name: "together", protocol: openaiChat, base: "https://api.together.xyz/v1", keys: []string{"TOGETHER_API_KEY"}},
	{name: "fireworks", protocol: openaiChat, base: "https://api.fireworks.ai/inference/v1", keys: []string{"FIREWORKS_API_KEY"}},
	{name: "cerebras", protocol: openaiChat, base: "https://api.cerebras.ai/v1", keys: []string{"CEREBRAS_API_KEY"}},
	{name: "ollama", protocol: openaiChat, base: "http://127.0.0.1:11434/v1", bases: []string{"OLLAMA_HOST"}, open: true},
	{name: "lmstudio", protocol: openaiChat, base: "http://127.0.0.1:1234/v1", open: true},
	{name: "llamacpp", protocol: openaiChat, base: "http://127.0.0.1:8080/v1", keys: []string{"LLAMA_API_KEY"}, open: true},
	{name: "vllm", protocol: openaiChat, base: "http://127.0.0.1:8000/v1", keys: []string{"VLLM_API_KEY"}, open: true},
}

// service is a provider as it is used here: a vendor, what a configuration
// file says of it, or all of it from a file.
type service struct {
	vendor
	model   string // the default
	key     manifest.Reference
	headers []manifest.Header
	limits  manifest.Limits
	where   string // of the file's part; empty: there is none
}

// serviceOf puts what a file says of a provider over what is known of it.
func serviceOf(p manifest.Provider) service {
	s := service{vendor: vendor{name: p.Name, open: true}}
	if i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == p.Name }); i >= 0 {
		s.vendor = vendors[i]
	}
	s.protocol, s.base = cmp.Or(p.Protocol, s.protocol), cmp.Or(p.BaseURL, s.base)
	s.open = s.open || p.BaseURL != "" // a server of one's own may want none
	s.model, s.key, s.headers, s.limits, s.where = p.Model, p.Key, p.Headers, p.Limits, p.Where
	return s
}

// address is a provider's address from the environment, and the variable that
// sets it.
func (v vendor) address(env []string) (base, from string) {
	for _, name := range v.bases {
		if s := term.Lookup(env, name); s != "" {
			if name == "OLLAMA_HOST" {
				s = ollamaBase(s)
			}
			return s, name
		}
	}
	return "", ""
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

package catalog

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// hosts are the servers whose models the catalogue has, or may be given.
var hosts = map[string]string{
	"api.openai.com":                    "openai",
	"api.anthropic.com":                 "anthropic",
	"generativelanguage.googleapis.com": "google",
	"openrouter.ai":                     "openrouter",
}

// Server is the name under which the catalogue knows who serves models at a
// host, without its port: a vendor, "local" for this machine, else the host
// itself. Prices belong to a server, not to a protocol.
func Server(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if v, ok := hosts[host]; ok {
		return v
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host == "localhost" || err == nil && addr.Unmap().IsLoopback() {
		return "local"
	}
	return host
}

// Servers are the names by which a file may mean who serves models: the name that
// a person gave a provider, and that of the Server. A provider that has a vendor's
// name and is somewhere else isn't that vendor.
func Servers(provider, host string) []string {
	server := Server(host)
	for _, vendor := range hosts {
		if strings.EqualFold(vendor, provider) {
			return []string{server}
		}
	}
	return []string{strings.ToLower(provider), server}
}

// Lookup finds a model by the name that a request gives it and by who serves it
// (see Servers). At each server in turn, and then at all providers, it takes the
// model that has
//
//  1. this name,
//  2. this name among its aliases,
//  3. the longest name or alias that is this one without the date or version at
//     its end (claude-haiku-4-5-20251001, gpt-5-2025-08-07, gemini-2.5-flash-001).
//
// A name may have a path before it (models/gemini-2.5-pro, or on another server
// anthropic/claude-sonnet-5-5, where it names the provider, or who published the
// weights). Capitals don't matter. What another server serves has no prices here,
// for it sets its own.
func (c *Catalog) Lookup(name string, servers ...string) (Model, bool) {
	name = strings.ToLower(name)
	path, bare := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		path, bare = name[:i], name[i+1:]
	}
	for _, server := range servers {
		server = strings.ToLower(server)
		m := c.find(server, name)
		if own := path == "" || path == "models" || path == server; m == nil && own {
			m = c.find(server, bare)
		}
		if m != nil {
			return *m, true
		}
	}
	vendor := path[strings.LastIndexByte(path, '/')+1:]
	providers := c.providers()
	for _, p := range providers {
		if m := c.find(p, bare); m != nil && (p == vendor || p == Open || !slices.Contains(providers, vendor)) {
			return m.elsewhere(), true
		}
	}
	return Model{}, false
}

// elsewhere is a model as a server serves it that isn't its provider.
func (m *Model) elsewhere() Model {
	out := *m
	out.Prices = nil
	out.From = maps.Clone(m.From)
	delete(out.From, "prices")
	return out
}

// find is the model of one provider with a name, in small letters.
func (c *Catalog) find(provider, name string) *Model {
	if m := c.named(provider, name); m != nil {
		return m
	}
	for end := len(name) - 1; end > 0; end-- {
		if (name[end] == '-' || name[end] == '@') && dated(name[end+1:]) {
			if m := c.named(provider, name[:end]); m != nil {
				return m
			}
		}
	}
	return nil
}

func (c *Catalog) named(provider, name string) *Model {
	for i := range c.models {
		if m := &c.models[i]; m.Provider == provider && strings.EqualFold(m.Name, name) {
			return m
		}
	}
	for i := range c.models {
		m := &c.models[i]
		if m.Provider == provider && slices.ContainsFunc(m.Aliases, func(a string) bool { return strings.EqualFold(a, name) }) {
			return m
		}
	}
	return nil
}

// dated reports whether the end of a name is a date or version as vendors write
// them: 20251001, 2025-08-07, 001, latest, preview-05-06, preview-05-2026.
func dated(s string) bool {
	if s == "latest" {
		return true
	}
	s, preview := strings.CutPrefix(s, "preview-")
	shape := []byte(s)
	for i, b := range shape {
		if b >= '0' && b <= '9' {
			shape[i] = '9'
		}
	}
	switch string(shape) {
	case "99-99", "99-9999":
		return preview
	case "999", "99999999", "9999-99-99":
		return !preview
	}
	return false
}

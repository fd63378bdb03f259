package config

import (
	"cmp"
	"net/url"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/netdial"
)

// searchEngines are those that web-search can name; the last one is none.
var searchEngines = []string{"brave", "serper", "tavily", "searxng", "native", "off"}

// Web is what the tools that reach the web are made by.
type Web struct {
	Reach  string // public, loopback, private; empty is public
	Robots bool   // robots.txt is obeyed
	Engine string // of searches; empty: there is none

	in   Input
	base *url.URL
	key  manifest.Reference
}

func (w *Web) engine(name string) {
	if w.Engine = name; name == "off" {
		w.Engine = ""
	}
}

// own checks what only the files of the person and the machine set.
func (w *Workspace) own() (*parser, error) {
	l, err := w.Layers(nil)
	if err != nil {
		return nil, err
	}
	p := &parser{w: w, in: w.in, set: map[string]given{}}
	for _, s := range settings {
		if v, ok := l.set[s.Name]; ok && s.Own {
			p.set[s.Name] = v
		}
	}
	p.all()
	return p, p.err
}

// CacheMB is how much memory the process may use for what can be made again.
func (w *Workspace) CacheMB() (int, error) {
	p, err := w.own()
	if err != nil {
		return 0, err
	}
	return cmp.Or(p.out.CacheMB, belay.DefaultCacheMB), nil
}

// How a conversation whose window has no focus tells that it waits or has ended.
const (
	NotifyAuto = "auto" // a bell and a notification
	NotifyBell = "bell"
	NotifyOff  = "off"
)

// Notify is how a conversation tells that it waits or has ended.
func (w *Workspace) Notify() (string, error) {
	p, err := w.own()
	if err != nil {
		return "", err
	}
	return cmp.Or(p.out.Notify, NotifyAuto), nil
}

// Web is what the files of the person and the machine say of the web tools.
func (w *Workspace) Web() (Web, error) {
	p, err := w.own()
	if err != nil {
		return Web{}, err
	}
	p.out.Web.in = w.in
	if p.row = setting("web-search-url"); p.out.Web.Engine == "searxng" && p.out.Web.base == nil {
		p.bad(belay.CodeBadConfig, "web-search-url: http://127.0.0.1:8888", "searxng is a server of one's own: its address is missing")
	}
	return p.out.Web, p.err
}

// Base is where the engine is reached; nil: at its vendor's.
func (w Web) Base() *url.URL { return w.base }

// keyNames are variables or kept secrets that hold an engine's key.
func (w Web) keyNames() []string {
	switch w.Engine {
	case "brave":
		return []string{"BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"}
	case "serper":
		return []string{"SERPER_API_KEY"}
	case "tavily":
		return []string{"TAVILY_API_KEY"}
	}
	return nil
}

// Key finds the engine's key; empty: it wants none.
func (w Web) Key() (string, error) {
	return w.in.keyOf(Service{Name: "web-search " + w.Engine, Key: w.key, Keys: w.keyNames()})
}

func (w Web) keyPlace() string {
	switch names := w.keyNames(); {
	case w.key != (manifest.Reference{}):
		return w.key.String()
	case len(names) > 0:
		return "env:" + names[0]
	}
	return ""
}

func (w Web) baseText() string {
	if w.base == nil {
		return ""
	}
	return w.base.String()
}

// reference is the place of a secret.
func (p *parser) reference(v given) manifest.Reference {
	r, ok := manifest.ParseReference(v.text)
	if !ok { // it may be the secret, so it isn't repeated
		p.bad(belay.CodeBadConfig, p.row.Name+": env:NAME, file:PATH, or secret:NAME after `belay secret set NAME`", "a key must not be written in this file: name the place where it is")
	}
	r.Where = v.from
	return r
}

// base is the address of a server.
func (p *parser) base(v given) *url.URL {
	u, err := netdial.ParseBase(v.text)
	if err != nil {
		p.fail(err)
	}
	return u
}

// word is one of two, by whether something is so.
func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

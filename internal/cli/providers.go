package cli

import (
	"cmp"
	"net/url"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/dial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/direct"
	"github.com/belay-run/belay/internal/model/openai"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/wire"
)

// scriptedPrefix begins the names of the providers that play a file.
const scriptedPrefix = "scripted:"

// openaiChat is the provider that speaks Chat Completions.
const openaiChat = "openai-chat"

// openaiBase is where it is reached when nobody says otherwise.
const openaiBase = "https://api.openai.com/v1"

// prefixBudget bounds the encoded conversations kept in memory, in bytes.
const prefixBudget = 64 << 20

// models finds providers by what settings say, each made once.
type models struct {
	mu       sync.Mutex
	made     map[string]model.Provider
	prefixes *wire.Prefixes
	said     map[string]bool // hosts that the person named for a key, in this process
}

// provider is who serves the model of some settings.
func (a *app) provider(s belay.Settings) (model.Provider, error) {
	a.models.mu.Lock()
	defer a.models.mu.Unlock()
	name := s.Provider + " " + s.BaseURL
	if p := a.models.made[name]; p != nil {
		return p, nil
	}
	p, err := a.makeProvider(s)
	if err != nil {
		return nil, err
	}
	if a.models.made == nil {
		a.models.made = map[string]model.Provider{}
	}
	a.models.made[name] = p
	return p, nil
}

func (a *app) makeProvider(s belay.Settings) (model.Provider, error) {
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
	if s.Provider != openaiChat {
		return nil, belay.Errorf(belay.CodeNoProvider, "this build has no provider %q", s.Provider).WithHint("--script FILE, or --provider %s", openaiChat)
	}
	base, err := wire.ParseBase(cmp.Or(s.BaseURL, openaiBase))
	if err != nil {
		return nil, err
	}
	if a.models.prefixes == nil {
		a.models.prefixes = wire.NewPrefixes(prefixBudget)
	}
	return &openai.Chat{
		// Whoever names a server of this machine or network means it: the name
		// comes from the person, never from a model or a workspace.
		Endpoint: wire.Endpoint{Name: openaiChat, Base: base, Key: a.keyFor(base), Client: dial.Client(dial.Rules{Loopback: true, Private: true})},
		Prefixes: a.models.prefixes,
		Images:   openai.TakesImages,
	}, nil
}

// keyFor is the key for a host: the one of the environment, if the person named
// the host in this process, by flag, environment or an own file, or it is the
// vendor's. A recorded session may come from somebody else, so the address in
// it gets no key.
func (a *app) keyFor(base *url.URL) string {
	vendor, _ := url.Parse(openaiBase)
	if base.Host == vendor.Host && base.Scheme == vendor.Scheme || a.models.said[base.Scheme+"://"+base.Host] {
		return a.env("OPENAI_API_KEY")
	}
	return ""
}

// says notes a base URL that the person named in this process.
func (a *app) says(base string) {
	u, err := wire.ParseBase(base)
	if err != nil {
		return
	}
	a.models.mu.Lock()
	defer a.models.mu.Unlock()
	if a.models.said == nil {
		a.models.said = map[string]bool{}
	}
	a.models.said[u.Scheme+"://"+u.Host] = true
}

package providers

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/catalog"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/secret"
)

// TestAModelHasThePricesOfItsServer: the same name at another host has none.
func TestAModelHasThePricesOfItsServer(t *testing.T) {
	cat, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	m := &Providers{cat: cat, looked: true}
	if got, ok := m.entry("openai", "api.openai.com", "gpt-5-2025-08-07"); !ok || got.Prices == nil {
		t.Errorf("at its own server: %+v, %t", got, ok)
	}
	if got, ok := m.entry("openai", "elsewhere.example", "gpt-5-2025-08-07"); !ok || got.Prices != nil {
		t.Errorf("it has prices of another server: %+v, %t", got, ok)
	}
}

// TestAFileSaysWhatAModelCanDoAndCosts: for the server that serves it.
func TestAFileSaysWhatAModelCanDoAndCosts(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "belay"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "models:\n  - {provider: local, model: house, context: 32768, abilities: [images], usd_per_million: {input: 1, output: 2}}\n"
	if err := os.WriteFile(filepath.Join(dir, "belay", config.Models), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &Providers{Env: config.Env{Vars: []string{"XDG_CONFIG_HOME=" + dir}}, Now: time.Now, Secrets: secret.FromEnviron(nil)}
	w := config.Resolve(t.Context(), config.Input{Env: m.Env, Now: m.Now, Secrets: m.Secrets, Hosts: new(config.Hosts)})
	for name, want := range map[string]bool{"house": true, "another": false, "gpt-5": true} {
		p, err := m.Provider(w, belay.Settings{Provider: "ollama", Model: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := model.AbilitiesOf(p, name).Images; got != want {
			t.Errorf("%s takes images: %v, want %v", name, got, want)
		}
		if c := m.Routes(w, belay.Settings{Provider: "ollama", Model: name})[0]; (c.Prices != nil) != (name == "house") || (c.Context == 32768) != (name == "house") {
			t.Errorf("%s has the prices %v and the context %d", name, c.Prices, c.Context)
		}
	}
}

// TestAnAccountIsAPlaceAndAKey: what tells two keys, places or header fields apart
// tells accounts apart, and nothing of a key can be read in one.
// Guarantee: M21.
func TestAnAccountIsAPlaceAndAKey(t *testing.T) {
	at := func(base, key string, header http.Header) wire.Account {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		return accountOf("corp", wire.Endpoint{Base: u, Key: key, Header: header})
	}
	usual := at("https://one.example.org/v1", "sk-secret", http.Header{"X-Org": {"a", "b"}})
	if usual != at("https://one.example.org/v1", "sk-secret", http.Header{"X-Org": {"a", "b"}}) {
		t.Error("the same place and key are two accounts")
	}
	for name, other := range map[string]wire.Account{
		"place":  at("https://two.example.org/v1", "sk-secret", http.Header{"X-Org": {"a", "b"}}),
		"path":   at("https://one.example.org/v2", "sk-secret", http.Header{"X-Org": {"a", "b"}}),
		"key":    at("https://one.example.org/v1", "sk-other", http.Header{"X-Org": {"a", "b"}}),
		"no key": at("https://one.example.org/v1", "", http.Header{"X-Org": {"a", "b"}}),
		"header": at("https://one.example.org/v1", "sk-secret", http.Header{"X-Org": {"a\" \"b"}}),
		"none":   at("https://one.example.org/v1", "sk-secret", nil),
	} {
		if other == usual {
			t.Errorf("%s: the same account", name)
		}
	}
	if said := fmt.Sprintf("%+v %q", usual, usual.Credential); strings.Contains(said, "secret") {
		t.Errorf("an account shows its key: %s", said)
	}
}

// TestSettingsKnowTheProviderOfAPerson: settings name it without knowing its package.
func TestSettingsKnowTheProviderOfAPerson(t *testing.T) {
	if config.Direct != scripted.DirectName {
		t.Errorf("settings call it %q, and its package %q", config.Direct, scripted.DirectName)
	}
}

package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/catalog"
	"github.com/belay-run/belay/internal/model/gateway"
	"github.com/belay-run/belay/internal/model/wire"
)

// TestVendorsAreWhole: each vendor has a protocol that this build speaks and an
// address, and says where its key is unless it wants none.
func TestVendorsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range vendors {
		if !slices.ContainsFunc(protocols, func(p protocol) bool { return p.name == v.protocol }) {
			t.Errorf("%s: nobody speaks %q", v.name, v.protocol)
		}
		u, err := netdial.ParseBase(v.base)
		if err != nil || u.Scheme != "https" && !v.open {
			t.Errorf("%s: %q %v", v.name, v.base, err)
		}
		if !v.open && len(v.keys) == 0 || seen[v.name] || strings.ContainsAny(v.name, ": ") {
			t.Errorf("%+v", v)
		}
		seen[v.name] = true
	}
}

// TestAModelIsLookedUpOnce: each request and each answer asks the catalogue, so
// what it said is kept, for this name of the model at this host alone.
func TestAModelIsLookedUpOnce(t *testing.T) {
	cat, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	a := &app{}
	a.models.cat, a.models.looked = cat, true
	here, there := modelRef{"openai", "api.openai.com", "gpt-5-2025-08-07"}, modelRef{"openai", "elsewhere.example", "gpt-5-2025-08-07"}
	for range 2 {
		m, ok := a.models.entry(a, here)
		if !ok || m.Prices == nil {
			t.Errorf("%+v: %+v, %t", here, m, ok)
		}
		if m, ok := a.models.entry(a, there); !ok || m.Prices != nil {
			t.Errorf("%+v has prices of another server: %+v, %t", there, m, ok)
		}
	}
	a.models.cat = &catalog.Catalog{} // whoever looks finds nothing
	if _, ok := a.models.entry(a, here); !ok {
		t.Error("it was looked up again")
	}
	for i := range 3 * maxEntries {
		a.models.entry(a, modelRef{"openai", "api.openai.com", strconv.Itoa(i)})
	}
	if n := len(a.models.entries); n > maxEntries {
		t.Errorf("%d models are remembered", n)
	}
}

// TestEachVendorIsReachedWithItsOwnKey: with the keys of all vendors in the
// environment, each host gets its own.
// Guarantee: X9.
func TestEachVendorIsReachedWithItsOwnKey(t *testing.T) {
	a := &app{}
	for _, v := range vendors {
		for _, name := range v.keys {
			a.Environ = append(a.Environ, name+"=sk-of-"+name)
		}
	}
	for _, v := range vendors {
		e, err := a.endpoint(service{vendor: v}, "")
		want := ""
		if len(v.keys) > 0 {
			want = "sk-of-" + v.keys[0]
		}
		if err != nil || e.Key != want || e.Base.String() != v.base {
			t.Errorf("%s: key %q for %s, %v", v.name, e.Key, e.Base, err)
		}
		e, err = a.endpoint(service{vendor: v}, "https://elsewhere.example/v1")
		if err != nil || e.Key != "" {
			t.Errorf("%s: key %q for %s, %v", v.name, e.Key, e.Base, err)
		}
	}
}

// TestAKeyStaysWithItsHost: it goes to the host of its provider, and to another
// one only if the person named that for this provider in this process.
// Guarantee: X9.
func TestAKeyStaysWithItsHost(t *testing.T) {
	v := serviceOf(manifest.Provider{Name: "work", Protocol: openaiChat, BaseURL: "https://work.example/v1", Key: manifest.Reference{Kind: "env", Name: "K"},
		Headers: []manifest.Header{{Name: "X-Gate", Ref: manifest.Reference{Kind: "env", Name: "G"}}}})
	for base, want := range map[string]bool{
		"":                               true,
		"https://work.example/other":     true,
		"https://WORK.example/v1":        true,
		"http://work.example/v1":         false,
		"https://work.example:8443/v1":   false,
		"https://work.example.evil/v1":   false,
		"https://said.example/v1":        true,
		"https://said.example.evil/v1":   false,
		"https://said-by-other.example/": false,
	} {
		a := &app{Sys: Sys{Env: term.Env{Environ: []string{"K=sk-of-work", "G=gate-of-work"}}}}
		a.says("work", "https://said.example")
		a.says("other", "https://said-by-other.example")
		e, err := a.endpoint(v, base)
		if err != nil || (e.Key != "") != want || (e.Header.Get("X-Gate") != "") != want {
			t.Errorf("%s: key %q, header %q, %v", base, e.Key, e.Header, err)
		}
		if got := a.secrets().String("sk-of-work gate-of-work"); want && strings.Contains(got, "of-work") {
			t.Errorf("%s: what was loaded isn't hidden: %s", base, got)
		}
	}
}

func TestOllamaHost(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1":                 "http://127.0.0.1:11434/v1",
		"0.0.0.0":                   "http://127.0.0.1:11434/v1",
		"0.0.0.0:8000":              "http://127.0.0.1:8000/v1",
		":8000":                     "http://127.0.0.1:8000/v1",
		"gpu":                       "http://gpu:11434/v1",
		"gpu:1":                     "http://gpu:1/v1",
		"http://gpu":                "http://gpu:80/v1",
		"https://gpu.example":       "https://gpu.example:443/v1",
		"https://gpu.example:1/own": "https://gpu.example:1/own/v1",
		"[::1]":                     "http://[::1]:11434/v1",
		"[::]:9":                    "http://127.0.0.1:9/v1",
		` "gpu" `:                   "http://gpu:11434/v1",
	} {
		got := ollamaBase(in)
		if u, err := url.Parse(got); got != want || err != nil || u.Host == "" {
			t.Errorf("%q is %q, want %q (%v)", in, got, want, err)
		}
	}
}

// TestWhatIsNoKeyIsRefused: an error about a key doesn't say it.
func TestWhatIsNoKeyIsRefused(t *testing.T) {
	for _, value := range []string{"two\nlines-of-it", "with\ttab-in-it", "umlaut-ä-ä-ä"} {
		a := &app{Sys: Sys{Env: term.Env{Environ: []string{"K=" + value}}}}
		_, err := a.resolve(manifest.Reference{Kind: "env", Name: "K", Where: "f:1:1"})
		if belay.CodeOf(err) != belay.CodeNoKey || strings.Contains(err.Error(), value) {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestBaseURLsGetTheirVersion(t *testing.T) {
	for in, want := range map[string]string{
		"anthropic https://h":          "https://h/v1",
		"anthropic https://h/v1/":      "https://h/v1",
		"anthropic https://h/proxy":    "https://h/proxy/v1",
		"google https://h":             "https://h/v1beta",
		"google https://h/v1":          "https://h/v1",
		"google https://h/v1alpha":     "https://h/v1alpha",
		"openai https://h/anything":    "https://h/anything",
		"openai-chat https://h/openai": "https://h/openai",
	} {
		name, base, _ := strings.Cut(in, " ")
		a := &app{}
		e, err := a.endpoint(service{vendor: vendor{name: name, protocol: name, base: base, open: true}}, "")
		if err != nil || e.Base.String() != want {
			t.Errorf("%s: %s, want %s (%v)", in, e.Base, want, err)
		}
	}
}

// TestAFileSaysWhatAModelCanDo: for the server that serves it.
func TestAFileSaysWhatAModelCanDo(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "belay"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "models:\n  - {provider: local, model: house, abilities: [images]}\n"
	if err := os.WriteFile(filepath.Join(dir, "belay", modelsFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{Sys: Sys{Env: term.Env{Environ: []string{"XDG_CONFIG_HOME=" + dir}, Now: time.Now}}}
	for name, want := range map[string]bool{"house": true, "another": false, "gpt-5": true} {
		p, err := a.provider(belay.Settings{Provider: "ollama", Model: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := model.AbilitiesOf(p, name).Images; got != want {
			t.Errorf("%s takes images: %v, want %v", name, got, want)
		}
	}
}

// TestAnAccountIsAPlaceAndAKey: what tells two keys, places or header fields apart
// tells accounts apart, and nothing of a key can be read in one.
// Guarantee: M21.
func TestAnAccountIsAPlaceAndAKey(t *testing.T) {
	at := func(base, key string, header http.Header) gateway.Account {
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
	for name, other := range map[string]gateway.Account{
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

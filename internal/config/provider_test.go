package config

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/secret"
)

// testInput is a process with an environment and nothing else.
func testInput(vars ...string) Input {
	return Input{Env: Env{Vars: vars}, Secrets: &secret.Scrubber{}, Hosts: &Hosts{}}
}

// TestVendorsAreWhole: each vendor has a protocol that this build speaks and an
// address, and says where its key is unless it wants none.
func TestVendorsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range vendors {
		if !slices.Contains(Protocols(), v.Protocol) {
			t.Errorf("%s: nobody speaks %q", v.Name, v.Protocol)
		}
		u, err := netdial.ParseBase(v.Base)
		if err != nil || u.Scheme != "https" && !v.Open {
			t.Errorf("%s: %q %v", v.Name, v.Base, err)
		}
		if !v.Open && len(v.Keys) == 0 || seen[v.Name] || strings.ContainsAny(v.Name, ": ") {
			t.Errorf("%+v", v)
		}
		seen[v.Name] = true
	}
}

// TestEachVendorIsReachedWithItsOwnKey: with the keys of all vendors in the
// environment, each host gets its own.
// Guarantee: X9.
func TestEachVendorIsReachedWithItsOwnKey(t *testing.T) {
	in := testInput()
	for _, v := range vendors {
		for _, name := range v.Keys {
			in.Vars = append(in.Vars, name+"=sk-of-"+name)
		}
	}
	for _, v := range vendors {
		e, err := in.endpoint(v, "")
		want := ""
		if len(v.Keys) > 0 {
			want = "sk-of-" + v.Keys[0]
		}
		if err != nil || e.Secret != want || e.URL.String() != v.Base {
			t.Errorf("%s: key %q for %s, %v", v.Name, e.Secret, e.URL, err)
		}
		e, err = in.endpoint(v, "https://elsewhere.example/v1")
		if err != nil || e.Secret != "" {
			t.Errorf("%s: key %q for %s, %v", v.Name, e.Secret, e.URL, err)
		}
	}
}

// TestAKeyStaysWithItsHost: it goes to the host of its provider, and to another
// one only if the person named that for this provider in this process.
// Guarantee: X9.
func TestAKeyStaysWithItsHost(t *testing.T) {
	v := ServiceOf(manifest.Provider{Name: "work", Protocol: OpenAIChat, BaseURL: "https://work.example/v1", Key: manifest.Reference{Kind: "env", Name: "K"},
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
		in := testInput([]string{"K=sk-of-work", "G=gate-of-work"}...)
		in.Hosts.name("work", "https://said.example")
		in.Hosts.name("other", "https://said-by-other.example")
		e, err := in.endpoint(v, base)
		if err != nil || (e.Secret != "") != want || (e.Header.Get("X-Gate") != "") != want {
			t.Errorf("%s: key %q, header %q, %v", base, e.Secret, e.Header, err)
		}
		if got := in.Secrets.String("sk-of-work gate-of-work"); want && strings.Contains(got, "of-work") {
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
		in := testInput([]string{"K=" + value}...)
		_, err := in.Resolve(manifest.Reference{Kind: "env", Name: "K", Where: "f:1:1"})
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
		e, err := testInput().endpoint(Service{Name: name, Protocol: name, Base: base, Open: true}, "")
		if err != nil || e.URL.String() != want {
			t.Errorf("%s: %s, want %s (%v)", in, e.URL, want, err)
		}
	}
}

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/price"
)

func open(t testing.TB, text ...string) *Catalog {
	t.Helper()
	var files []File
	for i, s := range text {
		files = append(files, File{fmt.Sprintf("%c.yaml", 'a'+i), []byte(s)})
	}
	c, err := New(files...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The data is read without places when the program starts; here it is read as a
// person's file is, so nothing in it would be refused there.
func TestTheEmbeddedDataIsAFileLikeAnother(t *testing.T) {
	var c Catalog
	if err := c.read(File{"models.json", data}); err != nil {
		t.Fatal(err)
	}
	want := open(t)
	strip := func(ms []Model) []Model {
		ms = slices.Clone(ms)
		for i := range ms {
			ms[i].From = nil
		}
		return ms
	}
	if d := cmp.Diff(strip(want.models), strip(c.models)); d != "" {
		t.Error(d)
	}
	if _, err := time.Parse(time.DateOnly, want.Date()); err != nil {
		t.Error(err)
	}
}

func TestEmbeddedModelsAreWhole(t *testing.T) {
	c := open(t)
	names := map[string]string{}
	for _, m := range c.Models("") {
		for _, n := range append([]string{m.Name}, m.Aliases...) {
			if other := names[n]; other != "" {
				t.Errorf("%s is both %s and %s", n, other, m.Name)
			}
			names[n] = m.Name
		}
		if m.Context <= 0 || m.Output <= 0 || m.Output > m.Context || m.Vocabulary == "" {
			t.Errorf("%s: context %d, output %d, vocabulary %q", m.Name, m.Context, m.Output, m.Vocabulary)
		}
		for _, f := range []string{"context", "output", "abilities"} {
			if !strings.HasPrefix(m.From[f], "embedded 20") {
				t.Errorf("%s: %s comes from %q", m.Name, f, m.From[f])
			}
		}
		if (m.Provider == Open) != (m.Prices == nil) && !m.Can(ImagesOut) {
			t.Errorf("%s of %s: prices %v", m.Name, m.Provider, m.Prices)
		}
		for p := m.Prices; p != nil; p = p.Next {
			tiers := append([]price.Tier{{Rates: p.Rates}}, p.Long...)
			for i, r := range tiers {
				if r.Input <= 0 || r.Output < r.Input || r.CacheRead == nil || *r.CacheRead >= r.Input || r.CacheWrite != nil && *r.CacheWrite <= r.Input {
					t.Errorf("%s: rates that no vendor has: %+v", m.Name, r)
				}
				if i > 0 && (r.Input <= tiers[i-1].Input || r.Output <= tiers[i-1].Output || r.Over >= m.Context) {
					t.Errorf("%s: a long request is cheaper, or longer than the context: %+v", m.Name, r)
				}
			}
		}
	}
	for _, p := range []string{"openai", "anthropic", "google", Open} {
		if len(c.Models(p)) < 5 {
			t.Errorf("%s has %d models", p, len(c.Models(p)))
		}
	}
}

// Guarantee: M1.
func TestAModelIsFoundByTheNamesItHas(t *testing.T) {
	c := open(t, `
models:
  - {provider: openrouter, model: anthropic/claude-sonnet-5.5, like: claude-sonnet-5-5, usd_per_million: {input: 2.2, output: 11}}
  - {provider: local, model: house-qwen, like: qwen3-8b, context: 32768, usd_per_million: {input: 0, output: 0}}
`)
	for _, x := range []struct {
		server, name, want string
		priced             bool
	}{
		{"openai", "gpt-5", "gpt-5", true},
		{"openai", "GPT-5", "gpt-5", true},
		{"openai", "gpt-5-2025-08-07", "gpt-5", true},
		{"openai", "gpt-5-mini-2025-08-07", "gpt-5-mini", true}, // the longest
		{"openai", "gpt-5.6", "gpt-5.6-sol", true},
		{"openai", "gpt-5.6-2026-07-09", "gpt-5.6-sol", true}, // an alias with a date
		{"anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5", true},
		{"anthropic", "claude-haiku-4-5@20251001", "claude-haiku-4-5", true},
		{"anthropic", "claude-haiku-4-5-latest", "claude-haiku-4-5", true},
		{"anthropic", "anthropic/claude-haiku-4-5", "claude-haiku-4-5", true},
		{"google", "models/gemini-2.5-flash-001", "gemini-2.5-flash", true},
		{"google", "gemini-2.5-pro-preview-05-06", "gemini-2.5-pro", true},
		{"openrouter", "anthropic/claude-sonnet-5.5", "anthropic/claude-sonnet-5.5", true},
		{"openrouter", "anthropic/claude-opus-4.8", "claude-opus-4-8", false},
		{"proxy.example", "openrouter/anthropic/claude-opus-4.8", "claude-opus-4-8", false},
		{"openai", "claude-opus-4-8", "claude-opus-4-8", false},
		{"", "gpt-5", "gpt-5", false},
		{"local", "qwen3:8b", "qwen3-8b", false},
		{"local", "Qwen/Qwen3-8B", "qwen3-8b", false},
		{"local", "openai/gpt-oss-20b", "gpt-oss-20b", false}, // whose weights are published
		{"local", "gpt-oss:20b", "gpt-oss-20b", false},
		{"local", "house-qwen", "house-qwen", true},
		{"openai", "gpt-5-turbo", "", false},
		{"openai", "gpt-5-20", "", false},
		{"openai", "gpt-5-preview-2025", "", false},
		{"openai", "openai/claude-opus-4-8", "", false},
		{"openai", "", "", false},
		{"openai", "-20251001", "", false},
		{"openai", "/", "", false},
	} {
		m, ok := c.Lookup(x.name, x.server)
		if m.Name != x.want || ok != (x.want != "") || (m.Prices != nil) != x.priced {
			t.Errorf("%s, %s: got %q, %v, prices %v", x.server, x.name, m.Name, ok, m.Prices)
		}
		if m.Prices == nil && m.From["prices"] != "" {
			t.Errorf("%s: a source of prices that aren't there", x.name)
		}
	}
}

func TestServersAreKnownByTheirHost(t *testing.T) {
	for host, want := range map[string]string{
		"api.openai.com": "openai", "API.Anthropic.com.": "anthropic", "generativelanguage.googleapis.com": "google",
		"openrouter.ai": "openrouter", "127.0.0.1": "local", "::1": "local", "[::1]": "local", "localhost": "local", "::ffff:127.0.0.1": "local",
		"llm.corp.example": "llm.corp.example", "api.openai.com.evil.example": "api.openai.com.evil.example", "": "",
	} {
		if got := Server(host); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}

func TestAProviderIsMeantByItsNameOrItsServer(t *testing.T) {
	for _, x := range []struct {
		provider, host string
		want           []string
	}{
		{"openai-chat", "api.openai.com", []string{"openai-chat", "openai"}},
		{"ollama", "127.0.0.1", []string{"ollama", "local"}},
		{"House", "llm.corp.example", []string{"house", "llm.corp.example"}},
		{"anthropic", "api.anthropic.com", []string{"anthropic"}},
		{"anthropic", "proxy.example", []string{"proxy.example"}}, // only by its name
	} {
		if got := Servers(x.provider, x.host); !slices.Equal(got, x.want) {
			t.Errorf("%s at %s: got %v, want %v", x.provider, x.host, got, x.want)
		}
	}
}

func TestFilesReplaceFieldsAndNameThem(t *testing.T) {
	c := open(t, `
models:
  - provider: openai
    model: gpt-5
    context: 200000
  - provider: local
    model: mine
    like: qwen3-8b
    aliases: [my-model]
`, `
models:
  - provider: OpenAI
    model: GPT-5
    usd_per_million:
      input: 1
      output: 0.00001
      cache_read: 0.075
      until: "2027-01-31"
      long:
        - {over: 1000, input: 2, output: 2.5}
      next: {input: 0, output: 7}
`)
	m, _ := c.Lookup("gpt-5", "openai")
	read := int64(75_000)
	want := &price.List{
		Rates: price.Rates{Input: 1_000_000, Output: 10, CacheRead: &read}, Until: "2027-01-31",
		Long: []price.Tier{{Over: 1000, Rates: price.Rates{Input: 2_000_000, Output: 2_500_000}}}, Next: &price.List{Rates: price.Rates{Output: 7_000_000}},
	}
	if d := cmp.Diff(want, m.Prices); d != "" {
		t.Error(d)
	}
	for field, from := range map[string]string{"context": "a.yaml:5:14", "prices": "b.yaml:6:7", "output": "embedded " + c.Date()} {
		if m.From[field] != from {
			t.Errorf("%s comes from %q, want %q", field, m.From[field], from)
		}
	}
	if m.Context != 200_000 || m.Output != 128_000 || !m.Can(Images) || m.Can(ImagesOut) {
		t.Errorf("%+v", m)
	}
	mine, _ := c.Lookup("my-model", "somebody", "local")
	if mine.Name != "mine" || mine.Context != 131_072 || !mine.Can(Reasoning) || mine.Prices != nil || mine.From["aliases"] != "a.yaml:9:14" {
		t.Errorf("%+v", mine)
	}
	if other, _ := open(t).Lookup("gpt-5", "openai"); other.Context != 400_000 {
		t.Error("a file changed another catalogue")
	}
}

func TestAMistakeInAFileHasItsPlace(t *testing.T) {
	one := func(rest string) string { return "models:\n  - provider: p\n    model: m\n" + rest }
	price := func(rest string) string { return one("    usd_per_million:\n      input: 1\n      output: 2\n" + rest) }
	for _, x := range []struct{ text, where, says string }{
		{"- a\n", "a.yaml:1:1", "want the field models"},
		{"model: x\n", "a.yaml:1:1", "unknown field"},
		{one("    contxt: 5\n"), "a.yaml:4:5", "unknown field"},
		{one("    context: -5\n"), "a.yaml:4:14", "-5 is no number of tokens"},
		{one("    output: 2000000000\n"), "a.yaml:4:13", "no number of tokens"},
		{one("    context: many\n"), "a.yaml:4:14", "want a number"},
		{one("    abilities: [images, flight]\n"), "a.yaml:4:25", `no ability "flight"`},
		{one("    vocabulary: klingon\n"), "a.yaml:4:17", `no vocabulary "klingon"`},
		{one("    images: guess\n"), "a.yaml:4:13", `no rule "guess"`},
		{one("    factor: 11\n"), "a.yaml:4:13", "no factor"},
		{one("    factor: .nan\n"), "a.yaml:4:13", "no factor"},
		{one("    aliases: ['']\n"), "a.yaml:4:15", "an alias is a name"},
		{one("    like: nothing\n"), "a.yaml:4:11", `no model is called "nothing"`},
		{"models:\n  - model: m\n", "a.yaml:2:5", "a model needs a provider"},
		{"models:\n  - provider: p\n", "a.yaml:2:5", "a model needs a model"},
		{"models:\n  - provider: p q\n    model: m\n", "a.yaml:2:15", "one word"},
		{one("  - provider: P\n    model: M\n"), "a.yaml:5:12", "is here twice"},
		{one("    usd_per_million: {input: 1}\n"), "a.yaml:4:23", `output is dollars for a million tokens, such as 2.50; have ""`},
		{one("    usd_per_million: {input: 1.0000001, output: 1}\n"), "a.yaml:4:30", "input is dollars"},
		{one("    usd_per_million: {input: -1, output: 1}\n"), "a.yaml:4:30", `have "-1"`},
		{one("    usd_per_million: {input: 1000001, output: 1}\n"), "a.yaml:4:30", "input is dollars"},
		{one("    usd_per_million: {input: free, output: 1}\n"), "a.yaml:4:30", `have "free"`},
		{price("      long: [{over: 5, input: 1, output: 1}, {over: 5, input: 1, output: 1}]\n"), "a.yaml:7:53", "larger than the one before"},
		{price("      long: [{over: 5, input: x, output: 1}]\n"), "a.yaml:7:31", "input is dollars"},
		{price("      until: soon\n"), "a.yaml:7:14", `"soon" is no day`},
		{price("      next: {input: 1, output: 1}\n"), "a.yaml:7:14", "next needs a last day"},
		{price("      until: '2026-05-05'\n      next: {input: 1, output: y}\n"), "a.yaml:8:32", "output is dollars"},
		{price("      until: '2026-05-05'\n      next: {input: 1, output: 1, until: '2026-05-05'}\n"), "a.yaml:8:42", "before it begins"},
	} {
		_, err := New(File{"a.yaml", []byte(x.text)})
		e, ok := err.(*belay.Error)
		if !ok || e.Code != belay.CodeBadConfig || e.Where != x.where || !strings.Contains(e.Message, x.says) || e.Hint == "" {
			t.Errorf("%s\ngot %#v\nwant %s: %s", x.text, err, x.where, x.says)
		}
	}
	for _, text := range []string{"", " \n", "models: []\n", "models:\n", `{"models":[{"provider":"p","model":"m","usd_per_million":{"input":0.5,"output":1}}]}`} {
		if _, err := New(File{"a.yaml", []byte(text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestShowFindsWhatAPersonMeans(t *testing.T) {
	c := open(t)
	for _, name := range []string{"claude-haiku-4-5", "anthropic/claude-haiku-4.5", "Claude-Haiku-4-5-20251001"} {
		if m, err := c.Show(name); err != nil || m.Name != "claude-haiku-4-5" || m.Prices == nil {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	if _, err := c.Show("gpt-1"); belay.CodeOf(err) != belay.CodeNotFound {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add("models:\n  - {provider: p, model: m, context: 5, usd_per_million: {input: 1e-5, output: 2}}\n")
	f.Add("models: [{provider: p, model: m, like: p/m, long: [{over: 1}]}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := New(File{"x", []byte(text)})
		if err != nil {
			if belay.CodeOf(err) != belay.CodeBadConfig {
				t.Fatalf("%#v", err)
			}
			return
		}
		for _, m := range c.Models("") {
			if _, ok := c.Lookup(m.Name, m.Provider); !ok {
				t.Errorf("%s of %s isn't found", m.Name, m.Provider)
			}
			if at := m.Prices.At(time.Unix(0, 0)); at != nil && (at.Input < 0 || at.Output < 0) {
				t.Errorf("%+v", at)
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		open(b)
	}
}

func BenchmarkLookup(b *testing.B) {
	c := open(b)
	for b.Loop() {
		c.Lookup("claude-haiku-4-5-20251001", "anthropic")
	}
}

// TestAProviderHasOneDefaultAtMost: a file's replaces the embedded one.
func TestAProviderHasOneDefaultAtMost(t *testing.T) {
	c := open(t, "models:\n  - {provider: openai, model: mine, like: gpt-6.1-sol}\n  - {provider: anthropic, model: claude-haiku-5-5, default: true}\n  - {provider: groq, model: fast, default: true}\n")
	for provider, want := range map[string]string{"openai": "gpt-6.1-sol", "anthropic": "claude-haiku-5-5", "google": "gemini-3.8-flash", "groq": "fast", "open": ""} {
		got, ok := c.Default(provider)
		if got.Name != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", provider, got.Name, want)
		}
	}
	n := 0
	for _, m := range c.Models("") {
		if m.Default {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d defaults, want 4", n)
	}
}

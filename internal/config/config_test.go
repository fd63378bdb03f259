package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/secret"
)

// folder is a person's home with a workspace, by file and content. Nothing in the
// workspace is trusted, and every provider can be asked.
func folder(t *testing.T, files map[string]string) (Input, func(name, content string)) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ws/README", "")
	for name, content := range files {
		write(name, content)
	}
	return Input{
		Env: Env{Vars: []string{"HOME=" + dir}, Dir: filepath.Join(dir, "ws")}, Workspace: filepath.Join(dir, "ws"), Tools: []belay.ToolSpec{{Name: "read", Group: "fs"}},
		Secrets: &secret.Scrubber{}, Hosts: &Hosts{}, Now: time.Now, Flags: true,
		Trust:  func(context.Context) (*TrustBook, error) { return nil, nil },
		Usable: func(*Workspace, belay.Settings) error { return nil },
	}, write
}

const ofPerson = ".config/belay/"

// steps is the limit of a new session, or the code of the error.
func steps(w *Workspace) any {
	l, err := w.Layers(Given{"provider": {"ollama"}, "model": {"m"}})
	if err != nil {
		return belay.CodeOf(err)
	}
	s, err := l.Settings()
	if err != nil {
		return belay.CodeOf(err)
	}
	return s.Limits.Steps
}

// TestWhatIsReadAgainIsNew: settings count as they are now, and what declares tools
// and providers as it was.
func TestWhatIsReadAgainIsNew(t *testing.T) {
	in, write := folder(t, map[string]string{ofPerson + "belay.yaml": "max-steps: 7\nproviders:\n  work: {protocol: openai-chat, base-url: https://one.example/v1}\n"})
	first := Resolve(t.Context(), in)
	write(ofPerson+"belay.yaml", "max-steps: 8\nproviders:\n  work: {protocol: openai-chat, base-url: https://two.example/v1}\n")
	second := first.Again(t.Context(), in)
	if steps(first) != 7 || steps(second) != 8 {
		t.Errorf("%v steps, then %v", steps(first), steps(second))
	}
	for _, w := range []*Workspace{first, second} {
		if s, err := w.Service("work"); s.Base != "https://one.example/v1" || err != nil {
			t.Errorf("the provider is at %s (%v)", s.Base, err)
		}
	}
	if s, _ := Resolve(t.Context(), in).Service("work"); s.Base != "https://two.example/v1" {
		t.Errorf("resolved anew the provider is at %s", s.Base)
	}
}

// TestAFileThatIsBeingWrittenCountsAsItWas: for who has read it before, however
// often; who hasn't gets its mistake.
func TestAFileThatIsBeingWrittenCountsAsItWas(t *testing.T) {
	in, write := folder(t, map[string]string{ofPerson + "belay.yaml": "max-steps: 7\n"})
	w := Resolve(t.Context(), in)
	write(ofPerson+"belay.yaml", "max-ste")
	for range 2 {
		if w = w.Again(t.Context(), in); steps(w) != 7 {
			t.Errorf("%v steps, want those of before", steps(w))
		}
	}
	if w := Resolve(t.Context(), in); steps(w) != belay.CodeBadConfig {
		t.Errorf("%v steps of a file that can't be read", steps(w))
	}
	write(ofPerson+"belay.yaml", "max-steps: 9\n")
	if w = w.Again(t.Context(), in); steps(w) != 9 {
		t.Errorf("%v steps, want those of now", steps(w))
	}
}

// TestAMistakeIsOneOfItsPart: tools, settings and rules fail alone, and Check finds
// each.
func TestAMistakeIsOneOfItsPart(t *testing.T) {
	for _, c := range []struct {
		file                   string
		tools, settings, rules belay.Code
	}{
		{"tools/x.yaml", belay.CodeBadManifest, "", ""},
		{"belay.yaml", "", belay.CodeBadConfig, ""},
		{"policy.yaml", "", "", belay.CodeBadPolicy},
	} {
		in, _ := folder(t, map[string]string{ofPerson + c.file: "- what: is this\n"})
		w := Resolve(t.Context(), in)
		_, tools := w.Commands()
		_, settings := w.Layers(nil)
		_, rules := w.Rules()
		if codeOf(tools) != c.tools || codeOf(settings) != c.settings || codeOf(rules) != c.rules {
			t.Errorf("%s: tools %v, settings %v, rules %v", c.file, tools, settings, rules)
		}
		if err := w.Check(); codeOf(err) != c.tools+c.settings+c.rules {
			t.Errorf("%s: checked: %v", c.file, err)
		}
	}
}

func codeOf(err error) belay.Code {
	if err == nil {
		return ""
	}
	return belay.CodeOf(err)
}

// TestAFileNobodyTrustsNarrows: of each setting that a file can have what counts, and
// what doesn't.
func TestAFileNobodyTrustsNarrows(t *testing.T) {
	narrow := map[string][2]string{ // by setting: a value that counts, and one that doesn't
		"mode": {"plan", "accept_edits"}, "boundary": {"read-only", "workspace-write"}, "tools": {"minimal", "full"}, "approvals": {"deny", "ask"},
		"max-steps": {"200", "201"}, "max-time": {"1h", "61m"}, "max-calls": {"1", "0"}, "agents-depth": {"0", "4"}, "agents-children": {"16", "17"}, "agents-running": {"8", "9"}, "agents-total": {"1", "201"}, "agents-talk": {"none", "tree"}, "agents-memory": {"50%", "76%"}, "agent": {"", "x"}, "completion": {"required", "conversational"},
		"instructions": {"none", "auto"}, "effort": {"low", "medium"}, "ask-timeout": {"24h", "25h"}, "queue": {"reject", "enqueue"},
		"max-cost": {"2usd", "0"}, "max-tokens": {"9ktok", "+9ktok"}, "budget": {"2usd,9calls", "+2usd"}, "queue-cap": {"100", "101"}, "queue-drop": {"new", "old"},
		"provider": {"", "ollama"}, "model": {"", "m"}, "base-url": {"", "http://127.0.0.1:1/v1"}, "fallback": {"", "none"}, "compact": {"", "prune"}, "compact-at": {"", "50"}, "compact-model": {"", "none"}, "snapshot": {"", "none"}, "queue-quiet": {"", "1s"}, "relevance": {"", "0.5"}, "tool-budget": {"", "16"}, "allow": {"", "[read]"},
		"cache-mb": {"", "1"}, "notify": {"", "bell"}, "web-reach": {"", "public"}, "web-robots": {"", "obey"}, "web-search": {"", "off"}, "web-search-key": {"", "env:X"}, "web-search-url": {"", "https://s.example"},
	}
	for _, s := range settings {
		if s.Once {
			continue
		}
		values, ok := narrow[s.Name]
		if !ok {
			t.Errorf("say what a file that nobody trusts may set of %s", s.Name)
		}
		for i, v := range values {
			if v == "" {
				continue
			}
			in, _ := folder(t, map[string]string{"ws/.belay/belay.yaml": s.Name + ": " + v + "\n"})
			l, err := Resolve(t.Context(), in).Layers(nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, counts := l.set[s.Name]; counts != (i == 0) || counts == (len(l.Ignored()) == 1) {
				t.Errorf("%s: %s: it counts: %t; ignored: %v", s.Name, v, counts, l.Ignored())
			}
		}
	}
}

// TestTheDocumentHasTheTable: every setting that a file can have, with its default.
func TestTheDocumentHasTheTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		_, row, found := strings.Cut(string(doc), "\n| `"+s.Name+"` | ")
		if found == s.Once {
			t.Errorf("%s is in the document: %t", s.Name, found)
		}
		if row, _, _ = strings.Cut(row, " |"); s.Default != "" && strings.Trim(row, "`") != s.Default {
			t.Errorf("%s: the document says %s, the table %s", s.Name, row, s.Default)
		}
	}
}

// TestARequestIsToldItsOwnFields: what is wrong in a request is told with the names that
// fields have there, which aren't those of files and flags.
func TestARequestIsToldItsOwnFields(t *testing.T) {
	in, _ := folder(t, nil)
	in.Flags = false
	for _, s := range All() {
		if s.JSON == "" || s.JSON == s.Name || s.Switch() {
			continue
		}
		_, err := Resolve(t.Context(), in).Over(in.Defaults(), Given{s.Name: {"no such value"}})
		var e *belay.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if strings.Contains(e.Hint, s.Name) || strings.Contains(e.Hint, "--") || strings.Contains(e.Hint, "=0 is") || e.Hint == "" {
			t.Errorf("%s: the hint is %q", s.JSON, e.Hint)
		}
	}
}

package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// TestEveryModelIsAskedAtTheAddressInForce: whoever asks a model (a turn, its fallback, a
// checker, a summary, an agent with a model of its own, a judge, a trial), its provider is
// reached where the person said, by a flag or by the environment, and nothing goes to the
// address that the provider has otherwise.
// Guarantee: M66.
func TestEveryModelIsAskedAtTheAddressInForce(t *testing.T) {
	done := modelserver.Scene{Scene: modeltest.Scene{Calls: []model.Call{{ID: "call_9", Name: "complete_task", Args: `{"summary":"Done."}`}}, Stop: "tool_calls"}}
	for _, c := range []struct {
		name  string
		args  []string
		then  []string          // a second command
		files map[string]string // in the configuration's folder
		asked string            // the model that is to be asked in force
	}{
		{name: "a fallback of its provider", args: []string{"run", "--model", "fails", "--fallback", "near/other", "hello"}, asked: "other"},
		{name: "a fallback of another provider", args: []string{"run", "--model", "fails", "--fallback", "ollama/other", "hello"}, asked: "other"},
		{name: "a fallback of its vendor by another protocol", args: []string{"run", "--provider", "openai-chat", "--model", "fails", "--fallback", "openai/other", "hello"}, asked: "other"},
		{name: "a checker", args: []string{"run", "--model", "calls", "--allow", "write", "hello"}, asked: "other",
			files: map[string]string{"policy.yaml": "version: 1\ncheckers:\n  - {id: reviewer, provider: near, model: other, instructions: Look., when: {tool: write}}\n"}},
		{name: "a checker of another provider", args: []string{"run", "--model", "calls", "--allow", "write", "hello"}, asked: "other",
			files: map[string]string{"policy.yaml": "version: 1\ncheckers:\n  - {id: reviewer, provider: ollama, model: other, instructions: Look., when: {tool: write}}\n"}},
		{name: "a summary", args: []string{"run", "--model", "m", "--compact", "summarise", "--compact-model", "near/other", strings.Repeat("hello ", 3000)}, then: []string{"compact"}, asked: "other"},
		{name: "a summary of another provider", args: []string{"run", "--model", "m", "--compact", "summarise", "--compact-model", "ollama/other", strings.Repeat("hello ", 3000)}, then: []string{"compact"}, asked: "other"},
		{name: "an agent", args: []string{"run", "--agent", "mine", "--model", "m", "hello"}, asked: "other",
			files: map[string]string{"agents/mine.md": "---\nname: mine\ndescription: It works.\nmodel: near/other\n---\nWork.\n"}},
		{name: "an agent of another provider", args: []string{"run", "--agent", "mine", "--model", "m", "hello"}, asked: "other",
			files: map[string]string{"agents/mine.md": "---\nname: mine\ndescription: It works.\nmodel: ollama/other\n---\nWork.\n"}},
		{name: "a trial", args: []string{"models", "test", "--model", "other"}, asked: "other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inForce := modelserver.New(func(a modelserver.Asked) modelserver.Scene {
				switch {
				case a.Model == "fails":
					return modelserver.Scene{Fault: modelserver.Fault{Status: http.StatusUnauthorized, Class: "auth"}}
				case a.Model == "calls" && a.Results == 0:
					return modelserver.Scene{Scene: modeltest.Scene{Calls: []model.Call{{ID: "call_1", Name: "write", Args: `{"path":"x","content":"x"}`}}, Stop: "tool_calls"}}
				case strings.Contains(a.System, "You judge one call"):
					return modelserver.Scene{Scene: modeltest.Scene{Text: `{"decision":"allow","reason":"fine"}`, Stop: "stop"}}
				case !slices.Contains(a.Tools, "complete_task"):
					return modelserver.Scene{Scene: modeltest.Scene{Text: "They said hello.", Stop: "stop"}}
				}
				return done
			})
			vendors := modelserver.New(func(modelserver.Asked) modelserver.Scene { return done })
			near, far := httptest.NewServer(inForce), httptest.NewServer(vendors)
			defer near.Close()
			defer far.Close()
			dir := t.TempDir()
			files := map[string]string{"belay.yaml": "providers:\n  near: {protocol: openai-chat, base-url: " + far.URL + "/v1, key: \"env:NEAR_KEY\"}\n  ollama: {base-url: " + far.URL + "/v1}\n  openai: {base-url: " + far.URL + "/v1}\n  openai-chat: {base-url: " + far.URL + "/v1}\n"}
			for name, text := range c.files {
				files[name] = text
			}
			for name, text := range files {
				at := filepath.Join(dir, ".config/belay", name)
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ws := filepath.Join(dir, "ws")
			if err := os.Mkdir(ws, 0o700); err != nil {
				t.Fatal(err)
			}
			// The address of near is named by a flag, that of ollama by the environment.
			env := []string{"HOME=" + dir, "USER=tester", "PATH=" + os.Getenv("PATH"), "NEAR_KEY=sk-near", "OPENAI_API_KEY=sk-openai", "OLLAMA_HOST=" + near.URL}
			var said bytes.Buffer
			for _, args := range [][]string{c.args, c.then} {
				if args == nil {
					continue
				}
				if args[0] != "compact" {
					args = append(slices.Clone(args), "--base-url", near.URL+"/v1")
					if !slices.Contains(args, "--provider") {
						args = append(args, "--provider", "near")
					}
				}
				if exit := Main(t.Context(), append([]string{"--store", filepath.Join(dir, "store")}, args...), command.Sys{Env: term.Env{Out: &said, Err: &said, Environ: env}, Dir: ws}); exit != 0 && args[0] != "models" { // which wants more of a model
					t.Errorf("%.100q: exit %d", args, exit)
				}
			}
			if n := len(vendors.Heard()); n > 0 {
				t.Errorf("%d requests went to the other address", n)
			}
			keys := map[string]string{}
			for _, a := range inForce.Heard() {
				keys[a.Model] = a.Key
			}
			if key, ok := keys[c.asked]; !ok || key == "" && c.then == nil && !strings.Contains(c.name, "another provider") { // an address in a recorded session gets no key
				t.Errorf("%s wasn't asked, or without its key: %v", c.asked, keys)
			}
			if t.Failed() {
				t.Logf("%s", said.String())
			}
			if !strings.Contains(c.name, "fallback") {
				return
			}
			said.Reset()
			Main(t.Context(), []string{"--store", filepath.Join(dir, "store"), "events", "--type", "routing.fallback.applied"}, command.Sys{Env: term.Env{Out: &said, Err: &said, Environ: env}, Dir: ws})
			if !strings.Contains(said.String(), " at "+near.URL) {
				t.Errorf("the fact doesn't name the address: %s", &said)
			}
		})
	}
}

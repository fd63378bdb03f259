package cli

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// threeCalls asks for two calls at once, then for one, then completes.
func threeCalls(a modelserver.Asked) modelserver.Scene {
	s := modeltest.Scene{Text: "I look.", Parts: 3, Stop: "tool_calls"}
	switch a.Results {
	case 0:
		s.Calls = []model.Call{{ID: "call_1", Name: "read", Args: `{"path":"a.txt"}`}, {ID: "call_2", Name: "read", Args: `{"path":"b.txt"}`}}
	case 2:
		s.Calls = []model.Call{{ID: "call_3", Name: "write", Args: `{"path":"c.txt","content":"ab"}`}}
	default:
		s.Calls = []model.Call{{ID: "call_4", Name: "complete_task", Args: `{"summary":"a and b are in c.txt."}`}}
	}
	return modelserver.Scene{Scene: s}
}

// TestTheSameCommandLineSpeaksEveryProtocol: a run with three calls, two of them
// at once, over a real server, its provider, address and model given by flags
// and by the environment.
// Guarantee: X14.
func TestTheSameCommandLineSpeaksEveryProtocol(t *testing.T) {
	for _, p := range config.Protocols() {
		v := config.ServiceOf(manifest.Provider{Name: p})
		if v.Protocol != p {
			t.Errorf("no vendor has the name of the protocol %s", p)
			continue
		}
		for _, by := range []string{"flags", "environment", "vendor's variables"} {
			t.Run(p+"/"+by, func(t *testing.T) {
				t.Parallel()
				far := modelserver.New(threeCalls)
				srv := httptest.NewServer(far)
				defer srv.Close()
				args, env := []string{"run", "--mode", "accept_edits"}, []string{v.Keys[0] + "=sk-tester"}
				switch by {
				case "flags":
					args = append(args, "--provider", v.Name, "--base-url", srv.URL+"/v1", "--model", "m")
				case "environment":
					env = append(env, "BELAY_PROVIDER="+v.Name, "BELAY_BASE_URL="+srv.URL+"/v1", "BELAY_MODEL=m")
				default:
					env = append(env, v.Bases[0]+"="+srv.URL+"/v1", "BELAY_PROVIDER="+v.Name, "BELAY_MODEL=m")
				}
				out, ws := runHere(t, 0, env, append(args, "join a and b")...)
				if out != "a and b are in c.txt.\n" {
					t.Errorf("printed: %q", out)
				}
				if b, err := os.ReadFile(filepath.Join(ws, "c.txt")); string(b) != "ab" {
					t.Errorf("c.txt holds %q (%v)", b, err)
				}
				heard := far.Heard()
				if len(heard) != 3 {
					t.Fatalf("%d requests, want 3", len(heard))
				}
				for _, a := range heard {
					if a.Protocol != p || a.Key != "sk-tester" || a.Model != "m" || !bytes.Contains(a.Body, []byte(`"stream":true`)) && p != "google" {
						t.Errorf("asked over %s with key %q for %s: %.300s", a.Protocol, a.Key, a.Model, a.Body)
					}
				}
			})
		}
	}
}

// TestEffortAndOutputReachTheRequest: and an answer ends the turn only when it
// fits the schema.
// Guarantee: E8.
func TestEffortAndOutputReachTheRequest(t *testing.T) {
	for _, name := range []string{config.OpenAIResponses, config.OpenAIChat} {
		t.Run(name, func(t *testing.T) {
			far := modelserver.New(func(a modelserver.Asked) modelserver.Scene {
				text := map[int]string{1: "It is seven.", 2: `{"n": "seven"}`}[a.N]
				if text == "" {
					text = ` {"n": 7} `
				}
				return modelserver.Scene{Scene: modeltest.Scene{Text: text, Stop: "stop"}}
			})
			srv := httptest.NewServer(far)
			defer srv.Close()
			dir := t.TempDir()
			schema := filepath.Join(dir, "schema.json")
			if err := os.WriteFile(schema, []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`), 0o600); err != nil {
				t.Fatal(err)
			}
			out, _ := runHere(t, 0, []string{"OPENAI_API_KEY=sk-tester"}, "run", "--provider", name, "--base-url", srv.URL+"/v1", "--model", "gpt-5",
				"--effort", "high", "--completion", "conversational", "--output-schema", schema, "how many?")
			if strings.TrimSpace(out) != `{"n": 7}` {
				t.Errorf("printed: %q", out)
			}
			for _, a := range far.Heard() {
				var body struct {
					Effort    string `json:"reasoning_effort"`
					Reasoning struct {
						Effort string `json:"effort"`
					} `json:"reasoning"`
				}
				if err := json.Unmarshal(a.Body, &body); err != nil || body.Effort+body.Reasoning.Effort != "high" || !bytes.Contains(a.Body, []byte(`"json_schema"`)) {
					t.Errorf("no effort or no schema in %.400s (%v)", a.Body, err)
				}
			}
			if n := len(far.Heard()); n != 3 {
				t.Errorf("%d requests, want 3: two answers didn't fit", n)
			}
		})
	}
}

// runHere runs one command of the program in a workspace of its own.
func runHere(t *testing.T, want int, env []string, args ...string) (stdout, workspace string) {
	t.Helper()
	dir := t.TempDir()
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(ws, name+".txt"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	env = append([]string{"HOME=" + dir, "USER=tester", "PATH=" + os.Getenv("PATH")}, env...)
	got := Main(t.Context(), append([]string{"--store", filepath.Join(dir, "store")}, args...), command.Sys{Env: term.Env{Out: &out, Err: &errs, Environ: env}, Dir: ws})
	if got != want {
		t.Errorf("exit code %d, want %d:\n%.3000s", got, want, errs.String())
	}
	return out.String(), ws
}

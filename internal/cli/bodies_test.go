package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/builtin"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/server"
)

// TestNoBodyBreaksItsRow brings each command of the table bodies that are made from its own
// schema, valid and broken, over HTTP and with belay api: it answers or refuses them, and
// nothing panics.
// Guarantee: V5.
func TestNoBodyBreaksItsRow(t *testing.T) {
	p := newPlace(t)
	var said bytes.Buffer
	if exit := p.belay(t.Context(), &said, "run", "--json", "hello"); exit != 0 {
		t.Fatalf("exit %d: %s", exit, &said)
	}
	var begun struct{ Session string }
	_ = json.Unmarshal(said.Bytes()[:bytes.IndexByte(said.Bytes(), '\n')], &begun) // the first line names it
	bodies := newBodies(t, begun.Session)
	url := p.serve(t)
	for _, row := range builtin.Commands() {
		schema := bodies.schemas["/v1/commands/"+row.Name]
		if row.Later == "" && schema == nil {
			t.Errorf("%s has no schema", row.Name)
		}
		for i := range 2 {
			both := rapid.Custom(func(t *rapid.T) [2]any {
				valid := bodies.value(t, schema, i == 0)
				return [2]any{valid, broken(t, valid)}
			}).Example(i)
			for _, v := range both {
				body, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				p.post(t, url+"/v1/commands/"+row.Name, body)
				if i == 0 && row.Later == "" {
					p.api(t, row.Name, string(body))
				}
			}
		}
	}
	for _, row := range builtin.Reads() {
		p.api(t, row.Name, "id="+begun.Session)
	}
}

// place is a store and a workspace that the program is run in.
type place struct {
	dir string
	env []string
}

func newPlace(t *testing.T) *place {
	dir := t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(script, []byte("steps:\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &place{dir, []string{"HOME=" + dir, "BELAY_STORE=" + filepath.Join(dir, "store"), "BELAY_WORKSPACE=" + t.TempDir(), "BELAY_SCRIPT=" + script, "PATH=" + os.Getenv("PATH")}}
}

func (p *place) belay(ctx context.Context, out io.Writer, args ...string) int {
	return Main(ctx, args, command.Sys{Env: term.Env{In: strings.NewReader(""), Out: out, Err: out, Environ: p.env}, Dir: p.dir})
}

// serve runs the server until the test ends, and returns its address.
func (p *place) serve(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var said bytes.Buffer
	served := make(chan int, 1)
	go func() { served <- p.belay(ctx, &said, "serve", "--listen", "127.0.0.1:0") }()
	t.Cleanup(func() { stop(); <-served })
	var at struct{ URL string }
	for deadline := time.Now().Add(time.Minute); at.URL == ""; time.Sleep(10 * time.Millisecond) {
		if raw, err := os.ReadFile(filepath.Join(p.dir, "store", "server.json")); err == nil {
			_ = json.Unmarshal(raw, &at) // it may be half written
		}
		if time.Now().After(deadline) {
			t.Fatal("the server doesn't serve")
		}
	}
	return at.URL
}

// post sends a command with a token of its own: the command may be to end it.
func (p *place) post(t *testing.T, url string, body []byte) {
	t.Helper()
	token, _, err := auth.OpenTokens(filepath.Join(p.dir, "store"), nil).Create("", auth.Owner, auth.DefaultTenant, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Errorf("%s %s: %v", url, body, err)
		return
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode == http.StatusInternalServerError {
		t.Errorf("%s %s: %d %s (%v)", url, body, answer.StatusCode, said, err)
	}
}

// api performs a command, or a read, at the terminal.
func (p *place) api(t *testing.T, name, with string) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("belay api %s '%s' panics: %v\n%s", name, with, v, debug.Stack())
		}
	}()
	p.belay(t.Context(), io.Discard, "api", name, with)
}

// bodies are made from the schemas of the API's own description.
type bodies struct {
	schemas map[string]map[string]any // of bodies, by path
	named   map[string]any
	session string // one that is there
}

func newBodies(t *testing.T, session string) *bodies {
	raw, err := server.OpenAPI(builtin.Commands(), builtin.Reads())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]struct {
			Post struct {
				Body struct {
					Content map[string]struct{ Schema map[string]any }
				} `json:"requestBody"`
			}
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	b := &bodies{map[string]map[string]any{}, doc.Components.Schemas, session}
	for path, at := range doc.Paths {
		b.schemas[path] = at.Post.Body.Content["application/json"].Schema
	}
	return b
}

// value is a value as a schema says; whole has all fields that it can have.
func (b *bodies) value(t *rapid.T, schema any, whole bool) any {
	s, ok := schema.(map[string]any)
	if !ok {
		return map[string]any{"x": 1.5}
	}
	if ref, ok := s["$ref"].(string); ok {
		return b.value(t, b.named[ref[strings.LastIndexByte(ref, '/')+1:]], whole)
	}
	if any, ok := s["anyOf"].([]any); ok {
		return b.value(t, any[0], whole)
	}
	switch kind := s["type"].(type) {
	case []any:
		return b.typed(t, s, fmt.Sprint(kind[len(kind)-1]), whole)
	default:
		return b.typed(t, s, fmt.Sprint(kind), whole)
	}
}

func (b *bodies) typed(t *rapid.T, s map[string]any, kind string, whole bool) any {
	switch kind {
	case "object":
		out := map[string]any{}
		fields, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if whole || slices.Contains(required, any(name)) || rapid.Bool().Draw(t, name) {
				out[name] = b.value(t, fields[name], whole)
			}
		}
		if more, ok := s["additionalProperties"].(map[string]any); ok {
			out["x"] = b.value(t, more, whole)
		}
		return out
	case "array":
		return []any{b.value(t, s["items"], whole)}
	case "integer":
		return rapid.SampledFrom([]int{0, 1, -1, 1 << 53}).Draw(t, "integer")
	case "number":
		return rapid.SampledFrom([]any{0.5, 1, -2.25, 1e300}).Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "string":
		if of, ok := s["enum"].([]any); ok {
			return rapid.SampledFrom(of).Draw(t, "enum")
		}
		if s["format"] == "date-time" {
			return "2036-01-31T16:00:00Z"
		}
		return rapid.SampledFrom([]string{b.session, "", "x", "QUJD", "1h"}).Draw(t, "string")
	}
	return map[string]any{"x": 1.5}
}

// broken is a value with one thing in it that is of another kind, missing, or too much.
func broken(t *rapid.T, v any) any {
	others := rapid.SampledFrom([]any{nil, true, "x", 1.5, -1, 1e300, []any{}, []any{nil}, map[string]any{}})
	switch v := v.(type) {
	case map[string]any:
		name := rapid.SampledFrom(append(slices.Sorted(maps.Keys(v)), "nosuch")).Draw(t, "name")
		out := maps.Clone(v)
		if out[name] = broken(t, v[name]); rapid.Bool().Draw(t, "without") {
			delete(out, name)
		}
		return out
	case []any:
		if len(v) > 0 && rapid.Bool().Draw(t, "within") {
			return []any{broken(t, v[0])}
		}
	}
	return others.Draw(t, "other")
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/mcp"
	"github.com/belay-run/belay/internal/secret/vault"
	"github.com/belay-run/belay/internal/tool"
)

// call is what a scenario has the client call.
type call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"arguments"`
}

// clientScenarios are what the client does besides reading what the server has, by the
// names of the suite.
var clientScenarios = map[string]func(known []mcp.Definition) ([]call, error){
	"initialize":                          nothing,
	"tools_call":                          these(call{"add_numbers", json.RawMessage(`{"a":5,"b":3}`)}),
	"sse-retry":                           these(call{"test_reconnection", json.RawMessage(`{}`)}),
	"elicitation-sep1034-client-defaults": these(call{"test_client_elicitation_defaults", json.RawMessage(`{}`)}),
	"sep-2322-client-request-state": these(call{"test_mrtr_echo_state", json.RawMessage(`{}`)}, call{"test_mrtr_unrelated", json.RawMessage(`{}`)},
		call{"test_mrtr_no_state", json.RawMessage(`{}`)}, call{"test_mrtr_no_result_type", json.RawMessage(`{}`)}),
	"request-metadata":         nothing,
	"json-schema-ref-no-deref": nothing,
	"json-schema-2020-12-preservation": func(known []mcp.Definition) ([]call, error) {
		for _, d := range known {
			if d.Name == "json_schema_2020_12_tool" {
				args, err := json.Marshal(map[string]any{"schema": d.Input})
				return []call{{"json_schema_echo", args}}, err
			}
		}
		return nil, errors.New("the tool with the schema is missing")
	},
	"http-custom-headers":   nothing, // besides the calls that the suite names
	"http-standard-headers": all,
	"http-invalid-tool-headers": func(known []mcp.Definition) (all []call, err error) {
		for _, d := range known {
			all = append(all, call{d.Name, json.RawMessage(`{"region":"us-west1"}`)})
		}
		return all, nil
	},
}

func nothing([]mcp.Definition) ([]call, error) { return nil, nil }

func these(calls ...call) func([]mcp.Definition) ([]call, error) {
	return func([]mcp.Definition) ([]call, error) { return calls, nil }
}

// all calls each tool that there is: without arguments, but for the one that reads what
// the suite's server has.
func all(known []mcp.Definition) (calls []call, err error) {
	for _, d := range known {
		args := json.RawMessage(`{}`)
		if d.Name == "resource_read" {
			args = json.RawMessage(`{"uri":"file:///path/to/file%20name.txt"}`)
		}
		if d.Kind != "prompt" {
			calls = append(calls, call{d.Name, args})
		}
	}
	return calls, nil
}

// callsOf are the calls of a scenario; nil: it isn't played.
func callsOf(scenario string) func(known []mcp.Definition) ([]call, error) {
	if strings.HasPrefix(scenario, "auth/") {
		return all
	}
	return clientScenarios[scenario]
}

// person is whoever logs in, in a scenario of the suite.
type person struct {
	pool   *mcp.Pool
	server *manifest.Server
	known  struct { // of the scenario
		Client string `json:"client_id"`
		Secret string `json:"client_secret"`
		Calls  []call `json:"toolCalls"`
	}
	logins int
}

// maxLogins is how often a person logs in before they give up.
const maxLogins = 3

// Of a client that describes itself, which issuers may prefer to one that registers.
const (
	description = "https://conformance-test.local/client-metadata.json"
	redirect    = "http://localhost:3000/callback"
)

// helped runs what may want a login, and logs in as its error says.
func (p *person) helped(ctx context.Context, do func() error) error {
	for {
		err := do()
		e, wants := errors.AsType[*tool.Error](err)
		if !wants || e.Code != mcp.CodeNeedsLogin || p.logins == maxLogins {
			return err
		}
		p.logins++
		if err := p.login(ctx, e.Hint); err != nil {
			return err
		}
	}
}

// login does as belay mcp login.
func (p *person) login(ctx context.Context, hint string) error {
	a := mcp.Asked{Redirect: redirect, Client: cmp.Or(p.known.Client, description), Secret: p.known.Secret}
	for words := strings.Fields(hint); len(words) > 1; words = words[1:] {
		if words[0] == "--scope" {
			a.Scopes = append(a.Scopes, words[1])
		}
	}
	l, err := p.pool.Login(ctx, p.server, a)
	if err != nil {
		return err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := browser.Get(l.Address)
	if err != nil {
		return err
	}
	r.Body.Close()
	return l.Finish(ctx, r.Header.Get("Location"))
}

// client is Belay's client of MCP servers, in a scenario of the suite.
func client(ctx context.Context, url string) error {
	calls := callsOf(os.Getenv("MCP_CONFORMANCE_SCENARIO"))
	if calls == nil {
		return fmt.Errorf("there is no scenario %q", os.Getenv("MCP_CONFORMANCE_SCENARIO"))
	}
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kept := vault.Vault{Dir: dir}
	p := &person{
		pool: &mcp.Pool{Environ: os.Environ(), Grants: &mcp.Grants{
			Vault: func() (vault.Vault, error) { return kept, nil }, Hide: func(string, string) {}, Now: time.Now,
		}},
		server: &manifest.Server{Name: "judge", Type: "http", URL: url},
	}
	if told := os.Getenv("MCP_CONFORMANCE_CONTEXT"); told != "" {
		if err := json.Unmarshal([]byte(told), &p.known); err != nil {
			return err
		}
	}
	var has mcp.Looked
	err = p.helped(ctx, func() (err error) {
		has, err = p.pool.Look(ctx, p.server, ".", nil)
		return err
	})
	if err != nil {
		return err
	}
	each, err := calls(has.Tools)
	if err != nil {
		return err
	}
	if each == nil {
		each = p.known.Calls
	}
	tools := map[string]tool.Tool{}
	for _, t := range p.pool.Tools(p.server, has.Tools) {
		tools[t.Spec().Name] = t
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	for i, c := range each {
		t := tools[mcp.ToolName(p.server.Name, c.Name)]
		if t == nil {
			return fmt.Errorf("there is no tool %s", c.Name)
		}
		err := p.helped(ctx, func() error {
			r, err := answering(ctx, t, tool.Call{ID: belay.CallID(fmt.Sprint("call_", i)), Dir: ".", Args: c.Args, Sink: sink{}})
			if r.Left != nil {
				defer r.Left.Keep(ended, func() string { return "shutdown" })
			}
			return err
		})
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", c.Name, err) // the suite judges what came to it
		}
	}
	for _, d := range mcp.Prompts(has.Tools) {
		err := p.helped(ctx, func() error {
			_, _, err := p.pool.ReadPrompt(ctx, p.server, ".", nil, d, nil)
			return err
		})
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", d.Name, err)
		}
	}
	return nil
}

// answering runs a call, and gives what it asks on the way: as much as its form has
// defaults for.
func answering(ctx context.Context, t tool.Tool, c tool.Call) (first tool.Result, err error) {
	for c.Attempt = 1; ; c.Attempt++ {
		r, err := t.Run(ctx, c)
		if r.Left != nil {
			first.Left = r.Left
		}
		q, asks := errors.AsType[*tool.NeedsInput](err)
		if !asks {
			r.Left = first.Left
			return r, err
		}
		s, err := tool.ReadSchema(q.Schema)
		if err != nil {
			return first, err
		}
		value := map[string]any{}
		if err := s.Fill(value); err != nil {
			return first, err
		}
		c.Input = &tool.Input{State: q.State, Action: "accept"}
		if c.Input.Content, err = json.Marshal(value); err != nil {
			return first, err
		}
	}
}

// ended is over.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// sink takes what calls record: nothing reads it.
type sink struct{ tool.Sink }

// Fact implements tool.Sink.
func (sink) Fact(event.Payload) {}

// Durable implements tool.Sink.
func (sink) Durable(event.Payload) error { return nil }

// Progress implements tool.Sink.
func (sink) Progress(tool.Progress) {}

// Keep implements tool.Sink.
func (sink) Keep(content []byte, media string) (belay.Ref, error) {
	return belay.Ref{Digest: belay.DigestOf(content), Size: int64(len(content)), Media: media}, nil
}

// Scrub implements tool.Sink.
func (sink) Scrub(w io.Writer) io.WriteCloser { return unchanged{w} }

type unchanged struct{ io.Writer }

// Close implements io.Closer.
func (unchanged) Close() error { return nil }

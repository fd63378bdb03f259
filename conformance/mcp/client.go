package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/mcp"
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
	"http-custom-headers": func([]mcp.Definition) ([]call, error) {
		var told struct {
			Calls []call `json:"toolCalls"`
		}
		err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &told)
		return told.Calls, err
	},
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

// client is Belay's client of MCP servers, in a scenario of the suite.
func client(ctx context.Context, url string) error {
	calls := clientScenarios[os.Getenv("MCP_CONFORMANCE_SCENARIO")]
	if calls == nil {
		return fmt.Errorf("there is no scenario %q", os.Getenv("MCP_CONFORMANCE_SCENARIO"))
	}
	s := &manifest.Server{Name: "judge", Type: "http", URL: url}
	has, err := mcp.Look(ctx, s, os.Environ(), ".", nil)
	if err != nil {
		return err
	}
	all, err := calls(has.Tools)
	if err != nil {
		return err
	}
	pool := &mcp.Pool{Environ: os.Environ()}
	tools := map[string]tool.Tool{}
	for _, t := range pool.Tools(s, has.Tools) {
		tools[t.Spec().Name] = t
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	for i, c := range all {
		t := tools[mcp.ToolName(s.Name, c.Name)]
		if t == nil {
			return fmt.Errorf("there is no tool %s", c.Name)
		}
		r, err := answering(ctx, t, tool.Call{ID: belay.CallID(fmt.Sprint("call_", i)), Dir: ".", Args: c.Args, Sink: sink{}})
		if r.Left != nil {
			defer r.Left.Keep(ended, func() string { return "shutdown" })
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", c.Name, err) // the suite judges what came to it
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

// Package conformance holds the adapters and the test server against the
// vendors' own Go libraries, in both directions: what the server says the library
// and the adapter read alike, and what the two ask for the same conversation the
// server understands alike. It is a module of its own, so that nobody who builds
// the runtime gets the libraries.
package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// key is what both sides know themselves by.
const key = "sk-conformance"

// oracle is a vendor's library, and the adapter that it judges.
type oracle struct {
	name  string // of the protocol
	model string
	path  string // of the address that the adapter is given
	// adapter is ours.
	adapter func(e wire.Endpoint) model.Provider
	// ask sends a conversation with the vendor's library and reads the answer:
	// the shared one, or one word.
	ask func(ctx context.Context, base string, shared bool) said
	// again reads a request into the library's own types and writes it.
	again func(body []byte) ([]byte, error)
	// spell gives an object of a request the spelling that the library prefers,
	// where the protocol has two for the same; nil: it has none.
	spell func(object map[string]any)
	// plain says that the library can't read comments in a stream.
	plain bool
	// echo is what the vendor gave with the shared conversation's answer: before
	// it, or with its first call.
	before, call *belay.Echo
}

var oracles = []oracle{openaiChat, openaiResponses, anthropicMessages, googleGemini}

// said is an answer as a reader understands it.
type said struct {
	Text                  string
	Calls                 []call
	Stop                  string
	Input, Output, Cached int64
	Status                int // of an answer that is none
	Failed                bool
}

type call struct{ Name, Args string }

// shared is a conversation with everything in it that all protocols have.
func (o oracle) shared() model.Request {
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)
	image := &belay.Attachment{Name: "a.png", Ref: belay.Ref{Digest: belay.DigestOf([]byte("png")), Media: "image/png", Size: 3}}
	answer := []belay.Part{{Text: "I look."},
		{Call: &belay.ToolCall{ID: "call_1", Name: "read", Args: json.RawMessage(`{"path":"a"}`), Echo: o.call}},
		{Call: &belay.ToolCall{ID: "call_2", Name: "list", Args: json.RawMessage(`{}`)}}}
	if o.before != nil {
		answer = append([]belay.Part{{Echo: o.before}}, answer...)
	}
	return model.Request{
		Model: o.model, System: "be <brief>", ForceTool: "read", MaxOutput: 500, Attempt: 1,
		Tools: []model.ToolDef{{Name: "read", Doc: "reads", Schema: schema}, {Name: "list", Doc: "lists", Schema: schema}},
		Messages: []belay.Message{
			{Role: belay.RoleUser, Parts: []belay.Part{{Text: "see & tell"}, {Image: image}}},
			{Role: belay.RoleAssistant, Parts: answer},
			{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: "call_1", Name: "read", Text: "A", Parts: []belay.Part{{Image: image}}}}, {Result: &belay.ToolResult{ID: "call_2", Name: "list", Text: "bad", Error: true}}}},
			belay.Text(belay.RoleUser, "go on"),
		},
		Content: func(context.Context, belay.Digest) ([]byte, error) { return []byte("png"), nil },
	}
}

// serve is a server that says one scene to everybody.
func serve(t *testing.T, s modelserver.Scene) (*modelserver.Server, string) {
	t.Helper()
	far := modelserver.New(func(modelserver.Asked) modelserver.Scene { return s })
	srv := httptest.NewServer(far)
	t.Cleanup(srv.Close)
	return far, srv.URL
}

// ours asks with the adapter.
func (o oracle) ours(t *testing.T, base string, r model.Request) said {
	t.Helper()
	u, err := url.Parse(base + o.path)
	if err != nil {
		t.Fatal(err)
	}
	p := o.adapter(wire.Endpoint{Name: o.name, Base: u, Key: key, Client: &http.Client{}})
	var out said
	for c, err := range p.Stream(t.Context(), r) {
		if err != nil {
			out.Failed = true
			if model.AsError(err).Class == "rate_limited" {
				out.Status = http.StatusTooManyRequests
			}
			return out
		}
		out.Text += c.Text
		if c.Call != nil {
			out.Calls = append(out.Calls, call{c.Call.Name, compact(c.Call.Args)})
		}
		if c.Usage != nil {
			out.Input, out.Output, out.Cached = c.Usage.Input, c.Usage.Output, c.Usage.Cached
		}
		out.Stop = c.Stop
	}
	return out
}

// compact is JSON in one spelling; libraries write objects anew.
func compact(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	b, _ := json.Marshal(v) // it was JSON
	return string(b)
}

// spelt is a request in one spelling.
func (o oracle) spelt(body []byte) string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return string(body)
	}
	if o.spell != nil {
		o.walk(v)
	}
	b, _ := json.Marshal(v) // it was JSON
	return string(b)
}

func (o oracle) walk(v any) {
	switch v := v.(type) {
	case map[string]any:
		o.spell(v)
		for _, in := range v {
			o.walk(in)
		}
	case []any:
		for _, in := range v {
			o.walk(in)
		}
	}
}

// scenes are what the server says.
var scenes = map[string]modelserver.Scene{
	"text":                {Scene: modeltest.Scene{Text: "Überall <ist> es & besser", Parts: 4, Stop: "stop", Usage: &belay.Usage{Input: 120, Output: 7, Cached: 100, Reported: true}}},
	"two calls":           {Scene: modeltest.Scene{Text: "I look.", Calls: []model.Call{{Name: "read", Args: `{"path":"a <b>"}`}, {Name: "list", Args: `{}`}}, Stop: "tool_calls", Usage: &belay.Usage{Input: 9, Output: 3, Reported: true}}},
	"calls only":          {Scene: modeltest.Scene{Calls: []model.Call{{Name: "read", Args: `{"n":1,"o":{"p":[1,2]}}`}}, Stop: "tool_calls"}},
	"too long":            {Scene: modeltest.Scene{Text: "and so", Stop: "length"}},
	"with reasoning":      {Scene: modeltest.Scene{Reasoning: "hm", Text: "so", Stop: "stop"}},
	"refused":             {Scene: modeltest.Scene{Text: "no", Stop: "refused"}},
	"fails in the middle": {Scene: modeltest.Scene{Text: "half of", Parts: 2, Fail: "transient"}},
	"too many requests":   {Scene: modeltest.Scene{Fail: "rate_limited", RetryAfter: 7 * time.Second}},
	"kept alive":          {Scene: modeltest.Scene{Text: "so", Stop: "stop"}, Fault: modelserver.Fault{At: 1, Kind: modelserver.Comments}},
}

// Guarantee: M12.
func TestLibrariesReadWhatTheServerSaysAsTheAdaptersDo(t *testing.T) {
	for _, o := range oracles {
		for name, s := range scenes {
			if o.plain && s.Fault.Kind == modelserver.Comments {
				continue
			}
			t.Run(o.name+"/"+name, func(t *testing.T) {
				_, base := serve(t, s)
				theirs := o.ask(t.Context(), base, false)
				ours := o.ours(t, base, model.Request{Model: o.model, Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}})
				if !reflect.DeepEqual(theirs, ours) {
					t.Errorf("the library reads %+v\nthe adapter reads %+v", theirs, ours)
				}
				if want := s.Scene; ours.Text != want.Text || ours.Failed != (want.Fail != "") || len(ours.Calls) != len(want.Calls) && want.Fail == "" || want.Fail == "" && ours.Stop != want.Stop {
					t.Errorf("the server said %+v, the adapter read %+v", want, ours)
				}
			})
		}
	}
}

// asked is what of a request both must agree on.
type asked struct {
	Protocol, Model, Key, System, Force string
	Tools, Texts, Echoes                []string
	Results, Images                     int
}

func agreed(a modelserver.Asked) asked {
	return asked{a.Protocol, a.Model, a.Key, a.System, a.Force, a.Tools, spoken(a.Texts), a.Echoes, a.Results, a.Images}
}

// spoken leaves out what says nothing: libraries differ in whether a message
// without text has an empty one.
func spoken(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
}

// Guarantee: M12.
func TestTheServerReadsTheLibrariesAsItReadsTheAdapters(t *testing.T) {
	for _, o := range oracles {
		t.Run(o.name, func(t *testing.T) {
			far, base := serve(t, modelserver.Scene{Scene: modeltest.Scene{Text: "ok", Stop: "stop"}})
			if theirs := o.ask(t.Context(), base, true); theirs.Failed {
				t.Fatalf("the server refuses the library's request: %+v", theirs)
			}
			if ours := o.ours(t, base, o.shared()); ours.Failed {
				t.Fatalf("the server refuses the adapter's request: %+v", ours)
			}
			heard := far.Heard()
			theirs, ours := agreed(heard[0]), agreed(heard[1])
			if !reflect.DeepEqual(theirs, ours) {
				t.Errorf("of the library the server understands %+v\nof the adapter %+v", theirs, ours)
			}
			if ours.Results != 2 || ours.Images != 2 || ours.Force != "read" || len(ours.Tools) != 2 {
				t.Errorf("the server doesn't understand the conversation: %+v", ours)
			}
		})
	}
}

// What the library's types don't know is lost when they write it again.
// Guarantee: M12.
func TestLibrariesKnowAllThatTheAdaptersSend(t *testing.T) {
	for _, o := range oracles {
		for name, change := range map[string]func(*model.Request){
			"forced": func(*model.Request) {},
			"noted":  func(r *model.Request) { r.ForceTool, r.Note = "", "finish" },
			"effort": func(r *model.Request) { r.ForceTool, r.Effort, r.MaxOutput = "", "high", 0 },
			"by form": func(r *model.Request) {
				r.ForceTool, r.Tools, r.Output = "", nil, json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
				r.Messages = r.Messages[:1]
			},
		} {
			t.Run(o.name+"/"+name, func(t *testing.T) {
				far, base := serve(t, modelserver.Scene{Scene: modeltest.Scene{Text: "ok", Stop: "stop"}})
				r := o.shared()
				change(&r)
				if s := o.ours(t, base, r); s.Failed {
					t.Fatalf("the server refuses the request: %+v", s)
				}
				body := far.Heard()[0].Body
				written, err := o.again(body)
				if err != nil {
					t.Fatalf("the library can't read the request: %v\n%s", err, body)
				}
				if want, got := o.spelt(body), o.spelt(written); got != want {
					t.Errorf("the library loses something of the request:\n%s\n%s", want, got)
				}
			})
		}
	}
}

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// responses is a provider whose far end is h.
func responses(t *testing.T, h http.HandlerFunc) *Responses {
	t.Helper()
	c := chat(t, h)
	return &Responses{Service: wire.Service{Endpoint: c.Endpoint, Prefixes: c.Prefixes}}
}

func TestTheLawsOfProvidersHoldForResponses(t *testing.T) {
	modeltest.Run(t, modeltest.Config{
		Stage: func(t *testing.T, s modeltest.Scene) (model.Provider, model.Request) {
			p := responses(t, modelserver.New(func(modelserver.Asked) modelserver.Scene { return modelserver.Scene{Scene: s} }).ServeHTTP)
			return p, model.Request{Model: "m", System: "be brief", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}, Attempt: 1}
		},
		Fails: []string{"transient", "rate_limited", "overflow", "bad_request", "auth", "refused"},
	})
}

// heard is an answer in short.
func heard(t *testing.T, p model.Provider) string {
	t.Helper()
	var out []string
	text := ""
	for c, err := range p.Stream(t.Context(), model.Request{Model: "m", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}}) {
		if err != nil {
			return strings.Join(append(out, text+"!"+model.AsError(err).Class), ";")
		}
		switch {
		case c.Text != "":
			text += c.Text
			continue
		case c.Reasoning != "":
			out = append(out, "("+c.Reasoning+")")
			continue
		}
		if text != "" {
			out, text = append(out, text), ""
		}
		switch {
		case c.Call != nil && c.Call.Echo != nil:
			out = append(out, c.Call.ID+" "+c.Call.Name+" "+c.Call.Args+" "+string(c.Call.Echo.Data))
		case c.Call != nil:
			out = append(out, c.Call.ID+" "+c.Call.Name+" "+c.Call.Args)
		case c.Echo != nil:
			out = append(out, c.Echo.By+" "+string(c.Echo.Data))
		case c.Image != nil:
			out = append(out, fmt.Sprintf("%s %q", c.Image.Media, c.Image.Data))
		}
		if c.Stop != "" {
			out = append(out, c.Stop)
		}
	}
	return strings.Join(out, ";")
}

// Events of the protocol, in short.
const (
	messageAdded = `{"type":"response.output_item.added","output_index":0,"item":{"id":"m0","type":"message","content":[]}}`
	hi           = `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`
	messageDone  = `{"type":"response.output_item.done","output_index":0,"item":{"id":"m0","type":"message","content":[{"type":"output_text","text":"hi there"}]}}`
	callAdded    = `{"type":"response.output_item.added","output_index":1,"item":{"id":"f1","type":"function_call","call_id":"a","name":"x","arguments":""}}`
	argsDelta    = `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"k\""}`
	callDone     = `{"type":"response.output_item.done","output_index":1,"item":{"id":"f1","type":"function_call","call_id":"a","name":"x","arguments":"{\"k\":1}"}}`
	thoughtDone  = `{"type":"response.output_item.done","output_index":0,"item":{"id":"r0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"well"}],"encrypted_content":"E1"}}`
	completed    = `{"type":"response.completed","response":{"status":"completed"}}`
)

// Guarantee: M10.
func TestWhatAnAnswerOfResponsesSays(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"the done item has what was missing": {[]string{messageAdded, hi, messageDone, completed}, `hi there;stop`},
		"an event that comes twice":          {[]string{`{"type":"response.output_text.delta","delta":"hi","sequence_number":4}`, `{"type":"response.output_text.delta","delta":"hi","sequence_number":4}`, completed}, `hi;stop`},
		"a piece is lost in the middle":      {[]string{messageAdded, `{"type":"response.output_text.delta","delta":"there"}`, messageDone, completed}, `there!transient`},
		"a text that is trimmed at the end":  {[]string{`{"type":"response.output_text.delta","delta":"hi \n"}`, `{"type":"response.output_text.done","text":"hi"}`, completed}, "hi \n;stop"},
		"nothing but the end":                {[]string{`{"type":"response.completed","response":{"output":[{"type":"message","id":"m0","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","id":"f1","call_id":"a","name":"x","arguments":"{}"}]}}`}, `hi;a x {};tool_calls`},
		"the end repeats all":                {[]string{messageAdded, hi, messageDone, callAdded, argsDelta, callDone, `{"type":"response.completed","response":{"output":[{"type":"message","id":"m0","content":[{"type":"output_text","text":"hi there"}]},{"type":"function_call","id":"f1","call_id":"a","name":"x","arguments":"{}"}]}}`}, `hi there;a x {"k":1};tool_calls`},
		"arguments in pieces only":           {[]string{callAdded, argsDelta, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":":2}"}`, completed}, `a x {"k":2};tool_calls`},
		"the done item is right":             {[]string{callAdded, argsDelta, argsDelta, callDone, completed}, `a x {"k":1};tool_calls`},
		"one index for all, ids differ":      {[]string{`{"type":"response.output_item.done","item":{"id":"1","type":"function_call","call_id":"a","name":"x"}}`, `{"type":"response.output_item.done","item":{"id":"2","type":"function_call","call_id":"b","name":"y"}}`, completed}, `a x {};b y {};tool_calls`},
		"an id twice":                        {[]string{callDone, `{"type":"response.output_item.done","output_index":2,"item":{"id":"f2","type":"function_call","call_id":"a","name":"y","arguments":""}}`, completed}, `a x {"k":1};call_2 y {};tool_calls`},
		"unknown events and items":           {[]string{`{"type":"response.new.thing","delta":"no"}`, `{"type":"response.output_item.done","output_index":5,"item":{"type":"web_search_call","id":"w"}}`, messageDone, completed, messageDone}, `hi there;stop`},
		"reasoning before a call":            {[]string{thoughtDone, callDone, completed}, "(hm);(\n\nwell);a x {\"k\":1} [" + thought + `];tool_calls`},
		"reasoning before text":              {[]string{thoughtDone, `{"type":"response.output_item.done","output_index":1,"item":{"id":"m0","type":"message","content":[{"type":"output_text","text":"hi"}]}}`, completed}, "(hm);(\n\nwell);hi;openai/m [" + thought + `];stop`},
		"reasoning that leads to nothing":    {[]string{messageDone, strings.Replace(thoughtDone, `"output_index":0`, `"output_index":1`, 1), completed}, "(hm);(\n\nwell);hi there;stop"},
		"reasoning that isn't encrypted":     {[]string{strings.Replace(thoughtDone, `"E1"`, `null`, 1), callDone, completed}, "(hm);(\n\nwell);a x {\"k\":1};tool_calls"},
		"reasoning in pieces":                {[]string{`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"hm"}`, `{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}`, thoughtDone, callDone, completed}, "(hm);(\n\n);a x {\"k\":1} [" + thought + `];tool_calls`},
		"a picture":                          {[]string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"image_generation_call","id":"i","result":"cG5n","output_format":"webp"}}`, completed}, `image/webp "png";stop`},
		"a picture that can't be read":       {[]string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"image_generation_call","id":"i","result":"%%"}}`, completed}, `!transient`},
		"too long":                           {[]string{messageDone, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`}, `hi there;length`},
		"too long before arguments":          {[]string{callAdded, `{"type":"response.incomplete","response":{"output":[{"type":"function_call","id":"f1","call_id":"a","name":"x","arguments":"","status":"incomplete"}],"incomplete_details":{"reason":"max_output_tokens"}}}`}, `a x ;length`},
		"filtered":                           {[]string{messageDone, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`}, `hi there;refused`},
		"a refusal":                          {[]string{`{"type":"response.refusal.delta","delta":"no"}`, completed}, `no;refused`},
		"a refusal without pieces":           {[]string{`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"refusal","refusal":"no"}]}}`, completed}, `no;refused`},
		"failed":                             {[]string{hi, `{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}`}, `hi!transient`},
		"failed, rate":                       {[]string{`{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"m"}}}`}, `!rate_limited`},
		"failed, too long":                   {[]string{`{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"m"}}}`}, `!overflow`},
		"failed, a bad picture":              {[]string{`{"type":"response.failed","response":{"error":{"code":"invalid_image","message":"m"}}}`}, `!bad_request`},
		"an error":                           {[]string{`{"type":"error","code":"rate_limit_exceeded","message":"m"}`}, `!rate_limited`},
		"an error in an object":              {[]string{`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"m"}}`}, `!overflow`},
		"an error without a word":            {[]string{`{"type":"error","code":null}`}, `!transient`},
		"cancelled":                          {[]string{`{"type":"response.completed","response":{"status":"cancelled"}}`}, `!transient`},
		"no end":                             {[]string{messageDone}, `hi there!transient`},
		"another protocol's end":             {[]string{messageDone, `[DONE]`}, `hi there!transient`},
		"garbage":                            {[]string{`{"type":`}, `!transient`},
		"a call before it broke off":         {[]string{thoughtDone, callDone, `{"type":"response.output_item.added","output_index":2,"item":{"id":"f2","type":"function_call","call_id":"b","name":"y"}}`}, "(hm);(\n\nwell);a x {\"k\":1} [" + thought + `];!transient`},
		"a call without arguments broke off": {[]string{strings.Replace(callDone, `{\"k\":1}`, "", 1)}, `!transient`},
		"nothing":                            {nil, `!transient`},
	} {
		p := responses(t, func(w http.ResponseWriter, r *http.Request) { stream(w, c.events...) })
		if got := heard(t, p); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

// thought is the item of thoughtDone as it came.
var thought = thoughtDone[strings.Index(thoughtDone, `{"id"`) : len(thoughtDone)-1]

func TestArgumentsOfResponsesAreBounded(t *testing.T) {
	p := responses(t, func(w http.ResponseWriter, r *http.Request) {
		piece := js(map[string]any{"type": "response.function_call_arguments.delta", "delta": strings.Repeat("x", 1<<20)})
		w.Header().Set("Content-Type", "text/event-stream")
		for range 64 {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", piece); err != nil {
				return
			}
		}
	})
	if got := heard(t, p); got != "!internal" {
		t.Error(got)
	}
}

// The request, as bytes: what one conversation sends in two steps.
// Guarantee: M10.
func TestTheRequestOfResponses(t *testing.T) {
	var bodies [][]byte
	p := responses(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, b)
		stream(w, messageDone, completed)
	})
	img := &belay.Attachment{Name: "a.png", Ref: belay.Ref{Digest: belay.DigestOf([]byte("png")), Media: "image/png"}}
	pdf := &belay.Attachment{Name: "a.pdf", Ref: belay.Ref{Digest: belay.DigestOf([]byte("png")), Media: "application/pdf"}}
	echo := &belay.Echo{By: "openai/m", Data: json.RawMessage(`[{"type":"reasoning","id":"r","encrypted_content":"E"}]`)}
	r := model.Request{Model: "m", System: "be <brief>", Effort: "low", Tools: []model.ToolDef{{Name: "read", Doc: "reads", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []belay.Message{{Role: belay.RoleUser, Parts: []belay.Part{{Text: "see"}, {Image: img}, {File: pdf}}}},
		Content:  func(context.Context, belay.Digest) ([]byte, error) { return []byte("png"), nil },
	}
	ask := func() {
		for _, err := range p.Stream(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	ask()
	r.Messages = append(r.Messages,
		belay.Message{Role: belay.RoleAssistant, Parts: []belay.Part{{Echo: echo}, {Echo: &belay.Echo{By: "another", Data: echo.Data}}, {Text: "I look."},
			{Call: &belay.ToolCall{ID: "call_01a1-f", Name: "read", Args: json.RawMessage(`{"path":"a"}`), Echo: echo}},
			{Call: &belay.ToolCall{ID: "call_02", Name: "read", Args: json.RawMessage(`"{\"pa"`)}}}},
		belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: "call_01a1-f", Text: "A & B"}}, {Result: &belay.ToolResult{ID: "call_02", Text: "", Error: true}}, {Text: "[belay] more"}}})
	r.Note, r.ForceTool, r.MaxOutput, r.Output = "finish", "read", 50, json.RawMessage(`{"type":"object"}`)
	ask()
	head := `{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"read","description":"reads","parameters":{"type":"object"},"strict":false}],"instructions":"be <brief>","input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,cG5n"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,cG5n"}]}`
	key := cacheKey(r.Messages)
	more := `,{"type":"reasoning","id":"r","encrypted_content":"E"},{"type":"message","role":"assistant","content":"I look."}` +
		`,{"type":"reasoning","id":"r","encrypted_content":"E"},{"type":"function_call","call_id":"call_01a1f","name":"read","arguments":"{\"path\":\"a\"}"},{"type":"function_call","call_id":"call_02","name":"read","arguments":"{\"unreadable\":\"{\\\"pa\"}"}` +
		`,{"type":"function_call_output","call_id":"call_01a1f","output":"A & B"},{"type":"function_call_output","call_id":"call_02","output":""},{"type":"message","role":"user","content":"[belay] more"}`
	tail := `,{"type":"message","role":"user","content":"finish"}],"tool_choice":{"type":"function","name":"read"},"reasoning":{"effort":"low","summary":"auto"},"text":{"format":{"type":"json_schema","name":"output","schema":{"type":"object"},"strict":false}},"max_output_tokens":50,"prompt_cache_key":"` + key + `"}`
	if want := head + `],"reasoning":{"effort":"low","summary":"auto"},"prompt_cache_key":"` + key + `"}`; string(bodies[0]) != want {
		t.Errorf("\n%s\n%s", bodies[0], want)
	}
	if want := head + more + tail; string(bodies[1]) != want {
		t.Errorf("\n%s\n%s", bodies[1], want)
	}
	r.Messages = append(r.Messages, belay.Text(belay.RoleUser, r.Note))
	r.Note = ""
	ask()
	if said := head + more + `,{"type":"message","role":"user","content":"finish"}`; !bytes.HasPrefix(bodies[2], []byte(said)) {
		t.Errorf("a note that became history is\n%s", bodies[2])
	}
}

// An account that may not read summaries is asked without them, from then on;
// a model that doesn't reason is asked without a word about it.
func TestWhatIsAskedAboutReasoning(t *testing.T) {
	var bodies []string
	p := responses(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		if strings.Contains(string(b), `"summary"`) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","param":"reasoning.summary","code":"unsupported_value"}}`) //nolint:errcheck // a test
			return
		}
		stream(w, messageDone, completed)
	})
	for i, want := range []int{2, 1} {
		bodies = nil
		if got := heard(t, p); got != "hi there;stop" || len(bodies) != want {
			t.Errorf("request %d: %q after %d tries, want %d", i+1, got, len(bodies), want)
		}
	}
	bodies = nil
	q := responses(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		stream(w, messageDone, completed)
	})
	for c, err := range q.Stream(t.Context(), model.Request{Model: "gpt-4.1-mini"}) {
		if err != nil || c.Echo != nil {
			t.Fatal(c, err)
		}
	}
	if strings.Contains(bodies[0], "reasoning") {
		t.Error(bodies[0])
	}
}

func FuzzResponsesStream(f *testing.F) {
	for _, e := range []string{messageAdded, hi, messageDone, callAdded, argsDelta, callDone, thoughtDone, completed} {
		f.Add([]byte(e))
	}
	f.Add([]byte(`{"type":"error","error":null,"code":5}`))
	f.Add([]byte(`{"type":"response.output_text.delta","content_index":-5,"output_index":-1,"delta":"x"}`))
	f.Add([]byte(messageAdded + "\n" + hi + "\n" + messageDone + "\n" + completed + "\n" + completed))
	f.Fuzz(func(t *testing.T, data []byte) {
		modeltest.Decoded(t, data, func(out *wire.Out) wire.Decoder[happening] { return newDecoder(out, "openai/m") })
	})
}

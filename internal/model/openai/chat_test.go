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
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// chat is a provider whose far end is h.
func chat(t *testing.T, h http.HandlerFunc) *Chat {
	t.Helper()
	return &Chat{Service: wire.Service{Endpoint: modeltest.Far(t, h, "/v1"), Prefixes: wire.NewPrefixes(lru.New(1 << 20))}}
}

// stream answers with events.
func stream(w http.ResponseWriter, events ...string) { modeltest.Events(w, "\n", events...) }

func js(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func delta(v any, finish any) string {
	return js(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": v, "finish_reason": finish}}})
}

func TestTheLawsOfProviders(t *testing.T) {
	modeltest.Run(t, modeltest.Config{
		Stage: func(t *testing.T, s modeltest.Scene) (model.Provider, model.Request) {
			p := chat(t, modelserver.New(func(modelserver.Asked) modelserver.Scene { return modelserver.Scene{Scene: s} }).ServeHTTP)
			return p, model.Request{Model: "m", System: "be brief", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}, Attempt: 1}
		},
		Fails: []string{"transient", "rate_limited", "overflow", "bad_request", "auth", "refused"},
	})
}

func listen(t *testing.T, p *Chat, r model.Request) (text string, calls []model.Call, last model.Chunk, err error) {
	t.Helper()
	for c, e := range p.Stream(t.Context(), r) {
		if e != nil {
			return text, calls, last, e
		}
		text += c.Text
		if c.Call != nil {
			calls = append(calls, *c.Call)
		}
		last = c
	}
	return text, calls, last, nil
}

// What servers that imitate the protocol really send.
func TestOddities(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"no index, whole": {[]string{`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}},{"id":"b","function":{"name":"y","arguments":"{\"k\":1}"}}]},"finish_reason":"tool_calls"}]}`},
			`a x {};b y {"k":1};tool_calls`},
		"one after the other, no index, no id": {[]string{`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"x","arguments":"{}"}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"y","arguments":"{}"}}]},"finish_reason":"stop"}]}`},
			`call_1 x {};call_2 y {};tool_calls`},
		"arguments are an object":    {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":{"k":1}}}]},"finish_reason":"tool_calls"}]}`}, `a x {"k":1};tool_calls`},
		"the id with each piece":     {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\""}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":":1}"}}]},"finish_reason":"tool_calls"}]}`}, `a x {"k":1};tool_calls`},
		"one index for two calls":    {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`}, `a x {};b y {};tool_calls`},
		"the same id twice":          {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"y","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`}, `a x {};call_2 y {};tool_calls`},
		"no arguments at all":        {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x"}}]},"finish_reason":"tool_calls"}]}`}, `a x {};tool_calls`},
		"stop although there is one": {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"stop"}]}`}, `a x {};tool_calls`},
		"no last event":              {[]string{`{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`}, `hi;stop`},
		"a refusal":                  {[]string{`{"choices":[{"delta":{"refusal":"no"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, "[DONE]"}, `no;refused`},
		"too long before arguments":  {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":""}}]},"finish_reason":"length"}]}`}, `a x ;length`},
		"too long":                   {[]string{`{"choices":[{"delta":{"content":"hi"},"finish_reason":"length"}]}`, "[DONE]"}, `hi;length`},
		"another choice":             {[]string{`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`, "[DONE]"}, `hi;stop`},
		"content is a list":          {[]string{`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]},"finish_reason":"stop"}]}`}, `hi;stop`},
		"a null call, an object":     {[]string{`{"choices":[{"delta":{"content":{"a":1},"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":null}}]},"finish_reason":"tool_calls"}]}`}, `a x {};tool_calls`},
		"nulls":                      {[]string{`{"choices":[{"index":0,"delta":{"content":null,"tool_calls":null},"finish_reason":null}],"usage":null,"error":null}`, `{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`}, `hi;stop`},
	} {
		p := chat(t, func(w http.ResponseWriter, r *http.Request) { stream(w, c.events...) })
		text, calls, last, err := listen(t, p, model.Request{Model: "m"})
		got := ""
		if text != "" {
			got = text + ";"
		}
		for _, x := range calls {
			got += x.ID + " " + x.Name + " " + x.Args + ";"
		}
		if got += last.Stop; got != c.want || err != nil {
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	for name, events := range map[string][]string{
		"garbage":                {`{"choices":`},
		"no finish":              {`{"choices":[{"delta":{"content":"hi"}}]}`, "[DONE]"},
		"nothing":                {},
		"an error as the finish": {`{"choices":[{"delta":{"content":"hi"},"finish_reason":"error"}]}`, "[DONE]"},
		"an unreadable picture":  {`{"choices":[{"delta":{"images":[{"image_url":{"url":"data:image/png;base64,%"}}]},"finish_reason":"stop"}]}`},
		"an error in the stream": {`{"error":{"message":"overloaded"}}`},
	} {
		p := chat(t, func(w http.ResponseWriter, r *http.Request) { stream(w, events...) })
		_, _, _, err := listen(t, p, model.Request{Model: "m"})
		if f := model.AsError(err); err == nil || f.Class != "transient" {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := chat(t, func(w http.ResponseWriter, r *http.Request) {
		piece := js(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"name": "x", "arguments": strings.Repeat("x", 1<<20)}}}}}}})
		w.Header().Set("Content-Type", "text/event-stream")
		for range 64 {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", piece); err != nil {
				return
			}
		}
	})
	if _, _, _, err := listen(t, p, model.Request{Model: "m"}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("endless arguments: %v", err)
	}
}

// The request, as bytes: what one conversation sends in two steps.
func TestTheRequest(t *testing.T) {
	var bodies [][]byte
	p := chat(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, b)
		stream(w, delta(map[string]any{"content": "ok"}, "stop"), "[DONE]")
	})
	img := &belay.Attachment{Name: "a.png", Ref: belay.Ref{Digest: belay.DigestOf([]byte("png")), Media: "image/png"}}
	pdf := &belay.Attachment{Name: "a.pdf", Ref: belay.Ref{Digest: belay.DigestOf([]byte("png")), Media: "application/pdf"}}
	r := model.Request{Model: "m", System: "be <brief>", Tools: []model.ToolDef{{Name: "read", Doc: "reads", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []belay.Message{{Role: belay.RoleUser, Parts: []belay.Part{{Text: "see"}, {Image: img}, {File: pdf}}}},
		Content:  func(context.Context, belay.Digest) ([]byte, error) { return []byte("png"), nil },
	}
	if _, _, _, err := listen(t, p, r); err != nil {
		t.Fatal(err)
	}
	r.Messages = append(r.Messages,
		belay.Message{Role: belay.RoleAssistant, Parts: []belay.Part{{Text: "I look."},
			{Call: &belay.ToolCall{ID: "call_01a1-f", Name: "read", Args: json.RawMessage(`{"path":"a"}`)}},
			{Call: &belay.ToolCall{ID: "call_02", Name: "read", Args: json.RawMessage(`"{\"pa"`)}}}},
		belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: "call_01a1-f", Text: "A & B"}}, {Result: &belay.ToolResult{ID: "call_02", Text: "bad", Error: true}}, {Text: "[belay] more"}}})
	r.Note, r.ForceTool, r.MaxOutput, r.Effort, r.Output = "finish", "read", 50, "low", json.RawMessage(`{"type":"object"}`)
	if _, _, _, err := listen(t, p, r); err != nil {
		t.Fatal(err)
	}
	head := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"read","description":"reads","parameters":{"type":"object"}}}],"messages":[{"content":"be <brief>","role":"system"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,cG5n"}}]}`
	want := head + `,{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_01a1f","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},{"id":"call_02","type":"function","function":{"name":"read","arguments":"{\"unreadable\":\"{\\\"pa\"}"}}]}` +
		`,{"role":"tool","content":"A & B","tool_call_id":"call_01a1f"},{"role":"tool","content":"bad","tool_call_id":"call_02"},{"role":"user","content":"[belay] more"}` +
		`,{"role":"user","content":"finish"}],"tool_choice":{"type":"function","function":{"name":"read"}},"reasoning_effort":"low","response_format":{"type":"json_schema","json_schema":{"name":"output","schema":{"type":"object"},"strict":false}},"max_completion_tokens":50}`
	if string(bodies[1]) != want {
		t.Errorf("\n%s\n%s", bodies[1], want)
	}
	if !bytes.HasPrefix(bodies[1], bodies[0][:len(head)]) || string(bodies[0]) != head+"]}" {
		t.Errorf("the second request doesn't begin with the first one's bytes:\n%s", bodies[0])
	}
}

// Pictures come as they are; an address elsewhere is left alone.
func TestPicturesInChat(t *testing.T) {
	p := chat(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, `{"choices":[{"delta":{"images":[{"type":"image_url","image_url":{"url":"data:image/webp;base64,cG5n"}},{"image_url":{"url":"https://host/a.png"}}]},"finish_reason":"stop"}]}`, "[DONE]")
	})
	if got := heard(t, p); got != `image/webp "png";stop` {
		t.Error(got)
	}
}

func TestWhatModelsAreKnownToTake(t *testing.T) {
	p, q := chat(t, nil), responses(t, nil)
	for able, search := range map[model.Able]bool{p: false, q: true} {
		if a := able.Abilities("gpt-5"); a != (model.Abilities{Search: search}) {
			t.Errorf("nobody knows the models, and they take %+v", a)
		}
	}
	p.Images, p.Files, q.Images, q.Files = TakesImages, TakesFiles, TakesImages, TakesFiles
	for able, search := range map[model.Able]bool{p: false, q: true} {
		if a := able.Abilities("gpt-5.2"); a != (model.Abilities{Images: true, Files: true, Search: search}) || able.Abilities("llama") != (model.Abilities{Search: search}) {
			t.Errorf("gpt-5.2 takes %+v", a)
		}
	}
}

func FuzzChatStream(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"stop"}]}`))
	f.Add([]byte(`{"error":{"message":"m","code":429}}`))
	f.Add([]byte("[DONE]"))
	f.Fuzz(func(t *testing.T, data []byte) { modeltest.Decoded(t, data, newChatDecoder) })
}

package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// far is a provider whose far end is h.
func far(t *testing.T, h http.HandlerFunc) *Messages {
	t.Helper()
	return &Messages{Service: wire.Service{Endpoint: modeltest.Far(t, h, "/v1"), Prefixes: wire.NewPrefixes(lru.New(1 << 20)), Images: TakesImages, Files: TakesFiles}}
}

// stream answers with events.
func stream(w http.ResponseWriter, events ...string) { modeltest.Events(w, "\n", events...) }

func TestTheLawsOfProviders(t *testing.T) {
	modeltest.Run(t, modeltest.Config{
		Stage: func(t *testing.T, s modeltest.Scene) (model.Provider, model.Request) {
			p := far(t, modelserver.New(func(modelserver.Asked) modelserver.Scene { return modelserver.Scene{Scene: s} }).ServeHTTP)
			return p, model.Request{Model: "claude-opus-5-5", System: "be brief", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}, Attempt: 1}
		},
		Fails: []string{"transient", "rate_limited", "overflow", "bad_request", "auth", "refused"},
	})
}

// Events as the vendor sends them, in short.
func begun(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func piece(i int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta)
}

func ended(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func stopped(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":7}}`
}

const (
	over = `{"type":"message_stop"}`
	hi   = `{"type":"text","text":"hi"}`
	read = `{"type":"tool_use","id":"a","name":"read","input":{}}`
)

func TestOddities(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"text in the start":           {[]string{begun(0, hi), ended(0), stopped("end_turn"), over}, "hi;stop"},
		"no last event":               {[]string{begun(0, hi), stopped("end_turn")}, "hi;stop"},
		"no end of a block":           {[]string{begun(0, read), piece(0, `{"type":"input_json_delta","partial_json":"{}"}`), stopped("tool_use"), over}, ";a read {};tool_calls"},
		"the end of a block twice":    {[]string{begun(0, read), ended(0), ended(0), stopped("tool_use"), over}, ";a read {};tool_calls"},
		"the start of a block twice":  {[]string{begun(0, read), begun(0, read), piece(0, `{"type":"input_json_delta","partial_json":"{\"k\":1}"}`), ended(0), stopped("tool_use"), over}, `;a read {"k":1};tool_calls`},
		"arguments in the start":      {[]string{begun(0, `{"type":"tool_use","id":"a","name":"read","input":{"k":1}}`), ended(0), stopped("tool_use"), over}, `;a read {"k":1};tool_calls`},
		"arguments that broke off":    {[]string{begun(0, read), piece(0, `{"type":"input_json_delta","partial_json":"{\"k"}`), ended(0), stopped("max_tokens"), over}, `;a read {"k;length`},
		"cut before the arguments":    {[]string{begun(0, read), ended(0), stopped("max_tokens"), over}, ";a read ;length"},
		"the same id twice":           {[]string{begun(0, read), ended(0), begun(1, read), ended(1), stopped("tool_use"), over}, ";a read {};call_2 read {};tool_calls"},
		"two blocks at once":          {[]string{begun(0, read), begun(1, `{"type":"tool_use","id":"b","name":"list","input":{}}`), piece(0, `{"type":"input_json_delta","partial_json":"{\"k\":0}"}`), piece(1, `{"type":"input_json_delta","partial_json":"{\"k\":1}"}`), ended(0), ended(1), stopped("tool_use"), over}, `;a read {"k":0};b list {"k":1};tool_calls`},
		"pings, and what is new":      {[]string{`{"type":"ping"}`, begun(0, `{"type":"hologram","x":1}`), piece(0, `{"type":"hologram_delta"}`), ended(0), `{"type":"fanfare"}`, begun(1, hi), ended(1), stopped("end_turn"), over}, "hi;stop"},
		"stop although there is one":  {[]string{begun(0, read), ended(0), stopped("end_turn"), over}, ";a read {};tool_calls"},
		"a stop sequence":             {[]string{begun(0, hi), stopped("stop_sequence"), over}, "hi;stop"},
		"too long":                    {[]string{begun(0, hi), stopped("max_tokens"), over}, "hi;length"},
		"the context is full":         {[]string{begun(0, hi), stopped("model_context_window_exceeded"), over}, "hi;length"},
		"paused":                      {[]string{begun(0, hi), stopped("pause_turn"), over}, "hi;length"},
		"refused in the middle":       {[]string{begun(0, hi), stopped("refusal"), over}, "hi;refused"},
		"thinking":                    {[]string{begun(0, `{"type":"thinking","thinking":"h","signature":""}`), piece(0, `{"type":"thinking_delta","thinking":"m"}`), piece(0, `{"type":"signature_delta","signature":"s"}`), ended(0), begun(1, hi), stopped("end_turn"), over}, "[h][m]hi;stop"},
		"nulls":                       {[]string{`{"type":"message_start","message":{"usage":null}}`, begun(0, hi), `{"type":"message_delta","delta":{"stop_reason":null},"usage":null}`, stopped("end_turn"), over}, "hi;stop"},
		"something after the message": {[]string{begun(0, hi), stopped("end_turn"), over, "garbage"}, "hi;stop"},
	} {
		p := far(t, func(w http.ResponseWriter, r *http.Request) { stream(w, c.events...) })
		if got, _, err := modeltest.Heard(t, p, model.Request{Model: "m"}); got != c.want || err != nil {
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	failed := func(kind string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"it failed, sk-secret"}}`
	}
	for name, c := range map[string]struct {
		events []string
		class  string
	}{
		"garbage":                     {[]string{`{"type":`}, "transient"},
		"nothing":                     {nil, "transient"},
		"no stop reason":              {[]string{begun(0, hi), ended(0), over}, "transient"},
		"a piece of nothing":          {[]string{piece(3, `{"type":"input_json_delta","partial_json":"{}"}`), stopped("tool_use"), over}, "transient"},
		"overloaded":                  {[]string{begun(0, hi), failed("overloaded_error")}, "transient"},
		"an error of theirs":          {[]string{failed("api_error")}, "transient"},
		"too many requests":           {[]string{failed("rate_limit_error")}, "rate_limited"},
		"a key that isn't valid":      {[]string{failed("authentication_error")}, "auth"},
		"out of credit":               {[]string{failed("billing_error")}, "auth"},
		"a request that isn't right":  {[]string{failed("invalid_request_error")}, "bad_request"},
		"an error nobody knows":       {[]string{failed("martian_error")}, "transient"},
		"refused before a word":       {[]string{stopped("refusal"), over}, "refused"},
		"overloaded after the reason": {[]string{begun(0, hi), stopped("end_turn"), failed("overloaded_error")}, "transient"},
	} {
		p := far(t, func(w http.ResponseWriter, r *http.Request) { stream(w, c.events...) })
		_, chunks, err := modeltest.Heard(t, p, model.Request{Model: "m"})
		if f := model.AsError(err); err == nil || f.Class != c.class || strings.Contains(f.Message, "sk-secret") {
			t.Errorf("%s: %v", name, err)
		}
		if slices.ContainsFunc(chunks, func(c model.Chunk) bool { return c.Stop != "" }) {
			t.Errorf("%s: it looks finished", name)
		}
	}
}

func TestEndlessPartsAreGivenUp(t *testing.T) {
	for _, c := range []struct{ block, delta, field string }{
		{read, "input_json_delta", "partial_json"},
		{`{"type":"thinking"}`, "thinking_delta", "thinking"},
		{`{"type":"thinking"}`, "signature_delta", "signature"},
	} {
		p := far(t, func(w http.ResponseWriter, r *http.Request) {
			stream(w, begun(0, c.block))
			more := piece(0, `{"type":"`+c.delta+`","`+c.field+`":"`+strings.Repeat("x", 1<<20)+`"}`)
			for range 64 {
				if _, err := fmt.Fprintf(w, "data: %s\n\n", more); err != nil {
					return
				}
			}
		})
		if _, _, err := modeltest.Heard(t, p, model.Request{Model: "m"}); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v", c.delta, err)
		}
	}
}

func TestUsage(t *testing.T) {
	p := far(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, `{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"output_tokens":1}}}`,
			begun(0, hi), ended(0), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":12,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`, over)
	})
	_, chunks, err := modeltest.Heard(t, p, model.Request{Model: "m"})
	want := belay.Usage{Input: 142, Output: 9, Cached: 100, CacheWrite: 30, Reasoning: 4, Reported: true}
	if u := chunks[len(chunks)-1].Usage; err != nil || u == nil || *u != want {
		t.Errorf("%+v %v", u, err)
	}
}

// The request, as bytes: what one conversation sends in two steps.
func TestTheRequest(t *testing.T) {
	var bodies [][]byte
	var header http.Header
	p := far(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies, header = append(bodies, b), r.Header
		stream(w, begun(0, hi), stopped("end_turn"), over)
	})
	ref := func(media string) *belay.Attachment {
		return &belay.Attachment{Name: "a", Ref: belay.Ref{Digest: belay.DigestOf([]byte("png")), Media: media, Size: 3}}
	}
	r := model.Request{Model: "claude-opus-4-5", System: "be <brief>", Tools: []model.ToolDef{{Name: "read", Doc: "reads", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []belay.Message{{Role: belay.RoleUser, Parts: []belay.Part{{Text: "see"}, {Image: ref("image/png")}, {File: ref("application/pdf")}, {Image: ref("image/tiff")}}}},
		Content:  func(context.Context, belay.Digest) ([]byte, error) { return []byte("png"), nil },
	}
	if _, _, err := modeltest.Heard(t, p, r); err != nil {
		t.Fatal(err)
	}
	r.Messages = append(r.Messages,
		belay.Message{Role: belay.RoleAssistant, Parts: []belay.Part{
			{Echo: &belay.Echo{By: "anthropic/claude-opus-4-5", Data: json.RawMessage(`{"blocks":[{"type":"thinking","thinking":"hm","signature":"s"}]}`)}},
			{Echo: &belay.Echo{By: "anthropic/another", Data: json.RawMessage(`{"blocks":[{}]}`)}},
			{Text: "I look."},
			{Call: &belay.ToolCall{ID: "call_1-f", Name: "read", Args: json.RawMessage(`{"path":"a"}`)}},
			{Call: &belay.ToolCall{ID: "call_2", Name: "read", Args: json.RawMessage(`"{\"pa"`), Echo: &belay.Echo{By: "anthropic/claude-opus-4-5", Data: json.RawMessage(`{"blocks":[{"type":"redacted_thinking","data":"d"}]}`)}}}}},
		belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Text: "[belay] more"}, {Result: &belay.ToolResult{ID: "call_1-f", Text: "A & B"}}, {Result: &belay.ToolResult{ID: "call_2", Error: true}}}},
		belay.Message{Role: belay.RoleUser, Parts: []belay.Part{{Text: " \n"}}})
	r.Note, r.ForceTool, r.MaxOutput, r.Effort = "finish", "read", 50, "high"
	if _, _, err := modeltest.Heard(t, p, r); err != nil {
		t.Fatal(err)
	}
	head := `{"model":"claude-opus-4-5","stream":true,"tools":[{"name":"read","description":"reads","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"system":[{"type":"text","text":"be <brief>","cache_control":{"type":"ephemeral"}}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"cG5n"},"title":"a"},{"type":"text","text":"[belay] [image: a (image/tiff, 3 bytes) isn't shown: this model doesn't take it]"}`
	want := head + `]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look."},{"type":"tool_use","id":"call_1-f","name":"read","input":{"path":"a"}},{"type":"redacted_thinking","data":"d"},{"type":"tool_use","id":"call_2","name":"read","input":{"unreadable":"{\"pa"}}` +
		`]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1-f","content":"A & B"},{"type":"tool_result","tool_use_id":"call_2","is_error":true},{"type":"text","text":"[belay] more"},{"type":"text","text":"finish"}]}` +
		`],"max_tokens":50,"cache_control":{"type":"ephemeral"},"tool_choice":{"type":"tool","name":"read"}}`
	if string(bodies[1]) != want {
		t.Errorf("\n%s\n%s", bodies[1], want)
	}
	if string(bodies[0]) != head+`]}],"max_tokens":32000,"cache_control":{"type":"ephemeral"}}` {
		t.Errorf("the second request doesn't begin with the first one's bytes:\n%s", bodies[0])
	}
	if header.Get("X-Api-Key") != "sk-secret" || header.Get("Anthropic-Version") != "2023-06-01" || header.Get("Authorization") != "" {
		t.Errorf("the header is %v", header)
	}
}

// The messages of each request begin with those of the one before it, also where
// a note of the one is a message of the next.
// Guarantee: M11.
func TestPrefixBytes(t *testing.T) {
	var bodies [][]byte
	p := far(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, b)
		stream(w, begun(0, hi), stopped("end_turn"), over)
	})
	modeltest.Grow(t, p, model.Request{Model: "claude-sonnet-4-6", System: "s"}, func(size int) { p.Prefixes = wire.NewPrefixes(lru.New(size)) })
	for i := 1; i < len(bodies); i++ {
		end := bytes.LastIndex(bodies[i-1], []byte(`]}],"max_tokens"`))
		if end < 0 || !bytes.HasPrefix(bodies[i], bodies[i-1][:end]) {
			t.Fatalf("request %d doesn't begin with the bytes of the one before it:\n%s\n%s", i+1, bodies[i-1], bodies[i])
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(begun(0, hi) + "\n" + piece(0, `{"type":"text_delta","text":"x"}`) + "\n" + ended(0) + "\n" + stopped("end_turn") + "\n" + over))
	f.Add([]byte(begun(0, read) + "\n" + piece(0, `{"type":"input_json_delta","partial_json":"{}"}`) + "\n" + stopped("tool_use")))
	f.Add([]byte(begun(1, `{"type":"thinking","signature":"s"}`) + "\n" + `{"type":"error","error":{"type":"overloaded_error"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range modeltest.Decoded(t, data, func(out *wire.Out) wire.Decoder[event] { return newDecoder(out, "anthropic/m") }) {
			if c.Echo != nil && !json.Valid(c.Echo.Data) {
				t.Errorf("an echo is no JSON: %s", c.Echo.Data)
			}
		}
	})
}

package google

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
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// far is a provider whose far end is h.
func far(t *testing.T, h http.HandlerFunc) *Gemini {
	t.Helper()
	return &Gemini{Service: wire.Service{Endpoint: modeltest.Far(t, h, "/v1beta"), Prefixes: wire.NewPrefixes(lru.New(1 << 20)), Images: TakesImages, Files: TakesFiles}}
}

// stream answers with events.
func stream(w http.ResponseWriter, events ...string) { modeltest.Events(w, "\r\n", events...) }

func TestTheLawsOfProviders(t *testing.T) {
	modeltest.Run(t, modeltest.Config{
		Stage: func(t *testing.T, s modeltest.Scene) (model.Provider, model.Request) {
			p := far(t, modelserver.New(func(modelserver.Asked) modelserver.Scene { return modelserver.Scene{Scene: s} }).ServeHTTP)
			return p, model.Request{Model: "gemini-3-flash", System: "be brief", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}, Attempt: 1}
		},
		Fails:   []string{"transient", "rate_limited", "overflow", "bad_request", "auth"},
		Objects: true,
	})
}

// said is a message of a stream: parts, and why it ended.
func said(finish string, parts ...string) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":%q}]}`, strings.Join(parts, ","), finish)
}

const (
	hi   = `{"text":"hi"}`
	read = `{"functionCall":{"name":"read","args":{"k":1}}}`
	list = `{"functionCall":{"id":"x","name":"list"}}`
)

func TestOddities(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"all at once":            {[]string{said("STOP", hi, read, list)}, `hi;call_1 read {"k":1};call_2 list {};tool_calls`},
		"a reason in each":       {[]string{said("STOP", hi), said("STOP", read), said("STOP")}, `hi;call_1 read {"k":1};tool_calls`},
		"no content at the end":  {[]string{said("", hi), `{"candidates":[{"finishReason":"STOP"}]}`, `{"usageMetadata":{"promptTokenCount":1}}`}, "hi;stop"},
		"another candidate":      {[]string{`{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"STOP"},{"index":0,"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`}, "hi;stop"},
		"null arguments":         {[]string{said("STOP", `{"functionCall":{"name":"read","args":null}}`)}, ";call_1 read {};tool_calls"},
		"a thought":              {[]string{said("", `{"text":"hm","thought":true}`), said("STOP", hi)}, "[hm]hi;stop"},
		"a picture":              {[]string{said("STOP", `{"inlineData":{"mimeType":"image/png","data":"cG5n"}}`)}, ";image/png png;stop"},
		"a sound":                {[]string{said("STOP", hi, `{"inlineData":{"mimeType":"audio/wav","data":"cG5n"}}`)}, "hi;stop"},
		"what is new":            {[]string{said("STOP", hi, `{"hologram":{}}`)}, "hi;stop"},
		"too long":               {[]string{said("MAX_TOKENS", hi)}, "hi;length"},
		"to be continued":        {[]string{said("CONTINUATION", hi)}, "hi;length"},
		"stopped for safety":     {[]string{said("", hi), said("SAFETY")}, "hi;refused"},
		"recitation":             {[]string{said("RECITATION", hi)}, "hi;refused"},
		"prohibited":             {[]string{said("PROHIBITED_CONTENT", hi)}, "hi;refused"},
		"empty":                  {[]string{said("STOP", `{"text":""}`)}, ";stop"},
		"a list of nothing, nil": {[]string{`{"candidates":null,"error":null,"usageMetadata":null}`, said("STOP", hi)}, "hi;stop"},
	} {
		p := far(t, func(w http.ResponseWriter, r *http.Request) { stream(w, c.events...) })
		if got, _, err := modeltest.Heard(t, p, model.Request{Model: "m"}); got != c.want || err != nil {
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		class  string
		says   string
	}{
		"garbage":                  {[]string{`{"candidates":`}, "transient", "no JSON"},
		"nothing":                  {nil, "transient", "broke off"},
		"no reason":                {[]string{said("", hi)}, "transient", "broke off"},
		"a call nobody can read":   {[]string{said("MALFORMED_FUNCTION_CALL", hi)}, "transient", "MALFORMED_FUNCTION_CALL"},
		"a tool that isn't":        {[]string{said("UNEXPECTED_TOOL_CALL")}, "transient", "UNEXPECTED_TOOL_CALL"},
		"no picture":               {[]string{said("NO_IMAGE")}, "transient", "NO_IMAGE"},
		"some other reason":        {[]string{`{"candidates":[{"finishReason":"OTHER","finishMessage":"who knows sk-secret"}]}`}, "transient", "who knows [key]"},
		"no signature":             {[]string{said("MISSING_THOUGHT_SIGNATURE")}, "bad_request", "signature"},
		"refused before a word":    {[]string{said("SAFETY")}, "refused", "SAFETY"},
		"the request is refused":   {[]string{`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"no"}}`}, "refused", "PROHIBITED_CONTENT no"},
		"overloaded in the middle": {[]string{said("", hi), `{"error":{"code":503,"message":"The model is overloaded. sk-secret","status":"UNAVAILABLE"}}`}, "transient", "overloaded. [key]"},
		"too many requests":        {[]string{`{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`}, "rate_limited", "quota"},
	} {
		p := far(t, func(w http.ResponseWriter, r *http.Request) { stream(w, c.events...) })
		_, chunks, err := modeltest.Heard(t, p, model.Request{Model: "m"})
		f := model.AsError(err)
		if err == nil || f.Class != c.class || !strings.Contains(f.Message, c.says) || strings.Contains(f.Message, "sk-secret") {
			t.Errorf("%s: %v", name, err)
		}
		if f.Class == "rate_limited" && f.RetryAfter != 7*time.Second {
			t.Errorf("%s: wait %s", name, f.RetryAfter)
		}
		if slices.ContainsFunc(chunks, func(c model.Chunk) bool { return c.Stop != "" }) {
			t.Errorf("%s: it looks finished", name)
		}
	}
	p := far(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		more := said("", `{"functionCall":{"name":"x","args":{"k":"`+strings.Repeat("x", 4<<20)+`"}}}`)
		for range 64 {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", more); err != nil {
				return
			}
		}
	})
	if _, _, err := modeltest.Heard(t, p, model.Request{Model: "m"}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("endless calls: %v", err)
	}
}

func TestUsage(t *testing.T) {
	p := far(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, `{"usageMetadata":{"promptTokenCount":120,"totalTokenCount":120}}`,
			`{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":120,"toolUsePromptTokenCount":3,"cachedContentTokenCount":100,"candidatesTokenCount":7,"thoughtsTokenCount":20}}`)
	})
	_, chunks, err := modeltest.Heard(t, p, model.Request{Model: "m"})
	want := belay.Usage{Input: 123, Output: 27, Cached: 100, Reasoning: 20, Reported: true}
	if u := chunks[len(chunks)-1].Usage; err != nil || u == nil || *u != want {
		t.Errorf("%+v %v", u, err)
	}
}

// The request, as bytes: what one conversation sends in two steps.
func TestTheRequest(t *testing.T) {
	var bodies [][]byte
	var last *http.Request
	p := far(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies, last = append(bodies, b), r
		stream(w, said("STOP", hi))
	})
	ref := func(media string) *belay.Attachment {
		return &belay.Attachment{Name: "a", Ref: belay.Ref{Digest: belay.DigestOf([]byte("png")), Media: media, Size: 3}}
	}
	r := model.Request{Model: "gemini-3-pro-preview", System: "be <brief>", Tools: []model.ToolDef{{Name: "read", Doc: "reads", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []belay.Message{{Role: belay.RoleUser, Parts: []belay.Part{{Text: "see"}, {Image: ref("image/png")}, {File: ref("application/pdf")}, {File: ref("application/zip")}}}},
		Content:  func(context.Context, belay.Digest) ([]byte, error) { return []byte("png"), nil },
	}
	if _, _, err := modeltest.Heard(t, p, r); err != nil {
		t.Fatal(err)
	}
	signed := func(by, data string) *belay.Echo { return &belay.Echo{By: by, Data: json.RawMessage(data)} }
	r.Messages = append(r.Messages,
		belay.Message{Role: belay.RoleAssistant, Parts: []belay.Part{{Echo: signed("google/gemini-3-pro-preview", `{"at":3,"len":4,"signature":"T"}`)}, {Text: "I look."},
			{Call: &belay.ToolCall{ID: "call_1", Name: "read", Args: json.RawMessage(`{"path":"a"}`), Echo: signed("google/gemini-3-pro-preview", `{"signature":"S"}`)}},
			{Call: &belay.ToolCall{ID: "call_2", Name: "list", Args: json.RawMessage(`"{\"pa"`)}}}},
		belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: "call_1", Name: "read", Text: "A & B"}}, {Text: "[belay] more"}, {Result: &belay.ToolResult{ID: "call_2", Text: "bad", Error: true}}}},
		belay.Message{Role: belay.RoleAssistant, Parts: []belay.Part{{Echo: signed("anthropic/x", `{"blocks":[]}`)}, {Call: &belay.ToolCall{ID: "call_3", Name: "read", Args: json.RawMessage(`{}`), Echo: signed("anthropic/x", `{"blocks":[]}`)}}}},
		belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: "call_3"}}}},
		belay.Message{Role: belay.RoleUser, Parts: []belay.Part{{Text: " "}}})
	r.Note, r.ForceTool, r.MaxOutput, r.Effort = "finish", "read", 50, "medium"
	if _, _, err := modeltest.Heard(t, p, r); err != nil {
		t.Fatal(err)
	}
	head := `{"systemInstruction":{"parts":[{"text":"be <brief>"}]},"tools":[{"functionDeclarations":[{"name":"read","description":"reads","parametersJsonSchema":{"type":"object"}}]}],"contents":[` +
		`{"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"inlineData":{"mimeType":"application/pdf","data":"cG5n"}},{"text":"[belay] [file: a (application/zip, 3 bytes) isn't shown: this model doesn't take it]"}]}`
	want := head + `,{"role":"model","parts":[{"text":"I l"},{"text":"ook.","thoughtSignature":"T"},{"functionCall":{"name":"read","args":{"path":"a"}},"thoughtSignature":"S"},{"functionCall":{"name":"list","args":{"unreadable":"{\"pa"}}}]}` +
		`,{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"A & B"}}},{"functionResponse":{"name":"list","response":{"error":"bad"}}}]},{"role":"user","parts":[{"text":"[belay] more"}]}` +
		`,{"role":"model","parts":[{"functionCall":{"name":"read","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":""}}}]}` +
		`,{"role":"user","parts":[{"text":"finish"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["read"]}},"generationConfig":{"maxOutputTokens":50,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}}`
	if string(bodies[1]) != want {
		t.Errorf("\n%s\n%s", bodies[1], want)
	}
	if string(bodies[0]) != head+`]}` {
		t.Errorf("the second request doesn't begin with the first one's bytes:\n%s", bodies[0])
	}
	if last.URL.String() != "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse" || last.Header.Get("X-Goog-Api-Key") != "sk-secret" || last.Header.Get("Authorization") != "" {
		t.Errorf("%s %v", last.URL, last.Header)
	}
}

func TestPath(t *testing.T) {
	for name, want := range map[string]string{
		"gemini-2.5-pro": "/models/gemini-2.5-pro", "models/gemini-2.5-pro": "/models/gemini-2.5-pro", "tunedModels/mine": "/tunedModels/mine", "a/../b?key=1": "/models/a%2F..%2Fb%3Fkey=1",
	} {
		if got := path(name); got != want+":streamGenerateContent?alt=sse" {
			t.Errorf("%s: %s", name, got)
		}
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
		stream(w, said("STOP", hi))
	})
	modeltest.Grow(t, p, model.Request{Model: "gemini-3-flash"}, func(size int) { p.Prefixes = wire.NewPrefixes(lru.New(size)) })
	for i := 1; i < len(bodies); i++ {
		end := bytes.LastIndex(bodies[i-1], []byte(`}]}]`)) + len(`}]}`)
		if end < 3 || !bytes.HasPrefix(bodies[i], bodies[i-1][:end]) {
			t.Fatalf("request %d doesn't begin with the bytes of the one before it:\n%s\n%s", i+1, bodies[i-1], bodies[i])
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(said("", hi) + "\n" + said("STOP", read)))
	f.Add([]byte(`{"promptFeedback":{"blockReason":"SAFETY"}}`))
	f.Add([]byte(`{"error":{"code":503}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range modeltest.Decoded(t, data, func(out *wire.Out) wire.Decoder[piece] { return newDecoder(out, "google/m") }) {
			if c.Echo != nil && !json.Valid(c.Echo.Data) {
				t.Errorf("an echo is no JSON: %s", c.Echo.Data)
			}
		}
	})
}

package modelserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/belay-run/belay/internal/model/modeltest"
)

// gemini is Google's Gemini API, streaming.
// Source: https://ai.google.dev/api/generate-content, November 2026.
var gemini = Protocol{
	Name:    "google",
	Path:    func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, ":streamGenerateContent") },
	Read:    readGemini,
	Events:  geminiEvents,
	Problem: geminiProblem,
	Broken:  func(class, message string) Event { return Event{Data: geminiProblem(statusOf(class), class, message)} },
}

// The request, with every field that is known: the vendor refuses others.
type (
	geminiRequest struct {
		Contents []geminiContent `json:"contents"`
		System   geminiContent   `json:"systemInstruction"`
		Tools    []struct {
			Functions []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
				Schema      json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Config struct {
			Calling struct {
				Mode    string   `json:"mode"`
				Allowed []string `json:"allowedFunctionNames"`
			} `json:"functionCallingConfig"`
		} `json:"toolConfig"`
		Generation struct {
			Max         int             `json:"maxOutputTokens"`
			Temperature float64         `json:"temperature"`
			Media       string          `json:"responseMimeType"`
			Schema      json.RawMessage `json:"responseJsonSchema"`
			Thinking    struct {
				Thoughts bool   `json:"includeThoughts"`
				Level    string `json:"thinkingLevel"`
				Budget   *int   `json:"thinkingBudget"`
			} `json:"thinkingConfig"`
		} `json:"generationConfig"`
	}
	geminiContent struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	}
	geminiInline struct {
		Media string `json:"mimeType"`
		Data  []byte `json:"data"`
	}
	geminiPart struct {
		Text      *string       `json:"text"`
		Thought   bool          `json:"thought"`
		Signature string        `json:"thoughtSignature"`
		Inline    *geminiInline `json:"inlineData"`
		Call      *struct {
			ID   string                     `json:"id"`
			Name string                     `json:"name"`
			Args map[string]json.RawMessage `json:"args"`
		} `json:"functionCall"`
		Response *struct {
			ID       string            `json:"id"`
			Name     string            `json:"name"`
			Response map[string]string `json:"response"`
			Parts    []struct {
				Inline *geminiInline `json:"inlineData"`
			} `json:"parts"`
		} `json:"functionResponse"`
	}
)

func readGemini(r *http.Request, body []byte) (Asked, error) {
	var q geminiRequest
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return Asked{}, fmt.Errorf("invalid JSON payload received: %w", err)
	}
	_, name, _ := strings.Cut(strings.TrimSuffix(r.URL.Path, ":streamGenerateContent"), "/models/")
	think := q.Generation.Thinking
	switch {
	case r.URL.Query().Get("alt") != "sse":
		return Asked{}, errors.New("only server-sent events are spoken here")
	case r.URL.Query().Get("key") != "":
		return Asked{}, errors.New("the key is in the address, where logs have it")
	case name == "" || len(q.Contents) == 0:
		return Asked{}, errors.New("contents is not specified")
	case think.Level != "" && think.Budget != nil:
		return Asked{}, errors.New("thinking level and thinking budget can't be used together")
	}
	a := Asked{Model: name, Key: r.Header.Get("X-Goog-Api-Key")}
	for _, p := range q.System.Parts {
		if p.Text != nil {
			a.System += *p.Text
		}
	}
	for _, t := range q.Tools {
		for _, f := range t.Functions {
			a.Tools = append(a.Tools, f.Name)
		}
	}
	if c := q.Config.Calling; c.Mode == "ANY" && len(c.Allowed) == 1 {
		a.Force = c.Allowed[0]
	}
	return a, a.geminiContents(q.Contents)
}

// geminiContents takes the conversation apart. The turn after calls has as many
// results, of the same functions.
func (a *Asked) geminiContents(contents []geminiContent) error {
	var open []string // functions that were called right before
	if contents[0].Role != "user" || contents[len(contents)-1].Role != "user" {
		return errors.New("the conversation must begin and end with the user")
	}
	for i, c := range contents {
		if c.Role != "user" && c.Role != "model" || len(c.Parts) == 0 {
			return fmt.Errorf("contents[%d]: a role user or model and parts are needed", i)
		}
		var calls, results []string
		for _, p := range c.Parts {
			call, result, err := a.geminiPart(p)
			if err != nil {
				return fmt.Errorf("contents[%d]: %w", i, err)
			}
			if call != "" {
				if len(calls) == 0 && p.Signature == "" && strings.HasPrefix(a.Model, "gemini-3") {
					return fmt.Errorf("function call %s in the %d. content block is missing a thought_signature", call, i+1)
				}
				calls = append(calls, call)
			}
			if result != "" {
				results = append(results, result)
			}
		}
		if fmt.Sprint(results) != fmt.Sprint(open) {
			return fmt.Errorf("contents[%d]: the function responses %v aren't those of the calls %v right before", i, results, open)
		}
		open = calls
	}
	return nil
}

// inline counts a picture or a document; false: it is none.
func (a *Asked) inline(in *geminiInline) bool {
	switch {
	case in == nil || in.Media == "" || len(in.Data) == 0:
		return false
	case strings.HasPrefix(in.Media, "image/"):
		a.Images++
	default:
		a.Files++
	}
	return true
}

func (a *Asked) geminiPart(p geminiPart) (call, result string, err error) {
	if p.Signature != "" {
		a.Echoes = append(a.Echoes, p.Signature)
	}
	switch {
	case p.Call != nil:
		return p.Call.Name, "", nil
	case p.Response != nil:
		a.Results++
		a.Texts = append(a.Texts, p.Response.Response["output"]+p.Response.Response["error"])
		for _, part := range p.Response.Parts {
			if !strings.HasPrefix(a.Model, "gemini-3") || !a.inline(part.Inline) {
				return "", "", errors.New("parts of a function response: this model takes none, or data is missing")
			}
		}
		return "", p.Response.Name, nil
	case p.Inline != nil && a.inline(p.Inline):
		return "", "", nil
	case p.Text != nil && (*p.Text != "" || p.Signature != ""):
		if *p.Text != "" {
			a.Texts = append(a.Texts, *p.Text)
		}
		return "", "", nil
	}
	return "", "", errors.New("a part has no data")
}

func geminiEvents(a Asked, s modeltest.Scene) []Event {
	var out []Event
	say := func(parts []any, more obj) {
		c := obj{"index": 0, "content": obj{"role": "model", "parts": parts}}
		v := obj{"candidates": []any{c}, "modelVersion": a.Model, "responseId": "r1"}
		if finish, ok := more["finish"]; ok {
			c["finishReason"] = finish
		}
		if usage, ok := more["usage"]; ok {
			v["usageMetadata"] = usage
		}
		out = append(out, Event{Data: plain(v)})
	}
	if s.Reasoning != "" {
		say([]any{obj{"text": s.Reasoning, "thought": true}}, nil)
	}
	for _, piece := range pieces(s) {
		say([]any{obj{"text": piece}}, nil)
	}
	if s.Cut || s.Hang || s.Fail != "" {
		return out
	}
	for i, c := range s.Calls { // the first of an answer is signed
		p := obj{"functionCall": obj{"name": c.Name, "args": json.RawMessage(c.Args)}}
		if i == 0 {
			p["thoughtSignature"] = "c2lnbmVk"
		}
		say([]any{p}, nil)
	}
	last := []any{obj{"text": ""}}
	if len(s.Calls) == 0 && s.Reasoning != "" {
		last = []any{obj{"text": "", "thoughtSignature": "c2lnbmVk"}}
	}
	more := obj{"finish": map[string]string{"length": "MAX_TOKENS", "refused": "SAFETY"}[s.Stop]}
	if more["finish"] == "" {
		more["finish"] = "STOP"
	}
	if u := s.Usage; u != nil {
		more["usage"] = obj{"promptTokenCount": u.Input, "cachedContentTokenCount": u.Cached, "candidatesTokenCount": u.Output - u.Reasoning, "thoughtsTokenCount": u.Reasoning, "totalTokenCount": u.Input + u.Output}
	}
	say(last, more)
	return out
}

// geminiProblem is a failure as Google says it.
func geminiProblem(status int, class, message string) string {
	code := map[string]string{"transient": "UNAVAILABLE", "rate_limited": "RESOURCE_EXHAUSTED", "auth": "UNAUTHENTICATED", "internal": "INTERNAL"}[class]
	if code == "" {
		code = "INVALID_ARGUMENT"
	}
	if class == "overflow" {
		message = "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."
	}
	return plain(obj{"error": obj{"code": status, "message": message, "status": code}})
}

// plain is JSON that leaves what is in it as it was written.
func plain(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // what is written here is plain data
	}
	return strings.TrimSpace(b.String())
}

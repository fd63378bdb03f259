package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/modeltest"
)

// chat is Chat Completions.
// Source: https://platform.openai.com/docs/api-reference/chat, November 2026.
var chat = Protocol{
	Name:    "openai-chat",
	Path:    func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/chat/completions") },
	Read:    readChat,
	Events:  chatEvents,
	Problem: openaiProblem,
	Broken:  func(class, message string) Event { return Event{Data: openaiProblem(statusOf(class), class, message)} },
}

type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		CallID  string          `json:"tool_call_id"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Choice json.RawMessage `json:"tool_choice"`
}

func readChat(r *http.Request, body []byte) (Asked, error) {
	var q chatRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return Asked{}, err
	}
	if !q.Stream || q.Model == "" || len(q.Messages) == 0 {
		return Asked{}, errors.New("a stream, a model and messages are needed")
	}
	a := Asked{Model: q.Model, Key: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}
	for _, m := range q.Messages {
		text := a.content(m.Content)
		switch m.Role {
		case "system", "developer":
			a.System += text
			continue
		case "tool":
			a.Results++
		}
		a.Texts = append(a.Texts, text)
	}
	for _, t := range q.Tools {
		a.Tools = append(a.Tools, t.Function.Name)
	}
	var force struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(q.Choice, &force) == nil {
		a.Force = force.Function.Name
	}
	return a, nil
}

// content is the text of a message, which is a string or a list of parts.
func (a *Asked) content(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	json.Unmarshal(raw, &parts) //nolint:errcheck // null: the message has calls only
	for _, p := range parts {
		text += p.Text
		switch p.Type {
		case "image_url", "input_image", "image":
			a.Images++
		case "file", "input_file", "document":
			a.Files++
		}
	}
	return text
}

func chatEvents(a Asked, s modeltest.Scene) []Event {
	var out []Event
	delta := func(v any, finish any) {
		out = append(out, Event{Data: js(obj{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": a.Model,
			"choices": []any{obj{"index": 0, "delta": v, "finish_reason": finish}}})})
	}
	delta(obj{"role": "assistant", "content": ""}, nil)
	if s.Reasoning != "" { // a field of the servers that imitate the protocol
		delta(obj{"reasoning_content": s.Reasoning}, nil)
	}
	for _, piece := range pieces(s) {
		delta(obj{"content": piece}, nil)
	}
	if s.Cut || s.Hang || s.Fail != "" {
		return out
	}
	for i, c := range s.Calls { // the name first, the arguments in two pieces
		half := len(c.Args) / 2
		delta(obj{"tool_calls": []any{obj{"index": i, "id": fmt.Sprint("c", i), "type": "function", "function": obj{"name": c.Name, "arguments": ""}}}}, nil)
		delta(obj{"tool_calls": []any{obj{"index": i, "function": obj{"arguments": c.Args[:half]}}}}, nil)
		delta(obj{"tool_calls": []any{obj{"index": i, "function": obj{"arguments": c.Args[half:]}}}}, nil)
	}
	finish := s.Stop
	if finish == "refused" {
		finish = "content_filter"
	}
	delta(obj{}, finish)
	if u := s.Usage; u != nil {
		out = append(out, Event{Data: js(obj{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": a.Model, "choices": []any{}, "usage": openaiUsage(u)})})
	}
	return append(out, Event{Data: "[DONE]"})
}

func openaiUsage(u *belay.Usage) obj {
	return obj{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     obj{"cached_tokens": u.Cached},
		"completion_tokens_details": obj{"reasoning_tokens": u.Reasoning}}
}

// openaiProblem is a failure as OpenAI says it.
func openaiProblem(status int, class, message string) string {
	var code any // null where the vendor has no word for it
	if word := map[string]string{"overflow": "context_length_exceeded", "refused": "content_filter", "rate_limited": "rate_limit_exceeded", "auth": "invalid_api_key"}[class]; word != "" {
		code = word
	}
	return js(obj{"error": obj{"message": message, "type": "invalid_request_error", "param": nil, "code": code, "status": status}})
}

// pieces is a scene's text in as many parts as it says, characters kept whole.
func pieces(s modeltest.Scene) []string {
	text := []rune(s.Text)
	n := max(s.Parts, 1)
	var out []string
	for i := range n {
		if piece := string(text[i*len(text)/n : (i+1)*len(text)/n]); piece != "" {
			out = append(out, piece)
		}
	}
	return out
}

// obj is a JSON object of a vendor, written as its documents show it: the far end
// must not share the adapters' types, or both would be wrong in the same way.
type obj map[string]any

func js(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is written here is plain data
	}
	return string(b)
}

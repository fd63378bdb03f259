package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/modeltest"
)

// messages is Anthropic's Messages API.
// Source: https://platform.claude.com/docs/en/api/messages, November 2026.
var messages = Protocol{
	Name:    "anthropic",
	Path:    func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/messages") },
	Read:    readMessages,
	Events:  messagesEvents,
	Problem: func(_ int, class, message string) string { return messagesProblem(class, message) },
	Broken:  func(class, message string) Event { return Event{"error", messagesProblem(class, message)} },
}

type messagesRequest struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Max      int             `json:"max_tokens"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	Choice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	Thinking struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
}

type messagesBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	CallID    string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"input"`
	Content   json.RawMessage `json:"content"`
	Error     bool            `json:"is_error"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Source    struct {
		Type  string `json:"type"`
		Media string `json:"media_type"`
		Data  []byte `json:"data"`
	} `json:"source"`
}

func readMessages(r *http.Request, body []byte) (Asked, error) {
	var q messagesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return Asked{}, err
	}
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		return Asked{}, errors.New("anthropic-version: header is required")
	case !q.Stream || q.Model == "" || q.Max < 1 || len(q.Messages) == 0:
		return Asked{}, errors.New("a stream, a model, max_tokens and messages are needed")
	case q.Choice.Type == "tool" && (q.Thinking.Type == "enabled" || q.Thinking.Type == "adaptive"):
		return Asked{}, errors.New("thinking may not be enabled when tool_choice forces tool use")
	case q.Thinking.Type == "enabled" && (q.Thinking.Budget < 1024 || q.Thinking.Budget >= q.Max):
		return Asked{}, errors.New("thinking.budget_tokens: must be at least 1024 and less than max_tokens")
	}
	a := Asked{Model: q.Model, Key: r.Header.Get("X-Api-Key")}
	a.Force = q.Choice.Name
	system, err := messagesBlocks(q.System)
	if err != nil {
		return Asked{}, err
	}
	for _, b := range system {
		a.System += b.Text
	}
	for _, t := range q.Tools {
		a.Tools = append(a.Tools, t.Name)
	}
	open := map[string]bool{} // calls of the answer before
	last := ""
	for i, m := range q.Messages {
		if m.Role == last || m.Role != "user" && (m.Role != "assistant" || i == 0) {
			return Asked{}, fmt.Errorf("messages.%d: roles take turns and begin with the user", i)
		}
		last = m.Role
		if err := a.messagesContent(m.Content, open); err != nil {
			return Asked{}, fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	return a, nil
}

// messagesBlocks are a content's, which may be a text.
func messagesBlocks(raw json.RawMessage) ([]messagesBlock, error) {
	var text string
	if len(raw) == 0 {
		return nil, nil
	}
	if json.Unmarshal(raw, &text) == nil {
		return []messagesBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []messagesBlock
	err := json.Unmarshal(raw, &blocks)
	return blocks, err
}

// messagesContent takes a message apart. Every call of the answer before must
// have its result in it, before anything else.
func (a *Asked) messagesContent(raw json.RawMessage, open map[string]bool) error {
	blocks, err := messagesBlocks(raw)
	if err != nil {
		return err
	}
	if len(blocks) == 0 {
		return errors.New("content is empty")
	}
	calls := map[string]bool{}
	for _, b := range blocks {
		if b.Type == "tool_result" {
			if err := a.messagesResult(b, open); err != nil {
				return err
			}
			continue
		}
		if err := a.messagesBlock(b, calls); err != nil {
			return err
		}
		if len(open) > 0 {
			return errUnanswered
		}
	}
	if len(open) > 0 {
		return errUnanswered
	}
	maps.Copy(open, calls)
	return nil
}

var errUnanswered = errors.New("tool_use ids were found without tool_result blocks immediately after")

// messagesResult takes a call's result apart; the call is open no more.
func (a *Asked) messagesResult(b messagesBlock, open map[string]bool) error {
	if !open[b.CallID] {
		return fmt.Errorf("no tool_use with the id %q stands right before its result", b.CallID)
	}
	delete(open, b.CallID)
	a.Results++
	inner, err := messagesBlocks(b.Content)
	if err != nil {
		return err
	}
	text := ""
	for _, in := range inner {
		switch {
		case in.Type == "text":
			text += in.Text
		case b.Error:
			return errors.New("all content must be of type text if is_error is true")
		default:
			if err := a.messagesBlock(in, nil); err != nil {
				return err
			}
		}
	}
	a.Texts = append(a.Texts, text)
	return nil
}

// messagesBlock takes any other part of a message apart.
func (a *Asked) messagesBlock(b messagesBlock, calls map[string]bool) error {
	switch b.Type {
	case "tool_use":
		var input map[string]json.RawMessage
		if calls[b.ID] || b.ID == "" || json.Unmarshal(b.Input, &input) != nil {
			return errors.New("tool_use needs an id of its own and an object as input")
		}
		calls[b.ID] = true
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return errors.New("text content blocks must contain non-whitespace text")
		}
		a.Texts = append(a.Texts, b.Text)
	case "thinking", "redacted_thinking":
		if b.Signature == "" && b.Data == "" {
			return errors.New("thinking without its signature")
		}
		a.Echoes = append(a.Echoes, b.Signature+b.Data)
	case "image", "document":
		if b.Source.Type != "base64" || b.Source.Media == "" || len(b.Source.Data) == 0 {
			return errors.New("a source needs its media type and data")
		}
		if b.Type == "image" {
			a.Images++
		} else {
			a.Files++
		}
	default:
		return fmt.Errorf("no block is called %q", b.Type)
	}
	return nil
}

func messagesEvents(a Asked, s modeltest.Scene) []Event {
	var out []Event
	say := func(name string, v obj) {
		v["type"] = name
		out = append(out, Event{Name: name, Data: js(v)})
	}
	u := s.Usage
	if u == nil {
		u = &belay.Usage{}
	}
	usage := obj{"input_tokens": u.Input - u.Cached - u.CacheWrite, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.CacheWrite, "output_tokens": min(u.Output, 1)}
	say("message_start", obj{"message": obj{"id": "msg_1", "type": "message", "role": "assistant", "model": a.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}})
	index := 0
	block := func(start obj, deltas ...obj) {
		say("content_block_start", obj{"index": index, "content_block": start})
		for _, d := range deltas {
			say("content_block_delta", obj{"index": index, "delta": d})
		}
		say("content_block_stop", obj{"index": index})
		index++
	}
	say("ping", obj{})
	if s.Reasoning != "" {
		block(obj{"type": "thinking", "thinking": "", "signature": ""}, obj{"type": "thinking_delta", "thinking": s.Reasoning}, obj{"type": "signature_delta", "signature": "signed"})
	}
	var texts []obj
	for _, piece := range pieces(s) {
		texts = append(texts, obj{"type": "text_delta", "text": piece})
	}
	if len(texts) > 0 {
		block(obj{"type": "text", "text": ""}, texts...)
	}
	if s.Cut || s.Hang || s.Fail != "" {
		return out
	}
	for i, c := range s.Calls { // the arguments in two pieces
		half := len(c.Args) / 2
		block(obj{"type": "tool_use", "id": fmt.Sprint("toolu_", i), "name": c.Name, "input": obj{}},
			obj{"type": "input_json_delta", "partial_json": ""}, obj{"type": "input_json_delta", "partial_json": c.Args[:half]}, obj{"type": "input_json_delta", "partial_json": c.Args[half:]})
	}
	stop := map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refused": "refusal"}[s.Stop]
	say("message_delta", obj{"delta": obj{"stop_reason": stop, "stop_sequence": nil}, "usage": obj{"output_tokens": u.Output, "output_tokens_details": obj{"thinking_tokens": u.Reasoning}}})
	say("message_stop", obj{})
	return out
}

// messagesProblem is a failure as Anthropic says it.
func messagesProblem(class, message string) string {
	kind := map[string]string{"transient": "overloaded_error", "rate_limited": "rate_limit_error", "auth": "authentication_error", "internal": "api_error"}[class]
	if kind == "" {
		kind = "invalid_request_error"
	}
	switch class {
	case "overflow":
		message = "prompt is too long: 200001 tokens > 200000 maximum"
	case "refused":
		message = "Output blocked by content filtering policy"
	}
	return js(obj{"type": "error", "error": obj{"type": kind, "message": message}, "request_id": "req_1"})
}

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

// responses is the protocol of that name.
// Source: https://platform.openai.com/docs/api-reference/responses, November 2026.
var responses = Protocol{
	Name:    "openai",
	Path:    func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/responses") },
	Read:    readResponses,
	Events:  responsesEvents,
	Problem: openaiProblem,
	Broken: func(class, message string) Event {
		code := map[string]string{"overflow": "context_length_exceeded", "refused": "invalid_prompt", "rate_limited": "rate_limit_exceeded", "bad_request": "invalid_image"}[class]
		if code == "" {
			code = "server_error"
		}
		return Event{Name: "response.failed", Data: js(obj{"type": "response.failed", "response": obj{"id": "resp_1", "object": "response", "status": "failed",
			"error": obj{"code": code, "message": message}, "output": []any{}}})}
	},
}

type responsesRequest struct {
	Model        string `json:"model"`
	Stream       bool   `json:"stream"`
	Store        *bool  `json:"store"`
	Instructions string `json:"instructions"`
	Input        []struct {
		Type      string          `json:"type"`
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments *string         `json:"arguments"`
		Output    json.RawMessage `json:"output"`
		Encrypted string          `json:"encrypted_content"`
	} `json:"input"`
	Tools []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tools"`
	Choice json.RawMessage `json:"tool_choice"`
}

// readResponses refuses what the vendor refuses: a call without its output, an
// output without its call, reasoning that it can't know or that leads to nothing.
func readResponses(r *http.Request, body []byte) (Asked, error) {
	var q responsesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return Asked{}, err
	}
	if !q.Stream || q.Model == "" || len(q.Input) == 0 || q.Store == nil || *q.Store {
		return Asked{}, errors.New("a stream, a model, an input and no store are needed")
	}
	a := Asked{Model: q.Model, Key: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), System: q.Instructions}
	open := map[string]bool{}
	for i, it := range q.Input {
		if it.Type == "" && it.Role != "" {
			it.Type = "message" // which may go without saying
		}
		switch it.Type {
		case "message":
			a.Texts = append(a.Texts, a.content(it.Content))
		case "function_call":
			if it.CallID == "" || it.Name == "" || it.Arguments == nil || !json.Valid([]byte(*it.Arguments)) {
				return a, fmt.Errorf("input[%d]: a call needs call_id, name and arguments", i)
			}
			open[it.CallID] = true
			a.Texts = append(a.Texts, "")
		case "function_call_output":
			if it.Output == nil || !open[it.CallID] {
				return a, fmt.Errorf("no tool call found for function call output with call_id %s", it.CallID)
			}
			delete(open, it.CallID)
			a.Texts = append(a.Texts, a.content(it.Output))
			a.Results++
		case "reasoning":
			if it.Encrypted == "" {
				return a, errors.New("items are not persisted when store is set to false")
			}
			if i+1 == len(q.Input) || q.Input[i+1].Role == "user" || q.Input[i+1].Type == "function_call_output" {
				return a, errors.New("item of type reasoning was provided without its required following item")
			}
		default:
			return a, fmt.Errorf("input[%d]: invalid value %q", i, it.Type)
		}
	}
	for id := range open {
		return a, fmt.Errorf("no tool output found for function call %s", id)
	}
	for _, t := range q.Tools {
		a.Tools = append(a.Tools, t.Name)
	}
	var force struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(q.Choice, &force) == nil {
		a.Force = force.Name
	}
	return a, nil
}

// speech is a stream of typed events, numbered from zero.
type speech struct {
	out  []Event
	item int
	done []any // items
}

func (s *speech) say(kind string, fields obj) {
	fields["type"], fields["sequence_number"] = kind, len(s.out)
	s.out = append(s.out, Event{Name: kind, Data: js(fields)})
}

func (s *speech) added(item obj) {
	s.say("response.output_item.added", obj{"output_index": s.item, "item": item})
}

func (s *speech) finished(item obj) {
	s.say("response.output_item.done", obj{"output_index": s.item, "item": item})
	s.done = append(s.done, item)
	s.item++
}

func responsesEvents(a Asked, sc modeltest.Scene) []Event {
	s := &speech{}
	response := obj{"id": "resp_1", "object": "response", "created_at": 1, "model": a.Model, "status": "in_progress", "output": []any{}}
	s.say("response.created", obj{"response": response})
	s.say("response.in_progress", obj{"response": response})
	if sc.Reasoning != "" {
		s.reason(sc.Reasoning)
	}
	open := s.text(sc)
	if sc.Cut || sc.Hang || sc.Fail != "" {
		return s.out
	}
	if open != nil {
		s.finished(open)
	}
	for i, c := range sc.Calls {
		s.call(i, c.Name, c.Args)
	}
	response["output"], response["status"] = s.done, "completed"
	kind := "response.completed"
	if reason := map[string]string{"length": "max_output_tokens", "refused": "content_filter"}[sc.Stop]; reason != "" {
		kind = "response.incomplete"
		response["status"], response["incomplete_details"] = "incomplete", obj{"reason": reason}
	}
	if u := sc.Usage; u != nil {
		response["usage"] = responsesUsage(u)
	}
	s.say(kind, obj{"response": response})
	return s.out
}

// reason says a summary of reasoning, whose item goes back encrypted.
func (s *speech) reason(text string) {
	id := fmt.Sprint("rs_", s.item)
	at := func(more obj) obj {
		more["item_id"], more["output_index"], more["summary_index"] = id, s.item, 0
		return more
	}
	part := obj{"type": "summary_text", "text": text}
	s.added(obj{"id": id, "type": "reasoning", "summary": []any{}})
	s.say("response.reasoning_summary_part.added", at(obj{"part": obj{"type": "summary_text", "text": ""}}))
	s.say("response.reasoning_summary_text.delta", at(obj{"delta": text}))
	s.say("response.reasoning_summary_text.done", at(obj{"text": text}))
	s.say("response.reasoning_summary_part.done", at(obj{"part": part}))
	s.finished(obj{"id": id, "type": "reasoning", "summary": []any{part}, "encrypted_content": fmt.Sprintf("%x", text)})
}

// text says the scene's text and returns its item, which isn't done yet.
func (s *speech) text(sc modeltest.Scene) obj {
	if sc.Text == "" {
		return nil
	}
	id := fmt.Sprint("msg_", s.item)
	at := func(more obj) obj {
		more["item_id"], more["output_index"], more["content_index"] = id, s.item, 0
		return more
	}
	s.added(obj{"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []any{}})
	s.say("response.content_part.added", at(obj{"part": obj{"type": "output_text", "text": "", "annotations": []any{}}}))
	for _, piece := range pieces(sc) {
		s.say("response.output_text.delta", at(obj{"delta": piece, "logprobs": []any{}}))
	}
	if sc.Cut || sc.Hang || sc.Fail != "" {
		return nil
	}
	part := obj{"type": "output_text", "text": sc.Text, "annotations": []any{}}
	s.say("response.output_text.done", at(obj{"text": sc.Text}))
	s.say("response.content_part.done", at(obj{"part": part}))
	return obj{"id": id, "type": "message", "role": "assistant", "status": "completed", "content": []any{part}}
}

func (s *speech) call(i int, name, args string) {
	id := fmt.Sprint("fc_", s.item)
	item := func(status, args string) obj {
		return obj{"id": id, "type": "function_call", "call_id": fmt.Sprint("call_", i), "name": name, "arguments": args, "status": status}
	}
	s.added(item("in_progress", ""))
	half := len(args) / 2
	for _, piece := range []string{args[:half], args[half:]} {
		s.say("response.function_call_arguments.delta", obj{"item_id": id, "output_index": s.item, "delta": piece})
	}
	s.say("response.function_call_arguments.done", obj{"item_id": id, "output_index": s.item, "arguments": args})
	s.finished(item("completed", args))
}

func responsesUsage(u *belay.Usage) obj {
	return obj{"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"input_tokens_details":  obj{"cached_tokens": u.Cached},
		"output_tokens_details": obj{"reasoning_tokens": u.Reasoning}}
}

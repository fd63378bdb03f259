package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

func (p *Chat) body(ctx context.Context, r model.Request) (*wire.Body, error) {
	add := func(dst []byte, m *belay.Message) ([]byte, error) { return chatMessage(ctx, dst, m, r.Content) }
	return p.Prefixes.Body(r, chatName, chatHead, add, func(r model.Request) ([]byte, error) { return chatTail(ctx, r) })
}

// function is a tool as the protocol has it.
type function struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func chatHead(r model.Request) ([]byte, error) {
	var h struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Option struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Tools []function `json:"tools,omitempty"`
	}
	h.Model, h.Stream, h.Option.Usage = r.Model, true, true
	for _, t := range r.Tools {
		f := function{Type: "function"}
		f.Function.Name, f.Function.Description, f.Function.Parameters = t.Name, t.Doc, t.Schema
		h.Tools = append(h.Tools, f)
	}
	b, err := wire.JSON(h)
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-1], `,"messages":[`...)
	sys, err := wire.JSON(map[string]string{"role": "system", "content": r.System})
	return append(b, sys...), err
}

func chatTail(ctx context.Context, r model.Request) ([]byte, error) {
	var b []byte
	if r.Note != "" {
		note := belay.Text(belay.RoleUser, r.Note)
		var err error
		if b, err = chatMessage(ctx, b, &note, r.Content); err != nil {
			return nil, err
		}
	}
	var t struct {
		Choice *chatForced `json:"tool_choice,omitempty"`
		Effort string      `json:"reasoning_effort,omitempty"`
		Format *chatFormat `json:"response_format,omitempty"`
		Max    int         `json:"max_completion_tokens,omitempty"`
	}
	if r.ForceTool != "" {
		t.Choice = &chatForced{Type: "function"}
		t.Choice.Function.Name = r.ForceTool
	}
	if len(r.Output) > 0 {
		t.Format = &chatFormat{Type: "json_schema"}
		t.Format.Schema.Name, t.Format.Schema.Schema = outputName, r.Output
	}
	t.Effort, t.Max = r.Effort, r.MaxOutput
	return wire.Closed(b, t)
}

// Parts of a request's tail.
type (
	chatForced struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	chatFormat struct {
		Type   string `json:"type"`
		Schema struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
			Strict bool            `json:"strict"`
		} `json:"json_schema"`
	}
)

// The parts of messages.
type (
	chatCallOut struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
			Args string `json:"arguments"`
		} `json:"function"`
	}
	chatOut struct {
		Role    string        `json:"role"`
		Content any           `json:"content"` // text, parts, or null
		Calls   []chatCallOut `json:"tool_calls,omitempty"`
		CallID  string        `json:"tool_call_id,omitempty"`
	}
	chatPart struct {
		Type  string     `json:"type"`
		Text  string     `json:"text,omitempty"`
		Image *chatImage `json:"image_url,omitempty"`
		File  *chatFile  `json:"file,omitempty"`
	}
	chatImage struct {
		URL string `json:"url"`
	}
	chatFile struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	}
)

// chatMessage appends a message, each with a comma before it: the system's
// stands before all.
func chatMessage(ctx context.Context, dst []byte, m *belay.Message, read wire.Contents) ([]byte, error) {
	outs, err := chatMessages(ctx, m, read)
	for i := range outs {
		if err != nil {
			break
		}
		var b []byte
		b, err = wire.JSON(outs[i])
		dst = append(append(dst, ','), b...)
	}
	return dst, err
}

func chatMessages(ctx context.Context, m *belay.Message, read wire.Contents) ([]chatOut, error) {
	if m.Role == belay.RoleAssistant {
		return []chatOut{chatAnswer(m)}, nil
	}
	flat := m.Flat() // its results are texts
	results, rest := answered(&flat)
	var outs []chatOut
	for _, r := range results {
		outs = append(outs, chatOut{Role: "tool", Content: r.Text, CallID: callID(r.ID)})
	}
	if rest == nil {
		return outs, nil
	}
	content, err := userContent(ctx, rest, read, func(p *belay.Part, url string) chatPart {
		switch {
		case p.Image != nil:
			return chatPart{Type: "image_url", Image: &chatImage{url}}
		case p.File != nil:
			return chatPart{Type: "file", File: &chatFile{p.File.Name, url}}
		}
		return chatPart{Type: "text", Text: p.Text}
	})
	return append(outs, chatOut{Role: "user", Content: content}), err
}

// answered takes the results of calls out of a message. The rest is what the user
// says; nil: nothing, of a message that has results.
func answered(m *belay.Message) (results []*belay.ToolResult, rest *belay.Message) {
	if m.Role != belay.RoleTool {
		return nil, m
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Result != nil:
			results = append(results, p.Result)
		case rest == nil:
			rest = &belay.Message{Role: belay.RoleUser, Parts: []belay.Part{*p}}
		default:
			rest.Parts = append(rest.Parts, *p)
		}
	}
	return results, rest
}

// userContent is what a user says: text, or parts if there is more than text.
// part gets what is attached as a data URL.
func userContent[P any](ctx context.Context, m *belay.Message, read wire.Contents, part func(p *belay.Part, url string) P) (any, error) {
	var parts []P
	plain := true
	for i := range m.Parts {
		p, url := &m.Parts[i], ""
		if a := p.Attachment(); a != nil {
			plain = false
			b, err := read(ctx, a.Ref.Digest)
			if err != nil {
				return nil, err
			}
			url = "data:" + a.Ref.Media + ";base64," + base64.StdEncoding.EncodeToString(b)
		}
		parts = append(parts, part(p, url))
	}
	if plain {
		return wire.TextOf(m), nil
	}
	return parts, nil
}

func chatAnswer(m *belay.Message) chatOut {
	out := chatOut{Role: "assistant"}
	if text := wire.TextOf(m); text != "" {
		out.Content = text
	}
	for _, p := range m.Parts {
		if p.Call == nil {
			continue
		}
		c := chatCallOut{ID: callID(p.Call.ID), Type: "function"}
		c.Function.Name, c.Function.Args = p.Call.Name, argsOf(p.Call)
		out.Calls = append(out.Calls, c)
	}
	return out
}

// argsOf are a call's arguments. What the model wrote may be no object; servers
// with templates choke on that.
func argsOf(c *belay.ToolCall) string {
	if len(c.Args) == 0 || c.Args[0] != '{' {
		return `{"unreadable":` + cmp.Or(string(c.Args), `""`) + `}`
	}
	return string(c.Args)
}

// callID is a call's id as the protocol takes it: at most 40 characters.
func callID(id belay.CallID) string { return strings.ReplaceAll(string(id), "-", "") }

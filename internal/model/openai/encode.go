package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// body is a request: what never changes in a conversation first, then the
// messages, then what belongs to this request only. So the bytes of a request
// begin with those of the one before it, which providers cache.
func (p *Chat) body(ctx context.Context, r model.Request) (*wire.Body, error) {
	name, err := plain(map[string]string{"model": r.Model})
	if err != nil {
		return nil, err
	}
	nameless := r // one head for all models
	nameless.Model = ""
	head, err := p.Prefixes.Head(chatName+" head", nameless, chatHead)
	if err != nil {
		return nil, err
	}
	msgs, err := p.Prefixes.Encode(chatName, r.Messages, func(dst []byte, m *belay.Message) ([]byte, error) { return chatMessage(ctx, dst, m, r.Content) })
	if err != nil {
		return nil, err
	}
	b := &wire.Body{}
	b.Add(name[:len(name)-1], head)
	b.Add(msgs...)
	tail, err := chatTail(ctx, r)
	b.Add(tail)
	return b, err
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

// chatHead is what follows the model's name.
func chatHead(r model.Request) ([]byte, error) {
	var h struct {
		Stream bool `json:"stream"`
		Option struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Tools []function `json:"tools,omitempty"`
	}
	h.Stream, h.Option.Usage = true, true
	for _, t := range r.Tools {
		f := function{Type: "function"}
		f.Function.Name, f.Function.Description, f.Function.Parameters = t.Name, t.Doc, t.Schema
		h.Tools = append(h.Tools, f)
	}
	b, err := plain(h)
	if err != nil {
		return nil, err
	}
	b[0] = ','
	b = append(b[:len(b)-1], `,"messages":[`...)
	sys, err := plain(map[string]string{"role": "system", "content": r.System})
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
	return closed(b, t)
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

// plain is JSON without the escapes that only HTML needs.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

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

// contents reads what a part names.
type contents = func(context.Context, belay.Digest) ([]byte, error)

// dataURL is an attachment's bytes as both protocols take them.
func dataURL(ctx context.Context, a *belay.Attachment, content contents) (string, error) {
	b, err := content(ctx, a.Ref.Digest)
	if err != nil {
		return "", err
	}
	return "data:" + a.Ref.Media + ";base64," + base64.StdEncoding.EncodeToString(b), nil
}

// chatMessage appends a message, each with a comma before it: the system's
// stands before all.
func chatMessage(ctx context.Context, dst []byte, m *belay.Message, content contents) ([]byte, error) {
	outs, err := chatMessages(ctx, m, content)
	for i := range outs {
		if err != nil {
			break
		}
		var b []byte
		b, err = plain(outs[i])
		dst = append(append(dst, ','), b...)
	}
	return dst, err
}

func chatMessages(ctx context.Context, m *belay.Message, content contents) ([]chatOut, error) {
	switch m.Role {
	case belay.RoleAssistant:
		return []chatOut{chatAnswer(m)}, nil
	case belay.RoleTool:
		return chatResults(m), nil
	}
	out := chatOut{Role: "user"}
	var parts []chatPart
	plain := true
	for _, p := range m.Parts {
		a := cmp.Or(p.Image, p.File)
		if a == nil {
			parts = append(parts, chatPart{Type: "text", Text: p.Text})
			continue
		}
		plain = false
		url, err := dataURL(ctx, a, content)
		if err != nil {
			return nil, err
		}
		if p.Image != nil {
			parts = append(parts, chatPart{Type: "image_url", Image: &chatImage{url}})
		} else {
			parts = append(parts, chatPart{Type: "file", File: &chatFile{a.Name, url}})
		}
	}
	out.Content = parts
	if plain {
		out.Content = textOf(m)
	}
	return []chatOut{out}, nil
}

func textOf(m *belay.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Text != "" && b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

func chatAnswer(m *belay.Message) chatOut {
	out := chatOut{Role: "assistant"}
	if text := textOf(m); text != "" {
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

func chatResults(m *belay.Message) []chatOut {
	var outs []chatOut
	for _, p := range m.Parts {
		switch {
		case p.Result != nil:
			outs = append(outs, chatOut{Role: "tool", Content: p.Result.Text, CallID: callID(p.Result.ID)})
		case p.Text != "":
			outs = append(outs, chatOut{Role: "user", Content: p.Text})
		}
	}
	return outs
}

// callID is a call's id as the protocol takes it: at most 40 characters.
func callID(id belay.CallID) string { return strings.ReplaceAll(string(id), "-", "") }

package openai

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

func (p *Responses) body(ctx context.Context, r model.Request, summary bool) (*wire.Body, error) {
	by := dialect(r.Model)
	add := func(dst []byte, m *belay.Message) ([]byte, error) { return appendItems(ctx, dst, m, by, r.Content) }
	return p.Prefixes.Body(r, by, responsesHead, add, func(r model.Request) ([]byte, error) { return responsesTail(ctx, r, summary) })
}

// tool is a tool as the protocol has it. Strict is the protocol's default and
// asks more of a schema than a tool's schema promises.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// nativeTool is one that the vendor runs.
type nativeTool struct {
	Type string `json:"type"`
}

func responsesHead(r model.Request) ([]byte, error) {
	var h struct {
		Model        string   `json:"model"`
		Stream       bool     `json:"stream"`
		Store        bool     `json:"store"`
		Include      []string `json:"include,omitempty"`
		Tools        []any    `json:"tools,omitempty"`
		Instructions string   `json:"instructions,omitempty"`
	}
	h.Model, h.Stream, h.Instructions = r.Model, true, r.System
	if reasons(r.Model) {
		h.Include = []string{"reasoning.encrypted_content"}
	}
	for _, t := range r.Tools {
		if t.Native {
			h.Include = append(h.Include, "web_search_call.action.sources")
			h.Tools = append(h.Tools, nativeTool{"web_search"})
			continue
		}
		h.Tools = append(h.Tools, tool{Type: "function", Name: t.Name, Description: t.Doc, Parameters: t.Schema})
	}
	b, err := wire.JSON(h)
	if err != nil {
		return nil, err
	}
	return append(b[:len(b)-1], `,"input":[`...), nil
}

// Parts of a request's tail.
type (
	forced struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	reasoning struct {
		Effort  string `json:"effort,omitempty"`
		Summary string `json:"summary,omitempty"`
	}
	format struct {
		Type   string          `json:"type"`
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Strict bool            `json:"strict"`
	}
	textFormat struct {
		Format format `json:"format"`
	}
)

// responsesTail ends a request. Several calls in one answer are the protocol's
// default; some models refuse the word for it, so it isn't said.
func responsesTail(ctx context.Context, r model.Request, summary bool) ([]byte, error) {
	var b []byte
	if r.Note != "" {
		note := belay.Text(belay.RoleUser, r.Note)
		var err error
		if b, err = appendItems(ctx, b, &note, dialect(r.Model), r.Content); err != nil {
			return nil, err
		}
	}
	var t struct {
		Choice    *forced     `json:"tool_choice,omitempty"`
		Reasoning *reasoning  `json:"reasoning,omitempty"`
		Text      *textFormat `json:"text,omitempty"`
		Max       int         `json:"max_output_tokens,omitempty"`
		CacheKey  string      `json:"prompt_cache_key,omitempty"`
	}
	if r.ForceTool != "" {
		t.Choice = &forced{"function", r.ForceTool}
	}
	if how := (reasoning{Effort: r.Effort}); reasons(r.Model) || how.Effort != "" {
		if summary && reasons(r.Model) {
			how.Summary = "auto"
		}
		if how != (reasoning{}) {
			t.Reasoning = &how
		}
	}
	if len(r.Output) > 0 {
		t.Text = &textFormat{format{Type: "json_schema", Name: outputName, Schema: r.Output}}
	}
	t.Max, t.CacheKey = r.MaxOutput, cacheKey(r.Messages)
	return wire.Closed(b, t)
}

// outputName is how a request calls the schema of its answer.
const outputName = "output"

// cacheKey is the same for every request of a conversation: it keeps them at
// the machine that has their beginning in its cache. It follows from how the
// conversation begins, of which no more than a piece is looked at.
func cacheKey(msgs []belay.Message) string {
	if len(msgs) == 0 {
		return ""
	}
	h := sha256.New()
	for _, p := range msgs[0].Parts {
		h.Write([]byte(p.Text[:min(len(p.Text), 1<<10)]))
		for _, a := range []*belay.Attachment{p.Image, p.File} {
			if a != nil {
				h.Write([]byte(a.Ref.Digest))
			}
		}
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// The items of an input.
type (
	messageItem struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content any    `json:"content"` // text or parts
	}
	inputPart struct {
		Type  string `json:"type"`
		Text  string `json:"text,omitempty"`
		Image string `json:"image_url,omitempty"`
		Name  string `json:"filename,omitempty"`
		Data  string `json:"file_data,omitempty"`
	}
	callItem struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Name   string `json:"name"`
		Args   string `json:"arguments"`
	}
	resultItem struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output any    `json:"output"` // text or parts
	}
)

// appendItems appends a message as items, each with a comma before it.
func appendItems(ctx context.Context, dst []byte, m *belay.Message, by string, read wire.Contents) ([]byte, error) {
	var err error
	item := func(v any) {
		if err != nil {
			return
		}
		var b []byte
		b, err = wire.JSON(v)
		dst = append(append(dst, ','), b...)
	}
	switch m.Role {
	case belay.RoleAssistant:
		for _, p := range m.Parts {
			switch {
			case p.Echo != nil:
				dst = appendEcho(dst, p.Echo, by)
			case p.Call != nil:
				dst = appendEcho(dst, p.Call.Echo, by)
				item(callItem{"function_call", callID(p.Call.ID), p.Call.Name, argsOf(p.Call)})
			case p.Text != "":
				item(messageItem{"message", "assistant", p.Text})
			}
		}
	default:
		results, rest := answered(m)
		for _, r := range results {
			said := belay.Text(belay.RoleUser, r.Text)
			said.Parts = append(said.Parts, r.Parts...)
			output, rerr := userContent(ctx, &said, read, input)
			if rerr != nil {
				return dst, rerr
			}
			item(resultItem{"function_call_output", callID(r.ID), output})
		}
		if rest == nil {
			return dst, err
		}
		said, serr := userContent(ctx, rest, read, input)
		if serr != nil {
			return dst, serr
		}
		item(messageItem{"message", "user", said})
	}
	return dst, err
}

// input is a part of what a user says or of a call's result.
func input(p *belay.Part, url string) inputPart {
	switch {
	case p.Image != nil:
		return inputPart{Type: "input_image", Image: url}
	case p.File != nil:
		return inputPart{Type: "input_file", Name: p.File.Name, Data: url}
	}
	return inputPart{Type: "input_text", Text: p.Text}
}

// appendEcho appends the items that the same model gave before; those of
// another one mean nothing here.
func appendEcho(dst []byte, e *belay.Echo, by string) []byte {
	if e == nil || e.By != by {
		return dst
	}
	items := bytes.TrimSpace(e.Data)
	if len(items) <= 2 || items[0] != '[' {
		return dst
	}
	return append(append(dst, ','), items[1:len(items)-1]...)
}

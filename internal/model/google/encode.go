package google

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

func (p *Gemini) body(ctx context.Context, r model.Request) (*wire.Body, error) {
	e := encoder{ctx: ctx, by: dialect(r.Model), signs: signs(r.Model), parts: partsInResults(r.Model), content: r.Content, msgs: r.Messages}
	can := p.Abilities(r.Model)
	if can.Images {
		e.images = images
	}
	if can.Files {
		e.files = files
	}
	return p.Prefixes.Body(r, fmt.Sprintf("%s %v", e.by, can), headOf, e.add, e.tail)
}

// The parts of a request.
type (
	content struct {
		Role  string    `json:"role,omitempty"`
		Parts []partOut `json:"parts"`
	}
	partOut struct {
		Text      *string   `json:"text,omitempty"`
		Inline    *inline   `json:"inlineData,omitempty"`
		Call      *called   `json:"functionCall,omitempty"`
		Response  *response `json:"functionResponse,omitempty"`
		Signature string    `json:"thoughtSignature,omitempty"`
	}
	inline struct {
		Media string `json:"mimeType"`
		Data  string `json:"data"`
	}
	called struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	response struct {
		Name     string `json:"name"`
		Response struct {
			Output *string `json:"output,omitempty"`
			Error  *string `json:"error,omitempty"`
		} `json:"response"`
		Parts []partOut `json:"parts,omitempty"` // pictures and documents
	}
	declaration struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
	}
	tools struct {
		Functions []declaration `json:"functionDeclarations"`
	}
	// echo is what an answer's belay.Echo holds: a signature, and which bytes of
	// the answer's text it belongs to. A call's belongs to the call.
	echo struct {
		At        int    `json:"at,omitempty"`
		Len       int    `json:"len,omitempty"`
		Signature string `json:"signature"`
	}
)

func text(s string) partOut { return partOut{Text: &s} }

func headOf(r model.Request) ([]byte, error) {
	var h struct {
		System *content `json:"systemInstruction,omitempty"`
		Tools  []tools  `json:"tools,omitempty"`
	}
	if !wire.Blank(r.System) {
		h.System = &content{Parts: []partOut{text(r.System)}}
	}
	var t tools
	for _, d := range r.Tools {
		t.Functions = append(t.Functions, declaration{Name: d.Name, Description: d.Doc, Parameters: d.Schema})
	}
	if len(t.Functions) > 0 {
		h.Tools = []tools{t}
	}
	b, err := wire.JSON(h)
	if err != nil {
		return nil, err
	}
	if b = b[:len(b)-1]; len(b) > 1 {
		b = append(b, ',')
	}
	return append(b, `"contents":[`...), nil
}

// The parts of a request's tail.
type (
	toolConfig struct {
		Calling struct {
			Mode    string   `json:"mode"`
			Allowed []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	}
	config struct {
		Max      int             `json:"maxOutputTokens,omitempty"`
		Thinking *thinking       `json:"thinkingConfig,omitempty"`
		Media    string          `json:"responseMimeType,omitempty"`
		Schema   json.RawMessage `json:"responseJsonSchema,omitempty"`
	}
)

// tail is a note, the end of the messages and what belongs to this request only.
func (e *encoder) tail(r model.Request) ([]byte, error) {
	var t struct {
		Tools  *toolConfig `json:"toolConfig,omitempty"`
		Config *config     `json:"generationConfig,omitempty"`
	}
	note := r.Note
	if r.ForceTool != "" {
		t.Tools = &toolConfig{}
		t.Tools.Calling.Mode, t.Tools.Calling.Allowed = "ANY", []string{r.ForceTool}
	}
	c := config{Max: r.MaxOutput, Thinking: thinkingOf(r.Model, r.Effort)}
	alone, withTools := formats(r.Model)
	switch {
	case len(r.Output) == 0:
	case withTools && r.ForceTool == "" || alone && len(r.Tools) == 0:
		c.Media, c.Schema = "application/json", r.Output
	default:
		note = wire.Lines(note, "Your answer is JSON and nothing else, and fits this JSON Schema: "+string(r.Output))
	}
	if c.Max != 0 || c.Thinking != nil || c.Media != "" {
		t.Config = &c
	}
	if n := len(e.msgs); wire.Blank(note) && n > 0 && e.msgs[n-1].Role == belay.RoleAssistant {
		note = "[belay] Go on." // the model's turn follows the user's
	}
	b := []byte{}
	if !wire.Blank(note) {
		m := belay.Text(belay.RoleUser, note)
		var err error
		if b, err = e.add(b, &m); err != nil {
			return nil, err
		}
	}
	return wire.Closed(b, t)
}

// encoder writes a conversation's messages.
type encoder struct {
	ctx     context.Context
	by      string // the dialect whose echoes are understood
	signs   bool
	parts   bool     // results take pictures and documents
	images  []string // media types that are sent as pictures
	files   []string // and as documents
	content wire.Contents
	msgs    []belay.Message
}

// add appends a message, with a comma before each of its contents.
func (e *encoder) add(dst []byte, m *belay.Message) ([]byte, error) {
	contents, err := e.contents(m)
	if err != nil {
		return dst, err
	}
	if len(contents) > 0 && contents[0].Role == "model" && m == &e.msgs[0] { // the vendor wants the user first
		contents = append([]content{{Role: "user", Parts: []partOut{text("[belay] The conversation goes on.")}}}, contents...)
	}
	for _, c := range contents {
		b, err := wire.JSON(c)
		if err != nil {
			return dst, err
		}
		dst = append(append(dst, ','), b...)
	}
	return dst, nil
}

// contents are a message's: what an answer said, or the results of calls, and
// then what the user says.
func (e *encoder) contents(m *belay.Message) ([]content, error) {
	if m.Role == belay.RoleAssistant {
		if parts := e.answer(m); len(parts) > 0 {
			return []content{{Role: "model", Parts: parts}}, nil
		}
		return nil, nil
	}
	var out []content
	var results, said []partOut
	parts := m.Parts
	if !e.parts {
		parts = m.Flat().Parts
	}
	for i := range parts {
		p := &parts[i]
		if p.Result != nil {
			v, err := e.result(p.Result)
			if err != nil {
				return nil, err
			}
			results = append(results, v)
			continue
		}
		v, err := e.said(p)
		if err != nil {
			return nil, err
		}
		if v.Inline != nil || !wire.Blank(*v.Text) {
			said = append(said, v)
		}
	}
	for _, parts := range [][]partOut{results, said} {
		if len(parts) > 0 {
			out = append(out, content{Role: "user", Parts: parts})
		}
	}
	return out, nil
}

func (e *encoder) result(r *belay.ToolResult) (partOut, error) {
	v, said := &response{Name: r.Name}, r.Text
	if v.Name == "" {
		v.Name = e.name(r.ID)
	}
	for i := range r.Parts {
		p, err := e.said(&r.Parts[i])
		if err != nil {
			return partOut{}, err
		}
		if p.Inline != nil {
			v.Parts = append(v.Parts, p)
		} else { // a result takes files only
			said = wire.Lines(said, *p.Text)
		}
	}
	if r.Error {
		v.Response.Error = &said
	} else {
		v.Response.Output = &said
	}
	return partOut{Response: v}, nil
}

// name is the tool that a call of the conversation called.
func (e *encoder) name(id belay.CallID) string {
	for i := range e.msgs {
		for _, c := range e.msgs[i].Calls() {
			if c.ID == id {
				return c.Name
			}
		}
	}
	return "unknown"
}

// said is a text, a picture or a document of the user.
func (e *encoder) said(p *belay.Part) (partOut, error) {
	said, a, data, err := wire.Said(e.ctx, p, e.images, e.files, e.content)
	if a == nil {
		return text(said), err
	}
	return partOut{Inline: &inline{Media: a.Ref.Media, Data: data}}, err
}

// What the vendor takes as bytes.
var (
	images = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}
	files  = []string{"application/pdf", "text/plain"}
)

// unsigned replaces the signature of a call that this model didn't make. Source:
// https://ai.google.dev/gemini-api/docs/thought-signatures, November 2026.
const unsigned = "skip_thought_signature_validator"

// answer is an answer of the model, each signature with the part that it signs.
func (e *encoder) answer(m *belay.Message) []partOut {
	said, calls := wire.TextOf(m), m.Calls()
	if wire.Blank(said) && len(calls) == 0 {
		return nil
	}
	out := e.spoken(m, said)
	for i, c := range calls {
		p := partOut{Call: &called{Name: c.Name, Args: wire.Object(c.Args)}}
		if own := e.own(c.Echo); own != nil {
			p.Signature = own.Signature
		} else if i == 0 && e.signs {
			p.Signature = unsigned
		}
		out = append(out, p)
	}
	return out
}

// spoken is an answer's text in the parts that were signed, and the rest. A text
// that was changed since, because it had a secret in it, has lost them.
func (e *encoder) spoken(m *belay.Message, s string) []partOut {
	var out []partOut
	from := 0
	until := func(to int) {
		if to > from {
			out = append(out, text(s[from:to]))
			from = to
		}
	}
	for _, p := range m.Parts {
		own := e.own(p.Echo)
		if own == nil || own.At < from || own.At > len(s) || own.Len < 0 || own.Len > len(s)-own.At || !boundary(s, own.At) || !boundary(s, own.At+own.Len) {
			continue
		}
		until(own.At)
		signed := text(s[own.At : own.At+own.Len])
		signed.Signature = own.Signature
		out, from = append(out, signed), own.At+own.Len
	}
	until(len(s))
	return out
}

func boundary(s string, i int) bool { return i == len(s) || utf8.RuneStart(s[i]) }

// own returns an echo of this API; those of other APIs are left out.
func (e *encoder) own(b *belay.Echo) *echo {
	v, ok := wire.Own[echo](b, e.by)
	if !ok || v.Signature == "" {
		return nil
	}
	return &v
}

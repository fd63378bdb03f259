package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// body is a request. The place up to which the vendor caches moves with every
// request, so it is asked for in the tail and marks no message.
func (p *Messages) body(ctx context.Context, r model.Request) (*wire.Body, error) {
	e := encoder{ctx: ctx, by: dialect(r.Model), content: r.Content, msgs: r.Messages, bare: p.unbound.messages(r.Messages)}
	can := p.Abilities(r.Model)
	if can.Images {
		e.images = images
	}
	if can.Files {
		e.files = files
	}
	return p.Prefixes.Body(r, fmt.Sprintf("%s %v %d", e.by, can, e.bare), headOf, e.add, e.tail)
}

// The parts of a request.
type (
	cache struct {
		Type string `json:"type"`
	}
	tool struct {
		Type        string          `json:"type,omitempty"` // of the vendor's own
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"input_schema,omitempty"`
		MaxUses     int             `json:"max_uses,omitempty"`
		Cache       *cache          `json:"cache_control,omitempty"`
	}
	block struct {
		Type    string          `json:"type"`
		Text    string          `json:"text,omitempty"`
		Source  *source         `json:"source,omitempty"`
		Title   string          `json:"title,omitempty"`
		ID      string          `json:"id,omitempty"`
		Name    string          `json:"name,omitempty"`
		Input   json.RawMessage `json:"input,omitempty"`
		CallID  string          `json:"tool_use_id,omitempty"`
		Content any             `json:"content,omitempty"` // of a result: text or blocks
		Error   bool            `json:"is_error,omitempty"`
		Cache   *cache          `json:"cache_control,omitempty"`
	}
	source struct {
		Type  string `json:"type"`
		Media string `json:"media_type"`
		Data  string `json:"data"`
	}
	thinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	redacted struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
	// echo is what an answer's belay.Echo holds: thinking blocks, and how many
	// bytes of the answer's text stand before them. A call's stand before the call.
	echo struct {
		At     int               `json:"at,omitempty"`
		Blocks []json.RawMessage `json:"blocks"`
	}
)

// cached marks the end of what the vendor should keep.
var cached = &cache{Type: "ephemeral"}

func headOf(r model.Request) ([]byte, error) {
	var h struct {
		Model  string  `json:"model"`
		Stream bool    `json:"stream"`
		Tools  []tool  `json:"tools,omitempty"`
		System []block `json:"system,omitempty"`
	}
	h.Model, h.Stream = r.Model, true
	for _, t := range r.Tools {
		if t.Native {
			h.Tools = append(h.Tools, tool{Type: searchTool, Name: searchName, MaxUses: maxSearches})
			continue
		}
		h.Tools = append(h.Tools, tool{Name: t.Name, Description: t.Doc, Schema: t.Schema})
	}
	if n := len(h.Tools); n > 0 {
		h.Tools[n-1].Cache = cached
	}
	if !wire.Blank(r.System) {
		h.System = []block{{Type: "text", Text: r.System, Cache: cached}}
	}
	b, err := wire.JSON(h)
	if err != nil {
		return nil, err
	}
	return append(b[:len(b)-1], `,"messages":[`...), nil
}

// tail closes the messages and says what belongs to this request only.
func (e *encoder) tail(r model.Request) ([]byte, error) {
	var t struct {
		Max      int64   `json:"max_tokens"`
		Cache    *cache  `json:"cache_control"`
		Choice   *choice `json:"tool_choice,omitempty"`
		Thinking *reason `json:"thinking,omitempty"`
		Output   *held   `json:"output_config,omitempty"`
	}
	known := traitsOf(r.Model)
	t.Cache = cached
	t.Max = cmp.Or(int64(r.MaxOutput), known.output)
	note := r.Note
	if r.ForceTool != "" && known.forced {
		t.Choice = &choice{Type: "tool", Name: r.ForceTool}
	} else if r.ForceTool != "" && wire.Blank(note) { // a note would say it itself, and what isn't said again later unbinds the thinking
		note = wire.Lines(note, "Call the tool "+r.ForceTool+" now; no other answer is of use.")
	}
	effort := ""
	t.Thinking, effort = e.reasoning(r, known, t.Max)
	var format *schemaFormat
	switch {
	case len(r.Output) == 0:
	case known.formats && strict(r.Output):
		format = &schemaFormat{Type: "json_schema", Schema: r.Output}
	default:
		note = wire.Lines(note, "Your answer is JSON and nothing else, and fits this JSON Schema: "+string(r.Output))
	}
	if effort != "" || format != nil {
		t.Output = &held{Effort: effort, Format: format}
	}
	b, err := e.last(note)
	if err != nil {
		return nil, err
	}
	return wire.Closed(b, t)
}

// The parts of a request's tail.
type (
	choice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	reason struct {
		Type    string `json:"type"`
		Budget  int64  `json:"budget_tokens,omitempty"`
		Display string `json:"display,omitempty"`
	}
	schemaFormat struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
	}
	held struct {
		Effort string        `json:"effort,omitempty"`
		Format *schemaFormat `json:"format,omitempty"`
	}
)

// budgets are efforts in tokens, for models that think within a budget.
var budgets = map[string]int64{"low": 4096, "medium": 10_240, "high": 24_576}

// minBudget is the least that the vendor takes.
const minBudget = 1024

// reasoning is how a model is asked to think, and with which effort. A budget
// asks for signed thinking before the calls of the last answer; where it is
// missing, because another model or a secret took it, the model doesn't think.
func (e *encoder) reasoning(r model.Request, t traits, limit int64) (*reason, string) {
	force := r.ForceTool != "" && t.forced
	switch {
	case force && t.unasked:
		return &reason{Type: "disabled"}, r.Effort
	case force:
	case t.adaptive && (t.unasked || r.Effort != ""):
		return &reason{Type: "adaptive", Display: "summarized"}, r.Effort
	case t.manual && budgets[r.Effort] > 0 && e.thought():
		if n := min(budgets[r.Effort], limit/2); n >= minBudget {
			return &reason{Type: "enabled", Budget: n}, ""
		}
	}
	if t.adaptive {
		return nil, r.Effort
	}
	return nil, ""
}

// thought reports whether the last answer has the thinking that its calls need.
func (e *encoder) thought() bool {
	for i := len(e.msgs) - 1; i >= 0; i-- {
		m := &e.msgs[i]
		if m.Role != belay.RoleAssistant {
			continue
		}
		for _, p := range m.Parts {
			if own := e.own(p.Echo); i >= e.bare && own != nil && slices.ContainsFunc(own.Blocks, isThinking) {
				return true
			}
		}
		return len(m.Calls()) == 0
	}
	return true
}

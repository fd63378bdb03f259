package anthropic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// event is one message of an answer's stream.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		CallID    string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"` // of a result
	} `json:"content_block"`
	Delta struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		JSON      string `json:"partial_json"`
		Stop      string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage counts tokens. Each event has the sums so far of what it names.
type usage struct {
	Input   *int64 `json:"input_tokens"` // without those read from the cache or written to it
	Output  *int64 `json:"output_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Write   *int64 `json:"cache_creation_input_tokens"`
	Details struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// decoder turns events into chunks. Text flows, thinking blocks are kept until
// they end, and calls until it is known whether the answer was cut off.
type decoder struct {
	*wire.Out
	dialect string
	open    map[int]*part
	said    int // bytes of text so far
	calls   []*model.Call
	between []json.RawMessage // thinking and searches after a call, which go with the next one
	asked   map[string]*part  // searches without a result, by their ids
	tokens  [5]int64          // input, output, read, write, thinking
	stop    string
}

func newDecoder(out *wire.Out, dialect string) *decoder {
	out.Limit = maxHeld
	return &decoder{Out: out, dialect: dialect, open: map[int]*part{}}
}

// part is a block that hasn't ended.
type part struct {
	kind      string
	id, name  string
	text      strings.Builder // arguments, or thinking
	signature strings.Builder
	data      string
	callID    string          // of the search whose result it is
	content   json.RawMessage // of a result
}

// maxHeld bounds the calls and the thinking of an answer, in bytes.
const maxHeld = 8 << 20

// blockCost is what a block without content costs of that.
const blockCost = 256

// Take takes an event. Ping, and what is new, says nothing.
func (d *decoder) Take(e *event, data []byte) {
	switch e.Type {
	case "message_start":
		d.count(&e.Message.Usage)
	case "content_block_start":
		d.begin(e)
	case "content_block_delta":
		d.delta(e)
	case "content_block_stop":
		if b := d.open[e.Index]; b != nil {
			delete(d.open, e.Index)
			d.whole(b)
		}
	case "message_delta":
		d.stop = cmp.Or(e.Delta.Stop, d.stop)
		d.count(&e.Usage)
	case "message_stop":
		d.Finish(nil)
		d.Over = true
	case "error":
		d.Fail(d.problem(data))
	}
}

func (d *decoder) count(u *usage) {
	for i, n := range [...]*int64{u.Input, u.Output, u.Read, u.Write, u.Details.Thinking} {
		if n != nil {
			d.tokens[i] = *n
		}
	}
}

func (d *decoder) begin(e *event) {
	b := &e.Block
	if old := d.open[e.Index]; old != nil && old.id == b.ID && old.kind == b.Type {
		return // it came twice
	}
	p := &part{kind: b.Type, id: b.ID, name: b.Name, data: b.Data, callID: b.CallID, content: b.Content}
	p.signature.WriteString(b.Signature)
	switch b.Type {
	case "text":
		d.text(b.Text)
	case "thinking":
		d.think(p, b.Thinking)
	case "tool_use", "server_tool_use":
		if s := string(b.Input); s != "{}" && s != "null" { // some send them whole
			p.text.WriteString(s)
		}
	}
	d.Hold(blockCost + p.text.Len() + len(p.data) + len(p.name) + len(p.id) + len(p.content))
	d.open[e.Index] = p
}

func (d *decoder) delta(e *event) {
	v := &e.Delta
	p := d.open[e.Index]
	switch {
	case v.Type == "text_delta":
		d.text(v.Text)
	case v.Type == "citations_delta":
	case p == nil:
		d.Broken("GARBAGE", "the answer has a piece of something that didn't begin")
	case v.Type == "input_json_delta":
		p.text.WriteString(v.JSON)
		d.Hold(len(v.JSON))
	case v.Type == "thinking_delta":
		d.think(p, v.Thinking)
	case v.Type == "signature_delta":
		p.signature.WriteString(v.Signature)
		d.Hold(len(v.Signature))
	}
}

func (d *decoder) text(s string) {
	d.said += len(s)
	if s != "" {
		d.Say(model.Chunk{Text: s})
	}
}

func (d *decoder) think(p *part, s string) {
	p.text.WriteString(s)
	d.Hold(len(s))
	if s != "" {
		d.Say(model.Chunk{Reasoning: s})
	}
}

// whole takes a block that has ended.
func (d *decoder) whole(p *part) {
	var raw []byte
	var err error
	switch {
	case p.kind == "tool_use":
		d.call(p)
		return
	case p.kind == "server_tool_use" && p.name == searchName:
		if d.asked == nil {
			d.asked = map[string]*part{}
		}
		d.asked[p.id] = p
		return
	case p.kind == "web_search_tool_result":
		d.searched(p)
		return
	case p.kind == "thinking" && p.signature.Len() > 0:
		raw, err = wire.JSON(thinking{Type: p.kind, Thinking: p.text.String(), Signature: p.signature.String()})
	case p.kind == "redacted_thinking":
		raw, err = wire.JSON(redacted{Type: p.kind, Data: p.data})
	default: // text, and thinking without a signature
		return
	}
	if err != nil {
		d.Fail(err)
		return
	}
	d.keep(raw)
}

// keep keeps blocks to be sent back, which belong together.
func (d *decoder) keep(blocks ...json.RawMessage) {
	if len(d.calls) > 0 {
		d.between = append(d.between, blocks...)
		return
	}
	d.echo(blocks...)
}

// echo yields blocks with their place in the text.
func (d *decoder) echo(blocks ...json.RawMessage) {
	data, err := wire.JSON(echo{At: d.said, Blocks: blocks})
	if err != nil {
		d.Fail(err)
		return
	}
	d.Say(model.Chunk{Echo: &belay.Echo{By: d.dialect, Data: data}})
}

func (d *decoder) call(p *part) {
	c := &model.Call{ID: d.CallID(p.id, len(d.calls)+1), Name: p.name, Args: strings.TrimSpace(p.text.String())}
	if len(d.between) > 0 {
		data, err := wire.JSON(echo{Blocks: d.between})
		if err != nil {
			d.Fail(err)
			return
		}
		c.Echo, d.between = &belay.Echo{By: d.dialect, Data: data}, nil
	}
	d.calls = append(d.calls, c)
}

// Finish yields the calls and the end. An answer that has its stop reason is whole,
// even if its stream broke off then.
func (d *decoder) Finish(err error) {
	if d.stop == "" {
		d.Cut(err)
		return
	}
	for len(d.open) > 0 { // blocks whose end is missing, in their order
		first := -1
		for i := range d.open {
			if first < 0 || i < first {
				first = i
			}
		}
		p := d.open[first]
		delete(d.open, first)
		d.whole(p)
	}
	if len(d.between) > 0 {
		d.echo(d.between...)
	}
	if d.reason() == "refused" && d.said == 0 && len(d.calls) == 0 {
		d.Fail(&model.Error{Class: "refused", Message: d.End.Name + ": the model refused to answer"})
		return
	}
	for _, c := range d.calls {
		if c.Args == "" && d.reason() != "length" { // in an answer that was cut off they would have followed
			c.Args = "{}"
		}
		d.Say(model.Chunk{Call: c})
	}
	d.Say(model.Chunk{Usage: d.usage(), Stop: d.reason()})
}

// reason is the stop reason in the runtime's words. A turn that the server
// paused, or that filled the model's context, is an answer that was cut.
func (d *decoder) reason() string {
	switch {
	case d.stop == "refusal":
		return "refused"
	case d.stop == "max_tokens", d.stop == "pause_turn", d.stop == "model_context_window_exceeded":
		return "length"
	case len(d.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// usage is what the vendor counted; nothing counted is no usage.
func (d *decoder) usage() *belay.Usage {
	if d.tokens == [5]int64{} {
		return nil
	}
	input, output, read, write, thought := d.tokens[0], d.tokens[1], d.tokens[2], d.tokens[3], d.tokens[4]
	return &belay.Usage{Input: input + read + write, Output: output, Cached: read, CacheWrite: write, Reasoning: thought, Reported: true}
}

// statuses are what the kinds of errors are as an answer's status.
// Source: https://platform.claude.com/docs/en/api/errors, November 2026.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
	"request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}

// problem is an error that came inside the stream, after status 200.
func (d *decoder) problem(data []byte) error {
	var shape struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	json.Unmarshal(data, &shape) //nolint:errcheck // it was read before
	return d.End.StreamFailure(cmp.Or(statuses[shape.Error.Type], http.StatusInternalServerError), data)
}

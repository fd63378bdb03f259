package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// decoder turns events into chunks. Text and pictures are yielded as they come,
// calls when they are whole, in the order of the items. What an item says when it is
// done counts; what was yielded of it before must be its beginning.
type decoder struct {
	*wire.Out
	dialect string
	seq     int64 // of the last event that had one
	items   []*item
	refused bool

	n        int               // calls that were yielded
	thoughts []json.RawMessage // reasoning and searches in front of the next item
}

func newDecoder(out *wire.Out, dialect string) *decoder {
	out.Limit = maxArgs
	return &decoder{Out: out, dialect: dialect}
}

// item is an item of the answer so far.
type item struct {
	index    int
	kind     string
	id       string
	callID   string
	name     string
	args     strings.Builder
	said     [][]byte        // text that was yielded, by part
	thought  bool            // reasoning was yielded
	whole    bool            // it is done
	passed   bool            // all of it was yielded
	encoding json.RawMessage // of reasoning, or a search, that goes back
}

// Finish is the end of a stream without the answer's last event.
func (d *decoder) Finish(err error) { d.Cut(err) }

// Take takes an event.
func (d *decoder) Take(h *happening, _ []byte) {
	if h.Seq > 0 {
		if h.Seq <= d.seq {
			return // it came before
		}
		d.seq = h.Seq
	}
	switch h.Type {
	case "response.output_item.added":
		if h.Item != nil {
			d.begin(h.Output, h.Item)
		}
	case "response.output_item.done":
		if h.Item != nil {
			d.done(h.Output, h.Item)
		}
	case "response.completed", "response.incomplete", "response.failed":
		d.ended(h)
	case "error":
		d.Fail(d.problem(errorBody(h)))
	default:
		d.piece(h)
	}
}

// piece takes a piece of an item.
func (d *decoder) piece(h *happening) {
	switch h.Type {
	case "response.output_text.delta", "response.refusal.delta":
		d.refused = d.refused || h.Type == "response.refusal.delta"
		d.text(d.at(h.Output, "message"), h.Part, h.Delta)
	case "response.output_text.done":
		d.rest(d.at(h.Output, "message"), h.Part, h.Text)
	case "response.refusal.done":
		d.refused = true
		d.rest(d.at(h.Output, "message"), h.Part, h.Refusal)
	case "response.reasoning_summary_part.added":
		if h.Summary > 0 {
			d.think(d.at(h.Output, "reasoning"), "\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		d.think(d.at(h.Output, "reasoning"), h.Delta)
	case "response.function_call_arguments.delta":
		if it := d.at(h.Output, "function_call"); !it.whole {
			it.args.WriteString(h.Delta)
			d.Hold(len(h.Delta))
		}
	case "response.function_call_arguments.done":
		if it := d.at(h.Output, "function_call"); !it.whole && h.Arguments != "" {
			d.Hold(len(h.Arguments))
			it.args.Reset()
			it.args.WriteString(h.Arguments)
		}
	}
}

// begin notes an item. Its place is its index; ids differ from event to event
// at some servers that pass the protocol on.
func (d *decoder) begin(index int, o *outputItem) *item {
	it := &item{index: index, kind: o.Type, id: o.ID, callID: o.CallID, name: o.Name}
	it.args.WriteString(o.Arguments)
	d.Hold(len(o.Arguments))
	d.items = append(d.items, it)
	return it
}

// find is the item of a place: the last one, as some servers give every item
// the same. It is nil when there is none of that kind.
func (d *decoder) find(index int, kind string) *item {
	for _, it := range slices.Backward(d.items) {
		if it.index == index && it.kind == kind {
			return it
		}
	}
	return nil
}

// at is the item that a piece belongs to, whose beginning may have been lost.
func (d *decoder) at(index int, kind string) *item {
	if it := d.find(index, kind); it != nil {
		return it
	}
	return d.begin(index, &outputItem{Type: kind})
}

func (d *decoder) text(it *item, part int, s string) {
	if s == "" || it.whole {
		return
	}
	if part < 0 || part > maxParts {
		d.Fail(model.TooLarge("%s: the answer has too many parts", d.End.Name))
		return
	}
	for len(it.said) <= part {
		it.said = append(it.said, nil)
	}
	it.said[part] = append(it.said[part], s...)
	d.Say(model.Chunk{Text: s})
}

// maxParts bounds the parts of one message.
const maxParts = 1000

// rest yields what was missing of a part. A text that doesn't begin with what
// was said shows that pieces were lost: the answer can't be mended. Servers that
// only trim it mean the same.
func (d *decoder) rest(it *item, part int, whole string) {
	said := ""
	if part >= 0 && part < len(it.said) {
		said = string(it.said[part])
	}
	more, ok := strings.CutPrefix(whole, said)
	switch {
	case whole == "" || strings.TrimSpace(whole) == strings.TrimSpace(said):
	case ok:
		d.text(it, part, more)
	default:
		d.Broken("GARBAGE", "pieces of the answer were lost on the way")
	}
}

func (d *decoder) think(it *item, s string) {
	if s == "" || it.whole {
		return
	}
	it.thought = true
	d.Say(model.Chunk{Reasoning: s})
}

// done takes an item as it is at its end; it may be the first word of it.
func (d *decoder) done(index int, o *outputItem) {
	it := d.find(index, o.Type)
	switch {
	case it == nil, it.whole && o.ID != "" && o.ID != it.id:
		it = d.begin(index, o)
	case it.whole:
		return
	}
	it.id, it.callID, it.name = cmp.Or(o.ID, it.id), cmp.Or(o.CallID, it.callID), cmp.Or(o.Name, it.name)
	switch o.Type {
	case "message":
		for i, p := range o.Content {
			d.refused = d.refused || p.Type == "refusal"
			d.rest(it, i, p.Text+p.Refusal)
		}
	case "reasoning":
		d.thought(it, o)
	case "function_call":
		if o.Arguments != "" {
			it.args.Reset()
			it.args.WriteString(o.Arguments)
		}
	case "image_generation_call":
		d.picture(o)
	case "web_search_call":
		d.searched(it, o)
	}
	it.whole = true
	d.pass(false, false)
}

// thought keeps reasoning to be sent back, if it is there to be: what isn't
// encrypted, the vendor wouldn't find.
func (d *decoder) thought(it *item, o *outputItem) {
	if !it.thought {
		parts := o.Summary
		if len(parts) == 0 {
			parts = o.Content
		}
		for i, p := range parts {
			d.think(it, strings.Repeat("\n\n", min(i, 1))+p.Text)
		}
	}
	if o.Encrypted != "" {
		it.encoding = o.raw
		d.Hold(len(o.raw))
	}
}

func (d *decoder) picture(o *outputItem) {
	if o.Result == "" {
		return
	}
	picture(d.Out, "image/"+cmp.Or(o.Format, "png"), o.Result)
}

// picture yields a picture that came in base64.
func picture(out *wire.Out, media, data string) bool {
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(b) == 0 {
		out.Broken("GARBAGE", "a picture in the answer can't be read")
		return false
	}
	return out.Say(model.Chunk{Image: &model.Image{Media: media, Data: b}})
}

// ended takes the last event. Items whose end wasn't announced end now.
func (d *decoder) ended(h *happening) {
	var e endOf
	if err := json.Unmarshal(h.Response, &e); err != nil {
		d.Broken("GARBAGE", "the answer's end can't be read")
		return
	}
	switch {
	case h.Type == "response.failed" || e.Status == "failed":
		d.Fail(d.problem(e.Error))
		return
	case e.Status == "cancelled":
		d.Broken("CUT", "the answer was cancelled at the far end")
		return
	}
	for i, o := range e.Output {
		if o == nil {
			continue
		}
		if it := d.byID(o.ID); it != nil {
			i = it.index
		}
		if d.done(i, o); d.Over {
			return
		}
	}
	stop := d.stop(h.Type, &e)
	if d.pass(true, stop == "length"); d.Over {
		return
	}
	last := model.Chunk{Stop: stop}
	if u := e.Usage; u != nil && (u.Input > 0 || u.Output > 0) {
		last.Usage = &belay.Usage{Input: u.Input, Output: u.Output, Cached: u.Details.Cached, CacheWrite: u.Details.Write, Reasoning: u.Out.Reasoning, Reported: true}
	}
	d.Say(last)
	d.Over = true
}

func (d *decoder) byID(id string) *item {
	for _, it := range d.items {
		if id != "" && it.id == id {
			return it
		}
	}
	return nil
}

// pass yields what is whole and wasn't yielded, in the order of the items: the
// calls, and the reasoning to be sent back, in front of the item that it led to,
// as the vendor refuses it alone. At the end the rest is taken as it is.
func (d *decoder) pass(end, cut bool) {
	slices.SortStableFunc(d.items, func(a, b *item) int { return a.index - b.index })
	for _, it := range d.items {
		if it.passed {
			continue
		}
		if !end && (!it.whole || it.kind == "function_call" && it.args.Len() == 0) {
			return
		}
		it.passed = true
		switch it.kind {
		case "reasoning", "web_search_call":
			if it.encoding != nil {
				d.thoughts = append(d.thoughts, it.encoding)
			}
			continue
		case "message":
			if e := d.echo(); e != nil {
				d.Say(model.Chunk{Echo: e})
			}
		case "function_call":
			d.n++
			d.Say(model.Chunk{Call: &model.Call{ID: d.CallID(it.callID, d.n), Name: it.name, Args: argsIn(&it.args, cut), Echo: d.echo()}})
		}
		d.thoughts = nil
	}
}

// argsIn are a call's arguments as they came. Without any the model means an
// empty object, unless the answer was cut off: they would have followed.
func argsIn(b *strings.Builder, cut bool) string {
	args := strings.TrimSpace(b.String())
	if args == "" && !cut {
		return "{}"
	}
	return args
}

// echo is the reasoning that led to the next item; nil: there is none.
func (d *decoder) echo() *belay.Echo {
	if len(d.thoughts) == 0 {
		return nil
	}
	b := []byte{'['}
	for i, raw := range d.thoughts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, raw...)
	}
	return &belay.Echo{By: d.dialect, Data: append(b, ']')}
}

// stop is how the answer ended, in the runtime's words.
func (d *decoder) stop(kind string, e *endOf) string {
	incomplete := kind == "response.incomplete" || e.Status == "incomplete"
	switch {
	case d.refused || e.Incomplete.Reason == "content_filter":
		return "refused"
	case incomplete:
		return "length"
	case slices.ContainsFunc(d.items, func(it *item) bool { return it.kind == "function_call" }):
		return "tool_calls"
	}
	return "stop"
}

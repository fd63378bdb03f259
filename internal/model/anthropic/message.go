package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/wire"
)

// encoder writes a conversation's messages. The protocol has two roles that take
// turns, so messages of one role that follow each other become one: each is
// written up to its last block, and what follows it continues or closes it. So a
// note after the messages has the same bytes as the message that it later is.
type encoder struct {
	ctx     context.Context
	by      string   // the dialect whose echoes are understood
	images  []string // media types that are sent as pictures
	files   []string // and as documents
	content wire.Contents
	msgs    []belay.Message
	bare    int // messages that are sent without thinking
	next    int // the message that is likely to be encoded next
}

const (
	user      = "user"
	assistant = "assistant"
)

func roleOf(m *belay.Message) string {
	if m.Role == belay.RoleAssistant {
		return assistant
	}
	return user
}

// add appends one of the messages.
func (e *encoder) add(dst []byte, m *belay.Message) ([]byte, error) {
	i := e.at(m)
	e.next = i + 1
	if !says(m) {
		return dst, nil
	}
	blocks, err := e.blocks(m, i < e.bare)
	if err != nil {
		return dst, err
	}
	dst = append(dst, opening(e.before(i), roleOf(m))...)
	return append(dst, bytes.Join(blocks, []byte(","))...), nil
}

// at is where a message stands.
func (e *encoder) at(m *belay.Message) int {
	if e.next < len(e.msgs) && &e.msgs[e.next] == m {
		return e.next
	}
	for i := len(e.msgs) - 1; i > 0; i-- { // it is among the new ones
		if &e.msgs[i] == m {
			return i
		}
	}
	return 0
}

// before is the role that is open before the i-th message; none at the start.
func (e *encoder) before(i int) string {
	for i--; i >= 0; i-- {
		if says(&e.msgs[i]) {
			return roleOf(&e.msgs[i])
		}
	}
	return ""
}

// says reports whether a message has something that is sent. A text of spaces isn't:
// the vendor refuses it.
func says(m *belay.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p belay.Part) bool {
		return p.Call != nil || !wire.Blank(p.Text) || m.Role != belay.RoleAssistant && counts(&p)
	})
}

func counts(p *belay.Part) bool {
	return p.Result != nil || p.Image != nil || p.File != nil || !wire.Blank(p.Text)
}

// opening is what stands between a role's last block and another's first. The
// vendor wants a conversation to begin with the user.
func opening(before, role string) string {
	switch {
	case before == role:
		return ","
	case before == "" && role == assistant:
		return `{"role":"user","content":[{"type":"text","text":"[belay] The conversation goes on."}]},{"role":"assistant","content":[`
	case before == "":
		return `{"role":"` + role + `","content":[`
	}
	return `]},{"role":"` + role + `","content":[`
}

// last is a note after the messages, and the end of the last one. An answer
// isn't the last word: newer models don't complete one that was begun.
func (e *encoder) last(note string) ([]byte, error) {
	before := e.before(len(e.msgs))
	if wire.Blank(note) && before == assistant {
		note = "[belay] Go on."
	}
	var b []byte
	if !wire.Blank(note) {
		n, err := wire.JSON(block{Type: "text", Text: note})
		if err != nil {
			return nil, err
		}
		b, before = append([]byte(opening(before, user)), n...), user
	}
	if before != "" {
		b = append(b, "]}"...)
	}
	return b, nil
}

// blocks are a message's, results of calls first, as the vendor wants them.
func (e *encoder) blocks(m *belay.Message, bare bool) ([][]byte, error) {
	if m.Role == belay.RoleAssistant {
		return e.answer(m, bare)
	}
	var results, rest [][]byte
	for i := range m.Parts {
		p := &m.Parts[i]
		if !counts(p) {
			continue
		}
		if r := p.Result; r != nil {
			b, err := e.result(r)
			if err != nil {
				return nil, err
			}
			results = append(results, b)
			continue
		}
		v, err := e.said(p)
		if err != nil {
			return nil, err
		}
		b, err := wire.JSON(v)
		if err != nil {
			return nil, err
		}
		rest = append(rest, b)
	}
	return append(results, rest...), nil
}

// result is what a call returned: a text, or blocks if there is more than text.
func (e *encoder) result(r *belay.ToolResult) ([]byte, error) {
	v := block{Type: "tool_result", CallID: string(r.ID), Error: r.Error}
	var blocks []block
	if !wire.Blank(r.Text) {
		blocks = append(blocks, block{Type: "text", Text: r.Text})
	}
	for i := range r.Parts {
		b, err := e.said(&r.Parts[i])
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	switch {
	case len(r.Parts) > 0:
		v.Content = blocks
	case r.Text != "":
		v.Content = r.Text
	}
	return wire.JSON(v)
}

// said is a text, a picture or a document of the user or of a result.
func (e *encoder) said(p *belay.Part) (block, error) {
	text, a, data, err := wire.Said(e.ctx, p, e.images, e.files, e.content)
	if a == nil || err != nil {
		return block{Type: "text", Text: text}, err
	}
	v := block{Type: "image", Source: &source{Type: "base64", Media: a.Ref.Media, Data: data}}
	if a == p.File {
		v.Type, v.Title = "document", a.Name
	}
	return v, nil
}

// What the vendor takes as bytes.
var (
	images = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	files  = []string{"application/pdf"}
)

// answer is an answer of the model, with its thinking where it was.
func (e *encoder) answer(m *belay.Message, bare bool) ([][]byte, error) {
	out, err := e.spoken(m, wire.TextOf(m), bare)
	for _, c := range m.Calls() {
		if err != nil {
			return nil, err
		}
		if own := e.own(c.Echo); own != nil && !bare {
			out = append(out, raw(own.Blocks)...)
		}
		var b []byte
		b, err = wire.JSON(block{Type: "tool_use", ID: string(c.ID), Name: c.Name, Input: wire.Object(c.Args)})
		out = append(out, b)
	}
	return out, err
}

// spoken is an answer's text with the thinking in it. A text that was changed
// since, because it had a secret in it, may be shorter than the place of a thought.
func (e *encoder) spoken(m *belay.Message, text string, bare bool) ([][]byte, error) {
	var out [][]byte
	from := 0
	piece := func(to int) error {
		for to = max(from, min(to, len(text))); to < len(text) && !utf8.RuneStart(text[to]); {
			to++
		}
		s := text[from:to]
		from = to
		if wire.Blank(s) {
			return nil
		}
		b, err := wire.JSON(block{Type: "text", Text: s})
		out = append(out, b)
		return err
	}
	for _, p := range m.Parts {
		own := e.own(p.Echo)
		if own == nil || bare {
			continue
		}
		if err := piece(own.At); err != nil {
			return nil, err
		}
		out = append(out, raw(own.Blocks)...)
	}
	return out, piece(len(text))
}

// own returns an echo of this API; those of other APIs are left out.
func (e *encoder) own(b *belay.Echo) *echo {
	v, ok := wire.Own[echo](b, e.by)
	if !ok || len(v.Blocks) == 0 {
		return nil
	}
	return &v
}

func raw(blocks []json.RawMessage) [][]byte {
	out := make([][]byte, len(blocks))
	for i, b := range blocks {
		out[i] = b
	}
	return out
}

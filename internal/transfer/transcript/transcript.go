// Package transcript reads conversations that were recorded elsewhere: by belay
// export, by Claude Code, by OpenClaw and pi. It promises messages that a model
// can be given, every call with exactly one result, and an account of what a
// file has that they don't. A file is read twice, a line at a time: once to find
// out which of its lines are the conversation, once for what they say. It never
// trusts a line: what can't be read is counted with its number.
package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/belay-run/belay"
)

// Format names whose transcript a file is.
type Format string

// The formats that are read.
const (
	Own      Format = "transcript"
	Claude   Format = "claude-code"
	OpenClaw Format = "openclaw" // and pi; what is read names the version too
)

// Formats lists the formats, in the order help prints them.
var Formats = []Format{Own, Claude, OpenClaw}

// Message is a message of the conversation, in the runtime's terms.
type Message struct {
	Turn  int // the turn it belongs to, from 1
	Time  time.Time
	Role  belay.Role
	Parts []Part
}

// Part is one piece of a message: exactly one of its fields is set.
type Part struct {
	Text   string
	Image  *Image
	Call   *belay.ToolCall
	Result *belay.ToolResult
}

// Image is a picture as the file has it.
type Image struct {
	Name  string
	Media string
	Data  []byte
}

// About is what a file says of its conversation.
type About struct {
	Format    string // with the version where there is one
	Session   string // its id there
	Title     string
	Workspace string // the directory it was about
	Model     string // used last
}

// Conversation is a file of which it is known which lines count.
type Conversation struct {
	About About
	file  *lines
	left  *left
	play  func(b *builder) error // tells the builder what the lines say
}

// Open looks through a transcript and chooses what of it counts.
func Open(ctx context.Context, file io.ReaderAt, size int64, f Format) (*Conversation, error) {
	c := &Conversation{file: &lines{ctx: ctx, file: file, size: size}, left: &left{}}
	var err error
	switch f {
	case Own:
		err = c.openOwn()
	case Claude:
		err = c.openClaude()
	case OpenClaw:
		err = c.openOpenClaw()
	default:
		err = belay.Errorf(belay.CodeUsage, "%q is no format of a transcript", string(f))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// plays makes the conversation of lines, which are read again for what they say.
func plays[L any](c *Conversation, chosen []span, say func(b *builder, l *L, line int)) {
	c.play = func(b *builder) error {
		for _, at := range chosen {
			if b.stopped {
				return nil
			}
			var l L
			if err := c.file.read(at, &l); err != nil {
				return err
			}
			say(b, &l, at.number)
		}
		return nil
	}
}

// Messages yields the conversation. Calls get the ids that name gives them, by
// their number.
func (c *Conversation) Messages(name func(call int) belay.CallID) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		left := c.left.clone()
		b := &builder{name: name, left: left, emit: func(m Message) bool { return yield(m, nil) }, results: map[string]belay.ToolResult{}, seen: map[string]bool{}}
		err := c.play(b)
		if err == nil {
			b.close()
		}
		if err != nil && !b.stopped {
			yield(Message{}, err)
			return
		}
		c.left.found = left
	}
}

// Left is what could not be carried over: complete after Messages has run to
// its end.
func (c *Conversation) Left() []Loss {
	if c.left.found != nil {
		return c.left.found.list()
	}
	return c.left.list()
}

// bad is the error of a file that can't be read as a transcript.
func bad(line int, what string, args ...any) *belay.Error {
	e := belay.Errorf(belay.CodeBadTranscript, what, args...).WithHint("belay import --format names the format; docs/sessions.md describes what is read")
	if line > 0 {
		e.Where = "line " + itoa(line)
	}
	return e
}

// text is a JSON string or nothing.
func text(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// block is a piece of a message, in the words of all programs.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Arguments json.RawMessage `json:"arguments"`
	Call      string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    struct {
		Media string `json:"media_type"`
		Data  string `json:"data"`
	} `json:"source"`
	Media string `json:"mimeType"`
	Data  string `json:"data"`
}

// blocks are those of a message: a text is one.
func blocks(raw json.RawMessage) (all []block) {
	if s, ok := text(raw); ok {
		return []block{{Type: "text", Text: s}}
	}
	_ = json.Unmarshal(raw, &all) // what isn't a list of blocks has none
	return all
}

// when is a time that a file may have written in another format: then it is
// unknown.
type when struct{ time.Time }

func (w *when) UnmarshalJSON(b []byte) error {
	var t time.Time
	if json.Unmarshal(b, &t) == nil {
		w.Time = t.UTC()
	}
	return nil
}

// before names the line that a line follows. Some programs write no such name,
// and some write null at the first line of every branch.
type before struct {
	id      string
	written bool // the line has the field
}

func (p *before) UnmarshalJSON(b []byte) error {
	p.written = true
	p.id, _ = text(b)
	return nil
}

// link is what is known of the place of a line among the others.
type link struct {
	id     string
	parent before
}

// parents are the indices of the lines that lines follow; -1 is none, or one
// that isn't in the file. A line that has no such field follows the line before
// it, and so does every line of a file in which none names another.
func parents(links []link) []int {
	by, named := map[string]int{}, false
	for i, l := range links {
		if l.id != "" {
			by[l.id] = i
		}
		named = named || l.parent.id != ""
	}
	out := make([]int, len(links))
	for i, l := range links {
		at, ok := by[l.parent.id]
		switch {
		case l.parent.id == "" && (!named || !l.parent.written):
			at = i - 1
		case !ok:
			at = -1
		}
		out[i] = at
	}
	return out
}

// decode reads a line. A field of another type than expected is as good as
// absent; what isn't an object is an error.
func decode(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && len(raw) > 0 && raw[0] == '{' {
		return nil
	}
	return err
}

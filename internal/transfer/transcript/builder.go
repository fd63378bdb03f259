package transcript

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// What stands for what a file doesn't have.
const (
	mark      = "[belay] "
	noResult  = mark + "No result of this call was recorded: whether it did anything is not known."
	gonePhoto = mark + "A picture was here that could not be carried over."
	maxName   = 128 // bytes of a tool's name
)

// builder makes a conversation of what lines say. It merges the pieces of an
// answer, and holds back what is said between calls and their results, so that
// each call's result follows it.
type builder struct {
	name    func(int) belay.CallID
	left    *left
	emit    func(Message) bool
	stopped bool

	turn    int
	task    belay.TurnID // of the lines of one of our own files, the last one
	spoke   bool         // a task was given, or the model said something
	calls   int          // so far, for their names
	answer  *answer
	results map[string]belay.ToolResult // of the open answer, by the file's id
	seen    map[string]bool             // the file's ids of all calls
	held    []said
}

// answer is an answer of the model that may get more pieces.
type answer struct {
	key   string // the file's id of it; empty: it is whole
	time  time.Time
	parts []Part
	calls []called
}

type called struct {
	id   string // the file's
	name string
	own  belay.CallID
	line int
}

// said is a message of the person or the runtime.
type said struct {
	time   time.Time
	parts  []Part
	begins bool
}

// user takes what a person said; begins tells that it is a new task and not a
// remark of the program they used.
func (b *builder) user(at time.Time, parts []Part, begins bool) {
	if parts = whole(parts); len(parts) == 0 {
		return
	}
	s := said{at, parts, begins}
	if b.answer != nil && !b.answered() {
		b.held = append(b.held, s)
		return
	}
	b.flush()
	b.say(s)
}

// model takes an answer, or another piece of the one with the same key.
func (b *builder) model(at time.Time, key string, parts []Part, line int) {
	if b.answer == nil || key == "" || b.answer.key != key {
		b.flush()
		b.answer = &answer{key: key, time: at}
	}
	a := b.answer
	for _, p := range whole(parts) {
		if p.Call == nil {
			a.parts = append(a.parts, p)
			continue
		}
		id := string(p.Call.ID)
		if id == "" || b.seen[id] {
			b.left.add("call whose id another call has", line)
			continue
		}
		b.seen[id] = true
		c := called{id: id, name: p.Call.Name, own: b.name(b.calls), line: line}
		b.calls++
		a.calls = append(a.calls, c)
		a.parts = append(a.parts, Part{Call: &belay.ToolCall{ID: c.own, Name: c.name, Args: arguments(p.Call.Args)}})
	}
}

// result takes what came of a call.
func (b *builder) result(id, text string, failed bool, line int) {
	if b.answer != nil {
		for _, c := range b.answer.calls {
			if c.id != id {
				continue
			}
			if _, twice := b.results[id]; twice {
				b.left.add("second result of a call", line)
				return
			}
			b.results[id] = belay.ToolResult{ID: c.own, Name: c.name, Text: clean(text), Error: failed}
			return
		}
	}
	b.left.add("result of no call", line)
}

// answered reports whether every call of the open answer has its result.
func (b *builder) answered() bool { return len(b.results) == len(b.answer.calls) }

// flush ends the open answer: its calls, a result for each, and what was held.
func (b *builder) flush() {
	a := b.answer
	if a == nil {
		return
	}
	b.answer, b.spoke = nil, true
	if len(a.parts) > 0 {
		b.out(Message{Time: a.time, Role: belay.RoleAssistant, Parts: a.parts})
	}
	if len(a.calls) > 0 {
		m := Message{Time: a.time, Role: belay.RoleTool}
		for _, c := range a.calls {
			r, ok := b.results[c.id]
			if !ok {
				b.left.add("call without a result", c.line)
				r = belay.ToolResult{ID: c.own, Name: c.name, Text: noResult, Error: true}
			}
			m.Parts = append(m.Parts, Part{Result: &r})
		}
		b.out(m)
	}
	clear(b.results)
	held := b.held
	b.held = nil
	for _, s := range held {
		b.say(s)
	}
}

func (b *builder) say(s said) {
	if s.begins && (b.turn == 0 || b.spoke) { // remarks before the first task belong to it
		b.turn++
	}
	b.spoke = b.spoke || s.begins
	b.out(Message{Time: s.time, Role: belay.RoleUser, Parts: s.parts})
}

func (b *builder) out(m Message) {
	if b.stopped {
		return
	}
	b.turn = max(b.turn, 1)
	m.Turn = b.turn
	b.stopped = !b.emit(m)
}

// close ends the conversation.
func (b *builder) close() { b.flush() }

// whole leaves out parts that say nothing.
func whole(parts []Part) (out []Part) {
	for _, p := range parts {
		if p.Image == nil && p.Call == nil && p.Result == nil {
			if p.Text = clean(p.Text); strings.TrimSpace(p.Text) == "" {
				continue
			}
		}
		if p.Call != nil {
			c := *p.Call
			if c.Name = clean(c.Name); c.Name == "" {
				c.Name = "unknown"
			}
			c.Name = strings.ToValidUTF8(c.Name[:min(len(c.Name), maxName)], "")
			p.Call = &c
		}
		out = append(out, p)
	}
	return out
}

// clean is text as the runtime keeps it.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// arguments are a call's: an object, or a JSON string of what isn't one.
func arguments(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '{' && json.Compact(&out, trimmed) == nil {
		return bytes.ToValidUTF8(out.Bytes(), []byte("\uFFFD"))
	}
	if s, ok := text(raw); ok && json.Valid([]byte(s)) && strings.HasPrefix(strings.TrimSpace(s), "{") {
		return arguments(json.RawMessage(s)) // some files have the object as text
	}
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	quoted, err := json.Marshal(clean(string(raw)))
	if err != nil {
		return json.RawMessage("{}")
	}
	return quoted
}

// parts are the blocks of a message that are of some types; results go to their calls.
func (b *builder) parts(raw json.RawMessage, line int, types ...string) (parts []Part) {
	for _, block := range blocks(raw) {
		if !slices.Contains(types, block.Type) {
			b.left.add("block of type "+kind(block.Type), line)
			continue
		}
		switch block.Type {
		case "text":
			parts = append(parts, Part{Text: block.Text})
		case "image":
			parts = append(parts, b.picture(cmp.Or(block.Source.Media, block.Media), cmp.Or(block.Source.Data, block.Data), line))
		case "tool_use":
			parts = append(parts, call(block.ID, block.Name, block.Input))
		case "toolCall":
			parts = append(parts, call(block.ID, block.Name, block.Arguments))
		case "tool_result":
			b.result(block.Call, claudeResult(b, block.Content, line), block.IsError, line)
		case "thinking", "redacted_thinking":
			b.left.add("thinking", line)
		}
	}
	return parts
}

func call(id, name string, args json.RawMessage) Part {
	return Part{Call: &belay.ToolCall{ID: belay.CallID(id), Name: name, Args: args}}
}

// picture decodes an image; what models don't take, or what isn't base64, is
// left.
func (b *builder) picture(media, data string, line int) Part {
	if raw, err := base64.StdEncoding.DecodeString(data); err == nil && (media == "image/png" || media == "image/jpeg") {
		return Part{Image: &Image{Name: "image in line " + itoa(line), Media: media, Data: raw}}
	}
	b.left.add("picture", line)
	return Part{Text: gonePhoto}
}

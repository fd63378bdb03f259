package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

type kind int

const (
	null kind = iota
	object
	array
	text
	number
	boolean
)

var kindNames = map[kind]string{null: "nothing", object: "an object", array: "a list", text: "a text", number: "a number", boolean: "true or false"}

// node is a JSON value that knows its line.
type node struct {
	kind  kind
	line  int
	text  string // of a text; of a number its digits
	yes   bool
	read  bool     // something asked for it, and says what becomes of it
	names []string // of an object, in its order
	items []*node
}

// maxNesting bounds how deep a file may go.
const maxNesting = 100

// parseJSON reads a text strictly: a name that is given twice is a mistake,
// since two readers could take different ones.
func parseJSON(name string, content []byte) (*node, error) {
	p := &jsonParser{name: name, content: content, d: json.NewDecoder(bytes.NewReader(content)), line: 1}
	p.d.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.d.Token(); !errors.Is(err, io.EOF) {
		return nil, p.bad("something follows the end of the JSON value")
	}
	return n, nil
}

type jsonParser struct {
	name    string
	content []byte
	d       *json.Decoder
	line    int
	seen    int64
}

// now is the line of the token that was read last.
func (p *jsonParser) now() int {
	at := p.d.InputOffset()
	p.line += bytes.Count(p.content[p.seen:at], []byte("\n"))
	p.seen = at
	return p.line
}

func (p *jsonParser) bad(format string, args ...any) error {
	return mistake(p.name, p.now(), format, args...)
}

func (p *jsonParser) token() (json.Token, error) {
	t, err := p.d.Token()
	if err == nil {
		return t, nil
	}
	line := p.now()
	if s, ok := errors.AsType[*json.SyntaxError](err); ok && s.Offset <= int64(len(p.content)) {
		line = 1 + bytes.Count(p.content[:s.Offset], []byte("\n"))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, mistake(p.name, line, "the JSON ends before it is complete")
	}
	return nil, mistake(p.name, line, "this isn't JSON: %v", err)
}

func (p *jsonParser) value(depth int) (*node, error) {
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.now()}
	if depth > maxNesting {
		return nil, p.bad("more than %d levels of nesting", maxNesting)
	}
	switch t := t.(type) {
	case string:
		n.kind, n.text = text, t
	case json.Number:
		n.kind, n.text = number, t.String()
	case bool:
		n.kind, n.yes = boolean, t
	case json.Delim:
		if n.kind = array; t == '{' {
			n.kind = object
		}
		return n, p.inside(n, depth)
	}
	return n, nil
}

func (p *jsonParser) inside(n *node, depth int) error {
	have := map[string]bool{}
	for p.d.More() {
		if n.kind == object {
			t, err := p.token()
			if err != nil {
				return err
			}
			name := fmt.Sprint(t)
			if have[name] {
				return p.bad("%q is given twice", short(name, 80))
			}
			have[name] = true
			n.names = append(n.names, name)
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, v)
	}
	_, err := p.token()
	return err
}

// at is the value of a name, or nil. It is read with that.
func (n *node) at(names ...string) *node {
	for _, name := range names {
		if n == nil || n.kind != object {
			return nil
		}
		i := slices.Index(n.names, name)
		if i < 0 {
			return nil
		}
		n = n.items[i]
		n.read = true
	}
	return n
}

// fields reads the values that a format wants. The first mistake ends a reading;
// what is read after it is thrown away.
type fields struct {
	name string // of the file
	err  *belay.Error
}

// mistake notes what is wrong. Only the first counts.
func (d *fields) mistake(line int, format string, args ...any) *belay.Error {
	err := mistake(d.name, line, format, args...)
	d.err = cmp.Or(d.err, err)
	return err
}

// want is the value of a name if it has a kind; a value of another kind is a
// mistake, none is nil.
func (d *fields) want(n *node, name string, k kind) *node {
	v := n.at(name)
	if v == nil || v.kind == k {
		return v
	}
	d.mistake(v.line, "%s is %s, not %s", name, kindNames[v.kind], kindNames[k])
	return nil
}

// entries are those of a list, all of one kind.
func (d *fields) entries(n *node, name string, k kind) []*node {
	l := d.want(n, name, array)
	if l == nil {
		return nil
	}
	for _, e := range l.items {
		if e.kind != k {
			d.mistake(e.line, "%s holds %s, not %s", name, kindNames[e.kind], kindNames[k])
			return nil
		}
	}
	return l.items
}

// texts are the entries of a list of texts.
func (d *fields) texts(n *node, name string) []*node { return d.entries(n, name, text) }

// objects are the entries of a list of objects.
func (d *fields) objects(n *node, name string) []*node {
	if l := d.want(n, name, array); l != nil && len(l.items) > policy.MaxRules {
		d.mistake(l.line, "there are %d entries in %s; %d are the most", len(l.items), name, policy.MaxRules)
	}
	return d.entries(n, name, object)
}

// oneOrMore is a text, or a list of them.
func (d *fields) oneOrMore(n *node, name string) []string {
	if v := n.at(name); v != nil && v.kind == text {
		return []string{v.text}
	}
	return textsOf(d.texts(n, name))
}

// word is a text, or empty.
func (d *fields) word(n *node, name string) string {
	if v := d.want(n, name, text); v != nil {
		return v.text
	}
	return ""
}

// flag is true or false; unset is what it is without a word.
func (d *fields) flag(n *node, name string, unset bool) bool {
	if v := d.want(n, name, boolean); v != nil {
		return v.yes
	}
	return unset
}

// plainJSON turns the liberties that people take with JSON into JSON: comments,
// names without quotes, single quotes and commas before an end. Lines stay where
// they are. What it can't read stays as it is, for the parser to refuse.
func plainJSON(in []byte) []byte {
	out := make([]byte, 0, len(in))
	comma := -1 // where in out the last comma stands, if only space came since
	for i := 0; i < len(in); {
		c := in[i]
		switch {
		case c == '/' && i+1 < len(in) && (in[i+1] == '/' || in[i+1] == '*'):
			end := skipComment(in, i)
			out = append(out, bytes.Repeat([]byte("\n"), bytes.Count(in[i:end], []byte("\n")))...)
			i = end
			continue
		case c == '"' || c == '\'':
			var quoted []byte
			quoted, i = quotedText(in, i)
			out, comma = append(out, quoted...), -1
			continue
		case c == ',':
			comma = len(out)
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case isName(c) && !digit(c):
			end := i
			for end < len(in) && isName(in[end]) {
				end++
			}
			out, comma = append(out, bareName(in[i:end], in[end:])...), -1
			i = end
			continue
		case c > ' ':
			comma = -1
			for digit(c) && i+1 < len(in) && isName(in[i+1]) { // the e of a number is no name
				out = append(out, c)
				i++
				c = in[i]
			}
		}
		out = append(out, c)
		i++
	}
	return out
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func isName(c byte) bool {
	return c == '_' || c == '$' || c|0x20 >= 'a' && c|0x20 <= 'z' || digit(c)
}

// bareName is a word as JSON: with quotes if a colon follows.
func bareName(word, rest []byte) []byte {
	if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
		return strconv.AppendQuote(nil, string(word))
	}
	return word
}

func skipComment(in []byte, i int) int {
	end := []byte("\n")
	if in[i+1] == '*' {
		end = []byte("*/")
	}
	n := bytes.Index(in[i+2:], end)
	switch {
	case n < 0:
		return len(in)
	case in[i+1] == '*':
		return i + 2 + n + 2
	}
	return i + 2 + n
}

// quotedText is a quoted text as JSON, and where it ends.
func quotedText(in []byte, i int) ([]byte, int) {
	quote, out := in[i], []byte{'"'}
	for i++; i < len(in); i++ {
		switch c := in[i]; {
		case c == quote:
			return append(out, '"'), i + 1
		case c == '\\' && i+1 < len(in):
			if i++; in[i] != '\'' {
				out = append(out, '\\')
			}
			out = append(out, in[i])
		case c == '"':
			out = append(out, '\\', '"')
		default:
			out = append(out, c)
		}
	}
	return out, i
}

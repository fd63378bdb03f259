// Package jcs gives JSON one spelling, so that a digest of its bytes names
// what it says. The spelling is RFC 8785 with one exception: a number that a
// float64 can't carry keeps its own digits instead of being rounded. What has
// no single meaning has no spelling either and is an error: a key that occurs
// twice, half a surrogate pair, bytes that aren't UTF-8, nesting without end.
// The package is pure and knows nothing of who compares the digests.
package jcs

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is how many arrays and objects may stand inside each other.
const maxDepth = 64

// Kind is a kind of error in a text.
type Kind string

const (
	Syntax    Kind = "syntax"    // it isn't JSON
	Duplicate Kind = "duplicate" // a key occurs twice in one object
	Encoding  Kind = "encoding"  // a string isn't valid Unicode
	Limit     Kind = "limit"     // it is JSON, but beyond what we carry
)

// Error is an error in a text and its place.
type Error struct {
	Kind   Kind
	Path   string // of the value: $, $.name, $.list[3]
	Offset int    // byte in the text, from 0
	Msg    string
}

// Error is the message and its place.
func (e *Error) Error() string {
	return fmt.Sprintf("%s at byte %d (%s)", e.Msg, e.Offset, e.Path)
}

// JSON is the canonical spelling of one JSON value. Errors are *Error.
func JSON(raw []byte) ([]byte, error) {
	p := parser{src: raw}
	dst, err := p.value(make([]byte, 0, len(raw)))
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(p.src) {
		return nil, p.fail(Syntax, p.pos, "%s after the value", p.seen())
	}
	return dst, nil
}

// parser reads src once, left to right.
type parser struct {
	src  []byte
	pos  int
	path []step // of the value being read
}

// step is one level of the path: a key, or an index when key is nil.
type step struct {
	key   *string
	index int
}

// noMember is the index of an object of which no key has been read yet: what is
// wrong then is wrong in the object, not in one of its members.
const noMember = -1

func (p *parser) fail(k Kind, at int, format string, args ...any) error {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range p.path {
		switch {
		case s.index == noMember && s.key == nil: // the object itself
		case s.key == nil:
			fmt.Fprintf(&b, "[%d]", s.index)
		case plainKey(*s.key):
			b.WriteString("." + *s.key)
		default:
			b.WriteString("[" + strconv.Quote(*s.key) + "]")
		}
	}
	return &Error{Kind: k, Path: b.String(), Offset: at, Msg: fmt.Sprintf(format, args...)}
}

func plainKey(k string) bool {
	for _, r := range k {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return k != "" && len(k) <= 64
}

// seen describes the next character for a message.
func (p *parser) seen() string {
	if p.pos >= len(p.src) {
		return "the text ends"
	}
	if c := p.src[p.pos]; c < 0x80 {
		return "unexpected " + strconv.QuoteRune(rune(c))
	}
	return "unexpected character"
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// take moves past c if it comes next.
func (p *parser) take(c byte) bool {
	if p.pos < len(p.src) && p.src[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) value(dst []byte) ([]byte, error) {
	p.space()
	if p.pos >= len(p.src) {
		return nil, p.fail(Syntax, p.pos, "the text ends where a value should be")
	}
	switch c := p.src[p.pos]; {
	case c == '{':
		return p.object(dst)
	case c == '[':
		return p.array(dst)
	case c == '"':
		s, err := p.text()
		if err != nil {
			return nil, err
		}
		return appendString(dst, s), nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number(dst)
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(p.src[p.pos:], []byte(word)) {
			p.pos += len(word)
			return append(dst, word...), nil
		}
	}
	return nil, p.fail(Syntax, p.pos, "%s where a value should be", p.seen())
}

func (p *parser) deeper() error {
	if len(p.path) >= maxDepth {
		return p.fail(Limit, p.pos, "more than %d levels of nesting", maxDepth)
	}
	p.pos++
	return nil
}

func (p *parser) array(dst []byte) ([]byte, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	p.path = append(p.path, step{})
	defer func() { p.path = p.path[:len(p.path)-1] }()
	if p.space(); p.take(']') {
		return append(dst, ']'), nil
	}
	for i := 0; ; i++ {
		p.path[len(p.path)-1].index = i
		var err error
		if dst, err = p.value(dst); err != nil {
			return nil, err
		}
		p.space()
		if p.take(']') {
			return append(dst, ']'), nil
		}
		if !p.take(',') {
			return nil, p.fail(Syntax, p.pos, "%s where a comma or ] should be", p.seen())
		}
		dst = append(dst, ',')
	}
}

// member is one member of an object: its key and the place of its spelling in
// the output.
type member struct {
	key      string
	at       int // of the key in the source
	from, to int
}

func (p *parser) object(dst []byte) ([]byte, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	start := len(dst)
	var members []member
	p.path = append(p.path, step{index: noMember})
	defer func() { p.path = p.path[:len(p.path)-1] }()
	if p.space(); p.take('}') {
		return append(dst, '{', '}'), nil
	}
	for {
		m, out, err := p.member(dst)
		if err != nil {
			return nil, err
		}
		dst, members = out, append(members, m)
		p.space()
		if p.take('}') {
			break
		}
		if !p.take(',') {
			return nil, p.fail(Syntax, p.pos, "%s where a comma or } should be", p.seen())
		}
	}
	slices.SortStableFunc(members, func(a, b member) int { return compareUTF16(a.key, b.key) })
	for i := 1; i < len(members); i++ {
		if members[i].key == members[i-1].key {
			p.path[len(p.path)-1].key = &members[i].key
			return nil, p.fail(Duplicate, members[i].at, "key %q occurs twice", members[i].key)
		}
	}
	return arrange(dst, start, members), nil
}

func (p *parser) member(dst []byte) (member, []byte, error) {
	p.space()
	m := member{at: p.pos, from: len(dst)}
	p.path[len(p.path)-1].key = nil
	if p.pos >= len(p.src) || p.src[p.pos] != '"' {
		return m, nil, p.fail(Syntax, p.pos, "%s where a key should be", p.seen())
	}
	var err error
	if m.key, err = p.text(); err != nil {
		return m, nil, err
	}
	p.path[len(p.path)-1].key = &m.key
	if p.space(); !p.take(':') {
		return m, nil, p.fail(Syntax, p.pos, "%s where a colon should be", p.seen())
	}
	dst = append(appendString(dst, m.key), ':')
	if dst, err = p.value(dst); err != nil {
		return m, nil, err
	}
	m.to = len(dst)
	return m, dst, nil
}

// arrange puts the members, which stand in dst from start on in the order of
// the source, into the order of their keys.
func arrange(dst []byte, start int, members []member) []byte {
	body := bytes.Clone(dst[start:])
	dst = append(dst[:start], '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, body[m.from-start:m.to-start]...)
	}
	return append(dst, '}')
}

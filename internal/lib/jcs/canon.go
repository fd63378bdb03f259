// Package jcs gives JSON one spelling, so that a digest of its bytes names
// what it says. The spelling is RFC 8785 with one exception: a number that a
// float64 can't carry keeps its own digits instead of being rounded. What has
// no single meaning has no spelling either and is an error: a key that occurs
// twice, half a surrogate pair, bytes that aren't UTF-8, nesting without end.
// The package is pure and knows nothing of who compares the digests.
package jcs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/belay-run/belay/internal/lib/match"
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
	p := parser{jsontext.NewDecoder(bytes.NewReader(raw))}
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out)
	for whole := false; ; whole = p.StackDepth() == 0 {
		t, err := p.ReadToken()
		switch {
		case err == io.EOF && whole:
			v := jsontext.Value(out.Bytes())
			err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) // they have their spelling
			return v, err
		case err != nil:
			return nil, p.refusal(err, len(raw))
		case whole:
			return nil, p.fail(Syntax, t, "something follows the value")
		case p.StackDepth() > maxDepth:
			return nil, p.fail(Limit, t, fmt.Sprintf("more than %d levels of nesting", maxDepth))
		case t.Kind() == '0':
			n, ok := number(t.String())
			if !ok {
				return nil, p.fail(Limit, t, fmt.Sprintf("the exponent of a number is beyond %d", maxExponent))
			}
			err = enc.WriteValue(n)
		default:
			err = enc.WriteToken(t)
		}
		if err != nil {
			return nil, err // what was read can be written
		}
	}
}

// parser reads a text once, left to right.
type parser struct{ *jsontext.Decoder }

// fail is an error about the token that was read last.
func (p parser) fail(k Kind, t jsontext.Token, msg string) error {
	return &Error{Kind: k, Path: p.path(p.StackPointer()), Offset: int(p.InputOffset()) - len(t.String()), Msg: msg}
}

// refusal is the error of a text that the decoder didn't take.
func (p parser) refusal(err error, size int) error {
	s, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok { // there is nothing
		return &Error{Kind: Syntax, Path: "$", Offset: size, Msg: "the text ends where a value should be"}
	}
	e := &Error{Kind: Syntax, Path: p.path(s.JSONPointer), Offset: int(s.ByteOffset), Msg: s.Err.Error()}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		e.Kind, e.Msg = Duplicate, fmt.Sprintf("key %q occurs twice", s.JSONPointer.LastToken())
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Msg = "the text ends in the middle of a value"
	case strings.Contains(e.Msg, "UTF-8"):
		e.Kind = Encoding
	case strings.Contains(e.Msg, "surrogate pair"):
		e.Kind, e.Msg = Encoding, "half of a surrogate pair in a string"
	}
	return e
}

// path is a place in words. A pointer doesn't tell a key of digits from an index;
// the decoder knows which objects and arrays are open.
func (p parser) path(at jsontext.Pointer) string {
	b := []byte{'$'}
	level := 0
	for name := range at.Tokens() {
		level++
		switch kind, _ := p.StackIndex(level); {
		case kind == '[':
			b = fmt.Appendf(b, "[%s]", name)
		case plainKey.Match(name):
			b = append(append(b, '.'), name...)
		default:
			b = fmt.Appendf(b, "[%q]", name)
		}
	}
	return string(b)
}

var plainKey = match.Lazy(`^[A-Za-z0-9_-]{1,64}$`)

// Package strictyaml reads what people write by hand, as YAML or JSON: strictly, in
// bounded time, and with the place of every error. What a text means is its
// reader's business.
package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/belay-run/belay"
)

// Bounds of a text. The parser's time grows with the square of the nesting.
const (
	MaxBytes   = 4 << 20
	maxNesting = 100
)

// Text says how errors in a text are reported: each is a belay.Error whose Where
// is Name:line:column.
type Text struct {
	Name  string     // stands for the file
	Noun  string     // what the text is: script, scenario
	Code  belay.Code // of mistakes
	Hint  string     // where the format is described
	Size  string     // what to do about a text that is too long; Hint if absent
	Empty string     // and about one that is empty
}

// Documents parses a text into its documents; those that are empty are left out.
func (t Text) Documents(data []byte) ([]ast.Node, error) {
	if len(data) > MaxBytes {
		return nil, t.Errorf(nil, "the %s has %d bytes; %d are the most", t.Noun, len(data), MaxBytes).WithHint("%s", cmp.Or(t.Size, t.Hint))
	}
	if !utf8.Valid(data) {
		return nil, t.Errorf(nil, "the %s isn't UTF-8 text", t.Noun).WithHint("save the file as UTF-8")
	}
	tokens := lexer.Tokenize(string(data))
	if err := t.plain(tokens); err != nil {
		return nil, err
	}
	f, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, t.Bad(err)
	}
	var bodies []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) == 0 {
		return nil, t.Errorf(nil, "the %s is empty", t.Noun).WithHint("%s", cmp.Or(t.Empty, t.Hint))
	}
	return bodies, nil
}

// Document parses a text that is one document.
func (t Text) Document(data []byte) (ast.Node, error) {
	docs, err := t.Documents(data)
	if err != nil {
		return nil, err
	}
	if len(docs) > 1 {
		return nil, t.Errorf(tokenAt(docs[1], nil), "a second document begins; a %s is one", t.Noun).WithHint("remove the line ---")
	}
	return docs[0], nil
}

// Decode reads a node into a struct with yaml tags; a field that it hasn't is a mistake.
func (t Text) Decode(n ast.Node, into any) error {
	if err := yaml.NodeToValue(n, into, yaml.Strict()); err != nil {
		return t.Bad(err)
	}
	return nil
}

// plain refuses what such a text has no use for and what would make reading it
// slow: references, tags, complex keys, deep nesting.
func (t Text) plain(tokens token.Tokens) error {
	depth, run := 0, 0
	for _, tk := range tokens {
		run++
		switch tk.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			return t.Errorf(tk, "%s: anchors, aliases, tags, merge keys and complex keys aren't read", strings.TrimSpace(tk.Value)).
				WithHint("write the value out, or quote the text if it is one")
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
		default:
			run = 0
		}
		if depth > maxNesting || run > maxNesting {
			return t.Errorf(tk, "more than %d levels of nesting", maxNesting)
		}
	}
	return nil
}

// Errorf is a mistake at a token, with the text's hint; nil is the file as a whole.
func (t Text) Errorf(at *token.Token, format string, args ...any) *belay.Error {
	return belay.Errorf(t.Code, format, args...).At(t.Where(at)).WithHint("%s", t.Hint)
}

// Where is the place of a token: name:line:column, or the name alone.
func (t Text) Where(at *token.Token) string {
	if at == nil || at.Position == nil {
		return t.Name
	}
	return fmt.Sprintf("%s:%d:%d", t.Name, at.Position.Line, at.Position.Column)
}

// ErrorAt is a mistake at a field below a node, or where that isn't in the text
// at the thing it would be in.
func (t Text) ErrorAt(root ast.Node, path []any, format string, args ...any) *belay.Error {
	return t.Errorf(tokenAt(root, path), format, args...)
}

// Reader reads one document and keeps the first mistake in it. Without a root
// every place is the text's name.
type Reader struct {
	Text
	Root ast.Node
	Err  error
}

// Fail is ErrorAt for the document.
func (r *Reader) Fail(path []any, format string, args ...any) *belay.Error {
	err := r.ErrorAt(r.Root, path, format, args...)
	if r.Err == nil {
		r.Err = err
	}
	return err
}

// At is the place of a field.
func (r *Reader) At(path ...any) string { return r.Where(tokenAt(r.Root, path)) }

// Duration reads a length of time; nothing is 0.
func (r *Reader) Duration(path []any, text string, least, most time.Duration) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		r.Fail(path, "%q is no duration between %s and %s", text, least, most).WithHint("write a number with a unit, as in 250ms or 2s")
	}
	return d
}

// Pattern reads a regular expression; nothing is none.
func (r *Reader) Pattern(path []any, text string) *regexp.Regexp {
	re, err := regexp.Compile(text)
	if err != nil {
		r.Fail(path, "no regular expression").Wrap(err).WithHint("the syntax is that of Go's regexp; quote the text in YAML with ' '")
	}
	if text == "" {
		return nil
	}
	return re
}

// Under is the path of something below a field.
func Under(path []any, below ...any) []any { return append(slices.Clone(path), below...) }

// Line is the line on which a node begins.
func Line(n ast.Node) int {
	if tk := tokenAt(n, nil); tk != nil && tk.Position != nil {
		return tk.Position.Line
	}
	return 0
}

// At is the node below root that a path of fields (string) and elements (int)
// leads to, or nil.
func At(root ast.Node, path ...any) ast.Node {
	for _, p := range path {
		if root = childOf(root, p); root == nil {
			return nil
		}
	}
	return root
}

// tokenAt walks as far as the path leads and returns where that begins.
func tokenAt(n ast.Node, path []any) *token.Token {
	for _, p := range path {
		child := childOf(n, p)
		if child == nil {
			break
		}
		n = child
	}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken()
	}
	if n == nil {
		return nil
	}
	return n.GetToken()
}

func childOf(n ast.Node, p any) ast.Node {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			if v.Key.GetToken().Value == p {
				return v.Value
			}
		}
	case *ast.SequenceNode:
		if i, ok := p.(int); ok && i < len(n.Values) {
			return n.Values[i]
		}
	}
	return nil
}

// Bad turns the parser's error into ours.
func (t Text) Bad(err error) *belay.Error {
	var unknown *yaml.UnknownFieldError
	var mismatch *yaml.TypeError
	var other yaml.Error
	switch {
	case errors.As(err, &unknown):
		return t.Errorf(unknown.Token, "%s", unknown.Message).WithHint("check the spelling; %s", t.Hint)
	case errors.As(err, &mismatch):
		return t.Errorf(mismatch.Token, "want %s here, have %s", kindOf(mismatch.DstType), kindOf(mismatch.SrcType))
	case errors.As(err, &other):
		return t.Errorf(other.GetToken(), "%s", other.GetMessage())
	}
	return t.Errorf(nil, "%v", err)
}

// kindOf is a Go type in the words of a format.
func kindOf(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

// Value is a node as plain data: text, a number, true, false or nothing, and
// lists and objects of such.
func Value(n ast.Node) (v any, err error) {
	err = yaml.NodeToValue(n, &v)
	return v, err
}

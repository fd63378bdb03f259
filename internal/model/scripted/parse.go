package scripted

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/belay-run/belay"
)

// Bounds of a file. The parser's time grows with the square of the nesting.
const (
	maxBytes   = 4 << 20
	maxNesting = 100
)

const reference = "docs/scripted.md describes the format"

// Load reads a script from a file.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, belay.Errorf(belay.CodeBadScript, "read the script").At(path).Wrap(errors.Unwrap(err)).
			WithHint("name a YAML or JSON file; %s", reference)
	}
	return Parse(path, data)
}

// Parse reads a script, YAML or JSON. Name stands for the file in errors: a
// mistake is a belay.Error with CodeBadScript whose Where is name:line:column.
func Parse(name string, data []byte) (*Script, error) {
	src := source{name: name}
	if err := src.read(data); err != nil {
		return nil, err
	}
	var f scriptFile
	if err := yaml.NodeToValue(src.root, &f, yaml.Strict()); err != nil {
		return nil, src.bad(err)
	}
	s, err := compile(&src, f)
	if err != nil {
		return nil, err
	}
	if s.name == "" {
		s.name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	return s, nil
}

// source is a file being read; it knows where things stand in it.
type source struct {
	name string
	root ast.Node
}

// read parses the text into one document.
func (src *source) read(data []byte) error {
	if len(data) > maxBytes {
		return src.errorf(nil, "the script has %d bytes; %d are the most", len(data), maxBytes).
			WithHint("use repeat for long loops")
	}
	if !utf8.Valid(data) {
		return src.errorf(nil, "the script isn't UTF-8 text").WithHint("save the file as UTF-8")
	}
	tokens := lexer.Tokenize(string(data))
	if err := src.plain(tokens); err != nil {
		return err
	}
	f, err := parser.Parse(tokens, 0)
	if err != nil {
		return src.bad(err)
	}
	var bodies []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) == 0 {
		return src.errorf(nil, "the script is empty").WithHint("give it steps; %s", reference)
	}
	if len(bodies) > 1 {
		return src.errorf(tokenAt(bodies[1], nil), "a second document begins; a script is one").WithHint("remove the line ---")
	}
	src.root = bodies[0]
	return nil
}

// plain refuses what a script has no use for and what would make reading it
// slow: references, tags, complex keys, deep nesting.
func (src *source) plain(tokens token.Tokens) error {
	depth, run := 0, 0
	for _, t := range tokens {
		run++
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			return src.errorf(t, "%s: anchors, aliases, tags, merge keys and complex keys aren't read", strings.TrimSpace(t.Value)).
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
			return src.errorf(t, "more than %d levels of nesting", maxNesting).WithHint("%s", reference)
		}
	}
	return nil
}

// errorf is a mistake at a token; nil is the file as a whole.
func (src *source) errorf(t *token.Token, format string, args ...any) *belay.Error {
	where := src.name
	if t != nil && t.Position != nil {
		where = fmt.Sprintf("%s:%d:%d", src.name, t.Position.Line, t.Position.Column)
	}
	return belay.Errorf(belay.CodeBadScript, format, args...).At(where)
}

// errorAt is a mistake at a field, or where that isn't in the file at the thing it would be in.
func (src *source) errorAt(path []any, format string, args ...any) *belay.Error {
	return src.errorf(tokenAt(src.root, path), format, args...)
}

// tokenAt walks to a field (string) or an element (int) and returns where it begins.
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

// bad turns the parser's error into ours.
func (src *source) bad(err error) *belay.Error {
	var unknown *yaml.UnknownFieldError
	var mismatch *yaml.TypeError
	var other yaml.Error
	switch {
	case errors.As(err, &unknown):
		return src.errorf(unknown.Token, "%s", unknown.Message).WithHint("check the spelling; %s", reference)
	case errors.As(err, &mismatch):
		return src.errorf(mismatch.Token, "want %s here, have %s", kindOf(mismatch.DstType), kindOf(mismatch.SrcType)).
			WithHint("%s", reference)
	case errors.As(err, &other):
		return src.errorf(other.GetToken(), "%s", other.GetMessage()).WithHint("%s", reference)
	}
	return src.errorf(nil, "%v", err).WithHint("%s", reference)
}

// kindOf is a Go type in the words of the format.
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

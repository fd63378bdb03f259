package scripted

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
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

// Parse reads a script, YAML or JSON. Name is the file's name in errors: a
// mistake is a belay.Error with CodeBadScript whose Where is name:line:column.
func Parse(name string, data []byte) (*Script, error) {
	t := newText(name)
	root, err := t.Document(data)
	if err != nil {
		return nil, err
	}
	return t.script(root)
}

// Read is Parse for a script that is a part of another text; name is that one's.
func Read(name string, part ast.Node) (*Script, error) { return newText(name).script(part) }

// text is a script being read; it knows the places in it.
type text struct {
	strictyaml.Text
	root ast.Node
}

func newText(name string) *text {
	return &text{Text: strictyaml.Text{Name: name, Noun: "script", Code: belay.CodeBadScript, Hint: reference, Size: "use repeat for long loops",
		Empty: "give it steps; " + reference}}
}

func (t *text) script(root ast.Node) (*Script, error) {
	t.root = root
	var f scriptFile
	if err := t.Decode(root, &f); err != nil {
		return nil, err
	}
	s, err := compile(t, f)
	if err != nil {
		return nil, err
	}
	if s.name == "" {
		s.name = strings.TrimSuffix(filepath.Base(t.Name), filepath.Ext(t.Name))
	}
	return s, nil
}

// errorAt is a mistake at a field, or where that isn't in the file at the thing it would be in.
func (t *text) errorAt(path []any, format string, args ...any) *belay.Error {
	return t.ErrorAt(t.root, path, format, args...)
}

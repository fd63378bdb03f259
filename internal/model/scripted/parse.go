package scripted

import (
	"errors"
	"os"

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
	t := formOf(name)
	root, err := t.Document(data)
	if err != nil {
		return nil, err
	}
	return compile(t, root)
}

// Read is Parse for a script that is a part of another text; name is that one's.
func Read(name string, part ast.Node) (*Script, error) { return compile(formOf(name), part) }

func formOf(name string) strictyaml.Text {
	return strictyaml.Text{Name: name, Noun: "script", Code: belay.CodeBadScript, Hint: reference, Size: "use repeat for long loops",
		Empty: "give it steps; " + reference}
}

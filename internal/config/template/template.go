// Package template reads prompts with typed variables. A template has a name, a
// version, a domain and a task kind, and a digest over its bytes, so that a
// session can say which text its task was made from. docs/templates.md is the
// reference of the format.
//
// Rendering puts each value in once and as it is: what a value contains is never
// read as a template.
package template

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// Template is a checked template; it never changes.
type Template struct {
	Name        string       `yaml:"name"`
	Version     string       `yaml:"version"` // three numbers: 1.0.2
	Domain      string       `yaml:"domain"`  // its subject: code, docs, operations
	Kind        string       `yaml:"kind"`    // what is to be done: fix, review, test
	Description string       `yaml:"description"`
	Origin      string       `yaml:"-"` // builtin, user, workspace, or an MCP server's name
	Path        string       `yaml:"-"` // of its file; empty for those of the program
	Remote      bool         `yaml:"-"` // it is a prompt of the MCP server that Origin names, which makes the text
	Variables   []Variable   `yaml:"-"`
	Digest      belay.Digest `yaml:"-"` // of the file

	prompt []piece
}

// Types of variables.
const (
	Text    = "text"    // any text
	Line    = "line"    // text without a line break
	Integer = "integer" // within Min and Max
	Number  = "number"
	Boolean = "boolean" // true or false
	Choice  = "choice"  // one of Choices
	List    = "list"    // one entry in a line; shown as a list of points
	Path    = "path"    // a file of the workspace that exists
)

// Types lists every type, in the order of the reference.
var Types = []string{Text, Line, Integer, Number, Boolean, Choice, List, Path}

// Variable is a place to be filled.
type Variable struct {
	Name        string   `json:"name" yaml:"-"`
	Type        string   `json:"type" yaml:"type"`
	Description string   `json:"description,omitempty" yaml:"description"`
	Required    bool     `json:"required,omitempty" yaml:"required"`
	Default     *string  `json:"default,omitempty" yaml:"-"`
	Choices     []string `json:"choices,omitempty" yaml:"choices"`
	Min         *float64 `json:"min,omitempty" yaml:"min"`
	Max         *float64 `json:"max,omitempty" yaml:"max"`
}

const reference = "docs/templates.md describes the format"

// The file as it is written.
type (
	templateFile struct {
		Template  `yaml:",inline"`
		Variables yaml.MapSlice `yaml:"variables"`
		Prompt    string        `yaml:"prompt"`
	}
	variableFile struct {
		Variable `yaml:",inline"`
		Default  any `yaml:"default"` // text, a number or a boolean
	}
)

var (
	word    = match.Lazy(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	varName = match.Lazy(`^[a-z][a-zA-Z0-9_]*$`)
	semver  = match.Lazy(`^(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})$`)
)

const (
	maxWord      = 64
	maxVariables = 50
)

// Parse reads a template. Name is the file's name in errors: a mistake is a
// belay.Error with CodeBadTemplate whose Where is name:line:column.
func Parse(name string, data []byte) (*Template, error) {
	p := parser{Reader: strictyaml.Reader{Text: strictyaml.Text{Name: name, Noun: "template", Code: belay.CodeBadTemplate, Hint: reference}}}
	root, err := p.Document(data)
	if err != nil {
		return nil, err
	}
	p.Root = root
	var f templateFile
	if err := p.Decode(root, &f); err != nil {
		return nil, err
	}
	p.t, p.t.Digest = f.Template, belay.DigestOf(data)
	p.head()
	p.variables(f.Variables)
	p.prompt(f.Prompt)
	if p.Err != nil {
		return nil, p.Err
	}
	return &p.t, nil
}

// parser collects the first mistake.
type parser struct {
	strictyaml.Reader
	t Template
}

func (p *parser) head() {
	for field, v := range map[string]string{"name": p.t.Name, "domain": p.t.Domain, "kind": p.t.Kind} {
		if len(v) > maxWord || !word.Match(v) {
			p.Fail([]any{field}, "%s %q is not lower-case words joined by hyphens", field, v).WithHint("%s", "such as "+field+": code-review")
			return
		}
	}
	if !semver.Match(p.t.Version) {
		p.Fail([]any{"version"}, "version %q is not three numbers with dots between them", p.t.Version).WithHint("version: 1.0.0")
	}
}

func (p *parser) variables(fields yaml.MapSlice) {
	if len(fields) > maxVariables {
		p.Fail([]any{"variables"}, "%d variables; %d are the most", len(fields), maxVariables)
		return
	}
	for _, item := range fields {
		name, _ := item.Key.(string)
		at := []any{"variables", name}
		if !varName.Match(name) || len(name) > maxWord {
			p.Fail(at, "%v is no name of a variable", item.Key).WithHint("begin with a lower-case letter; then letters, digits and _")
			return
		}
		var f variableFile
		if err := p.Decode(strictyaml.At(p.Root, at...), &f); err != nil {
			if p.Err == nil {
				p.Err = err
			}
			return
		}
		p.variable(name, at, f)
	}
}

func (p *parser) variable(name string, at []any, f variableFile) {
	v := f.Variable
	v.Name, v.Type = name, cmp.Or(v.Type, Text)
	switch {
	case !slices.Contains(Types, v.Type):
		p.Fail(append(at, "type"), "there is no type %q", f.Type).WithHint("%s", "one of "+strings.Join(Types, ", "))
	case (v.Type == Choice) != (len(v.Choices) > 0):
		p.Fail(append(at, "choices"), "choices belong to the type choice").WithHint("type: choice has choices: [a, b], other types have none")
	case (v.Min != nil || v.Max != nil) && v.Type != Integer && v.Type != Number:
		p.Fail(at, "min and max belong to numbers").WithHint("leave min and max out")
	case v.Min != nil && v.Max != nil && *v.Min > *v.Max:
		p.Fail(append(at, "min"), "min is greater than max").WithHint("exchange them")
	case v.Required && f.Default != nil:
		p.Fail(append(at, "default"), "a required variable needs no default").WithHint("leave one of them out")
	}
	if f.Default != nil && p.Err == nil {
		text := fmt.Sprint(f.Default)
		if err := v.check(text, nil); err != nil {
			p.Fail(append(at, "default"), "%s", err).WithHint("give a default that fits")
		}
		v.Default = &text
	}
	p.t.Variables = append(p.t.Variables, v)
}

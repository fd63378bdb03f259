// Package template reads prompts with typed variables. A template has a name, a
// version, a domain and a task kind, and a digest over its bytes, so that a
// session can say which text its task was made from. docs/templates.md is the
// reference of the format.
//
// Rendering puts each value in once and as it is: what a value contains is never
// read as a template.
package template

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// Template is a checked template; it never changes.
type Template struct {
	Name        string
	Version     string // three numbers: 1.0.2
	Domain      string // its subject: code, docs, operations
	Kind        string // what is to be done: fix, review, test
	Description string
	Origin      string // builtin, user, workspace
	Path        string // of its file; empty for those of the program
	Variables   []Variable
	Digest      belay.Digest // of the file

	parts []part
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
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Default     *string  `json:"default,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	Min         *float64 `json:"min,omitempty"`
	Max         *float64 `json:"max,omitempty"`
}

const reference = "docs/templates.md describes the format"

// The file as it is written.
type (
	templateFile struct {
		Name        string        `yaml:"name"`
		Version     string        `yaml:"version"`
		Domain      string        `yaml:"domain"`
		Kind        string        `yaml:"kind"`
		Description string        `yaml:"description"`
		Variables   yaml.MapSlice `yaml:"variables"`
		Prompt      string        `yaml:"prompt"`
	}
	variableFile struct {
		Type        string   `yaml:"type"`
		Description string   `yaml:"description"`
		Required    bool     `yaml:"required"`
		Default     any      `yaml:"default"` // text, a number or a boolean
		Choices     []string `yaml:"choices"`
		Min         *float64 `yaml:"min"`
		Max         *float64 `yaml:"max"`
	}
)

var (
	word    = pattern(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	varName = pattern(`^[a-z][a-zA-Z0-9_]*$`)
	semver  = pattern(`^(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})$`)
)

// pattern is compiled when it is needed: most starts of the program read no template.
func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

const (
	maxWord      = 64
	maxVariables = 50
)

// Parse reads a template. Name is the file's name in errors: a mistake is a
// belay.Error with CodeBadTemplate whose Where is name:line:column.
func Parse(name string, data []byte) (*Template, error) {
	p := parser{Text: strictyaml.Text{Name: name, Noun: "template", Code: belay.CodeBadTemplate, Hint: reference}}
	root, err := p.Document(data)
	if err != nil {
		return nil, err
	}
	p.root = root
	var f templateFile
	if err := p.Decode(root, &f); err != nil {
		return nil, err
	}
	p.t = Template{Name: f.Name, Version: f.Version, Domain: f.Domain, Kind: f.Kind, Description: f.Description, Digest: belay.DigestOf(data)}
	p.head()
	p.variables(f.Variables)
	p.prompt(f.Prompt)
	if p.err != nil {
		return nil, p.err
	}
	return &p.t, nil
}

// parser collects the first mistake.
type parser struct {
	strictyaml.Text
	root ast.Node
	t    Template
	err  error
}

func (p *parser) fail(hint string, path []any, format string, args ...any) {
	if p.err == nil {
		p.err = p.ErrorAt(p.root, path, format, args...).WithHint("%s", hint)
	}
}

func (p *parser) head() {
	for field, v := range map[string]string{"name": p.t.Name, "domain": p.t.Domain, "kind": p.t.Kind} {
		if len(v) > maxWord || !word().MatchString(v) {
			p.fail("such as "+field+": code-review", []any{field}, "%s %q is not lower-case words joined by hyphens", field, v)
			return
		}
	}
	if !semver().MatchString(p.t.Version) {
		p.fail("version: 1.0.0", []any{"version"}, "version %q is not three numbers with dots between them", p.t.Version)
	}
}

func (p *parser) variables(fields yaml.MapSlice) {
	if len(fields) > maxVariables {
		p.fail(reference, []any{"variables"}, "%d variables; %d are the most", len(fields), maxVariables)
		return
	}
	for _, item := range fields {
		name, _ := item.Key.(string)
		at := []any{"variables", name}
		if !varName().MatchString(name) || len(name) > maxWord {
			p.fail("begin with a lower-case letter; then letters, digits and _", at, "%v is no name of a variable", item.Key)
			return
		}
		var f variableFile
		if err := p.Decode(strictyaml.At(p.root, at...), &f); err != nil {
			if p.err == nil {
				p.err = err
			}
			return
		}
		p.variable(name, at, f)
	}
}

func (p *parser) variable(name string, at []any, f variableFile) {
	v := Variable{Name: name, Type: f.Type, Description: f.Description, Required: f.Required, Choices: f.Choices, Min: f.Min, Max: f.Max}
	if v.Type == "" {
		v.Type = Text
	}
	switch {
	case !slices.Contains(Types, v.Type):
		p.fail("one of "+strings.Join(Types, ", "), append(at, "type"), "there is no type %q", f.Type)
	case (v.Type == Choice) != (len(v.Choices) > 0):
		p.fail("type: choice has choices: [a, b], other types have none", append(at, "choices"), "choices belong to the type choice")
	case (v.Min != nil || v.Max != nil) && v.Type != Integer && v.Type != Number:
		p.fail("leave min and max out", at, "min and max belong to numbers")
	case v.Min != nil && v.Max != nil && *v.Min > *v.Max:
		p.fail("exchange them", append(at, "min"), "min is greater than max")
	case v.Required && f.Default != nil:
		p.fail("leave one of them out", append(at, "default"), "a required variable needs no default")
	}
	if f.Default != nil && p.err == nil {
		text := fmt.Sprint(f.Default)
		if err := v.check(text, nil); err != nil {
			p.fail("give a default that fits", append(at, "default"), "%s", err)
		}
		v.Default = &text
	}
	p.t.Variables = append(p.t.Variables, v)
}

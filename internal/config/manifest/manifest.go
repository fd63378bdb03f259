// Package manifest reads the files in which people describe what Belay shall be
// and use: settings, and tools that are commands. It promises that a file is read strictly and in bounded time, that
// every mistake names its line and column and what to do, and that a value a
// model gives can become an argument of a program, never an option it didn't
// ask for, a program, or code. It runs nothing and decides nothing: what may count
// is its caller's business.
//
// config.go reads settings, provider.go the providers of models beside them. manifest.go has the form of a tool, argv.go the template of a command line,
// check.go what a template may not do.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/tool"
)

// Bounds of a manifest.
const (
	maxTools       = 50 // in a file
	maxDescription = 2000
	maxTimeout     = time.Hour
	maxOutput      = 256 << 10
	defaultTimeout = 2 * time.Minute
	defaultOutput  = 16 << 10
)

const hint = "docs/tools.md describes the form"

// Command is a tool that is a command.
type Command struct {
	Spec    belay.ToolSpec
	Argv    Template
	Stdin   Text
	Pass    []string        // variables of the runtime's environment that pass
	Set     map[string]Text // and those that are set
	Dir     string          // relative to the workspace
	Timeout time.Duration
	Output  int
	Dash    []string // arguments that may begin with a hyphen
	Recover Template // finds out after a crash whether it was done; empty unless the effect is recoverable
	Where   string   // file and line
}

// file is the YAML of one tool.
type file struct {
	Name         string   `yaml:"name"`
	Description  string   `yaml:"description"`
	Args         any      `yaml:"args"`
	Argv         []any    `yaml:"argv"`
	Stdin        string   `yaml:"stdin"`
	Env          env      `yaml:"env"`
	Cwd          string   `yaml:"cwd"`
	Timeout      string   `yaml:"timeout"`
	Effect       string   `yaml:"effect"`
	ReadOnly     bool     `yaml:"read_only"`
	Exclusive    bool     `yaml:"exclusive"`
	Access       string   `yaml:"access"`
	Path         string   `yaml:"path"`
	Output       int      `yaml:"output_limit"`
	Schema       any      `yaml:"output_schema"`
	Capabilities []string `yaml:"capabilities"`
	Untrusted    bool     `yaml:"untrusted"`
	Group        string   `yaml:"group"`
	Load         string   `yaml:"load"`
	Dash         []string `yaml:"dash"`
	Recover      *struct {
		Argv []any `yaml:"argv"`
	} `yaml:"recover"`
}

type env struct {
	Pass []string          `yaml:"pass"`
	Set  map[string]string `yaml:"set"`
}

// Parse reads a file: one tool, or several as documents of it.
func Parse(name string, data []byte) ([]Command, error) {
	t := strictyaml.Text{Name: name, Noun: "manifest", Code: belay.CodeBadManifest, Hint: hint}
	docs, err := t.Documents(data)
	if err != nil {
		return nil, err
	}
	if len(docs) > maxTools {
		return nil, t.Errorf(nil, "the file declares %d tools; %d are the most", len(docs), maxTools).WithHint("use several files")
	}
	digest := belay.DigestOf(data)
	var out []Command
	for _, d := range docs {
		r := reader{Reader: strictyaml.Reader{Text: t, Root: d}}
		c, err := r.read()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Command) bool { return o.Spec.Name == c.Spec.Name }) {
			return nil, r.Fail([]any{"name"}, "the file declares %s twice", c.Spec.Name).WithHint("rename one of them")
		}
		c.Spec.Definition = digest
		c.Where = fmt.Sprintf("%s:%d", name, strictyaml.Line(d))
		out = append(out, c)
	}
	return out, nil
}

// reader reads one document.
type reader struct {
	strictyaml.Reader
	f     file
	types map[string]argument // of the schema's properties
}

// argument is what a schema says of one argument.
type argument struct {
	kind   string // string, number, integer, boolean, object, or empty
	list   bool
	closed bool // its values are listed
}

var simpleName = match.Lazy(`^[a-z][a-z0-9_-]{0,31}$`)

func (r *reader) read() (c Command, err error) {
	if _, ok := r.Root.(*ast.MappingNode); !ok {
		return c, r.Fail(nil, "a tool is an object with name, description, args and argv")
	}
	if err := r.Decode(r.Root, &r.f); err != nil {
		return c, err
	}
	for _, step := range []func(*Command) error{r.identity, r.schema, r.spec, r.behaviour, r.templates, r.environment, r.safety} {
		if err := step(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (r *reader) identity(c *Command) error {
	f := &r.f
	doc := strings.TrimSpace(f.Description)
	switch {
	case f.Name == "":
		return r.Fail(nil, "the tool has no name").WithHint("name: lint")
	case !tool.Name.Match(f.Name):
		return r.Fail([]any{"name"}, "%q is not a name for a tool", f.Name).WithHint("use 1 to 64 letters, digits, _ and -")
	case doc == "":
		return r.Fail([]any{"description"}, "%s has no description: a model chooses by it", f.Name).WithHint("description: say what it does and when to use it")
	case len(doc) > maxDescription:
		return r.Fail([]any{"description"}, "the description has %d bytes; %d are the most", len(doc), maxDescription).WithHint("it is part of every request: shorten it")
	case !slices.Contains([]string{"", "always", tool.LoadAuto, tool.LoadSearch}, f.Load):
		return r.Fail([]any{"load"}, "%q is no way to load a tool", f.Load).WithHint("load: always, auto or search")
	case f.Group != "" && !simpleName.Match(f.Group):
		return r.Fail([]any{"group"}, "%q is not a name for a group", f.Group).WithHint("use a to z, digits, _ and -")
	}
	c.Spec.Name, c.Spec.Doc, c.Spec.Group, c.Spec.Load = f.Name, doc, f.Group, f.Load
	if f.Load == "always" {
		c.Spec.Load = ""
	}
	if c.Spec.Group == "" {
		c.Spec.Group = tool.CommandsGroup
	}
	return nil
}

// schema reads the arguments' schema, and that of the output. Additional arguments are
// refused unless it allows them.
func (r *reader) schema(c *Command) error {
	n := strictyaml.At(r.Root, "args")
	raw := []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
	if n != nil {
		text, err := nodeJSON(n)
		if raw = []byte(text); err != nil {
			return r.Fail([]any{"args"}, "the schema has no form in JSON: %v", err)
		}
	}
	var top struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional *json.RawMessage           `json:"additionalProperties"`
	}
	if err := json.Unmarshal(raw, &top); err != nil || top.Type != "object" {
		return r.Fail([]any{"args"}, "args must be a JSON Schema of type object").WithHint("args: {type: object, properties: {path: {type: string}}, required: [path]}")
	}
	if top.Additional == nil {
		raw = append(raw[:len(raw)-1:len(raw)-1], `,"additionalProperties":false}`...)
	}
	if _, err := tool.ReadSchema(raw); err != nil {
		return r.Fail([]any{"args"}, "args is not a schema: %v", err)
	}
	r.types = map[string]argument{}
	for name, p := range top.Properties {
		r.types[name] = argumentOf(p)
	}
	for i, name := range top.Required {
		if _, ok := r.types[name]; !ok {
			return r.Fail([]any{"args", "required", i}, "%s is required and not among the properties", name)
		}
	}
	c.Spec.Input = raw
	if n = strictyaml.At(r.Root, "output_schema"); n == nil {
		return nil
	}
	text, err := nodeJSON(n)
	if err == nil {
		_, err = tool.ReadSchema([]byte(text))
	}
	if err != nil {
		return r.Fail([]any{"output_schema"}, "output_schema is not a JSON Schema: %v", err).WithHint("output_schema: {type: object, properties: {count: {type: integer}}, required: [count]}")
	}
	c.Spec.Output = json.RawMessage(text)
	return nil
}

func argumentOf(raw json.RawMessage) argument {
	var p struct {
		Type  any             `json:"type"`
		Enum  []any           `json:"enum"`
		Items json.RawMessage `json:"items"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return argument{}
	}
	a := argument{closed: len(p.Enum) > 0}
	a.kind, _ = p.Type.(string)
	if a.kind == "array" {
		a = argumentOf(p.Items)
		a.list = true
	}
	return a
}

func (r *reader) spec(c *Command) error {
	f, s := &r.f, &c.Spec
	s.Effect, s.ReadOnly, s.Exclusive, s.Untrusted = belay.EffectClass(f.Effect), f.ReadOnly, f.Exclusive, f.Untrusted
	if s.Effect == "" {
		s.Effect = belay.AtMostOnce
	}
	if !slices.Contains([]belay.EffectClass{belay.Pure, belay.Idempotent, belay.Recoverable, belay.AtMostOnce}, s.Effect) {
		return r.Fail([]any{"effect"}, "effect %q is none of pure, idempotent, recoverable, at_most_once", f.Effect).WithHint("leave it out: at_most_once is never run twice by itself")
	}
	if (s.Effect == belay.Recoverable) != (f.Recover != nil) {
		return r.Fail([]any{"effect"}, "effect recoverable and recover go together").WithHint("recover: {argv: […]}, a command that exits with 0 if the work was done and with 1 if it was not")
	}
	s.Destructive, s.Access = !f.ReadOnly, belay.Write
	if f.ReadOnly {
		s.Access = belay.Read
	}
	switch f.Access {
	case "":
	case "read", "write":
		s.Access = belay.Access(f.Access)
	default:
		return r.Fail([]any{"access"}, "access %q is neither read nor write", f.Access)
	}
	if f.ReadOnly && s.Access == belay.Write {
		return r.Fail([]any{"access"}, "it is read_only, and writes").WithHint("leave access out")
	}
	if f.Path != "" {
		if a, ok := r.types[f.Path]; !ok || a.list || a.kind != "string" {
			return r.Fail([]any{"path"}, "path names no argument that is a string").WithHint("path: the argument that holds the file it touches")
		}
		s.PathArg = f.Path
	}
	s.Capabilities = []string{tool.CapProcess}
	for i, name := range f.Capabilities {
		if !simpleName.Match(name) || name == tool.CapPublish {
			return r.Fail([]any{"capabilities", i}, "%q is not a capability a command can have", name)
		}
		if !slices.Contains(s.Capabilities, name) {
			s.Capabilities = append(s.Capabilities, name)
		}
	}
	return nil
}

func (r *reader) behaviour(c *Command) error {
	f := &r.f
	c.Timeout, c.Output, c.Dir = defaultTimeout, defaultOutput, f.Cwd
	if f.Timeout != "" {
		d, err := time.ParseDuration(f.Timeout)
		if err != nil || d < time.Second || d > maxTimeout {
			return r.Fail([]any{"timeout"}, "timeout %q is not a length of time from 1s to %s", f.Timeout, maxTimeout).WithHint("timeout: 90s")
		}
		c.Timeout = d
	}
	if f.Output != 0 {
		if f.Output < 256 || f.Output > maxOutput {
			return r.Fail([]any{"output_limit"}, "output_limit is from 256 to %d bytes", maxOutput).WithHint("what is left out is kept; this is what the model is shown")
		}
		c.Output = f.Output
	}
	if strings.HasPrefix(f.Cwd, "/") || slices.Contains(strings.Split(f.Cwd, "/"), "..") || strings.ContainsAny(f.Cwd, "{}") {
		return r.Fail([]any{"cwd"}, "cwd is a folder of the workspace, without .. and without arguments").WithHint("cwd: web")
	}
	c.Spec.Timeout = belay.Duration(c.Timeout + 45*time.Second) // the command's own limit comes first
	c.Spec.OutputLimit = c.Output + 1<<10
	return nil
}

// nodeJSON is a node as JSON, its keys in the order in which they are written.
func nodeJSON(n ast.Node) (string, error) {
	var parts []string
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			key, err := json.Marshal(v.Key.GetToken().Value)
			val, below := nodeJSON(v.Value)
			if err := errors.Join(err, below); err != nil {
				return "", err
			}
			parts = append(parts, string(key)+":"+val)
		}
		return "{" + strings.Join(parts, ",") + "}", nil
	case *ast.SequenceNode:
		for _, v := range n.Values {
			val, err := nodeJSON(v)
			if err != nil {
				return "", err
			}
			parts = append(parts, val)
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	}
	v, err := strictyaml.Value(n)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(v)
	return string(b), err
}

package agentfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

const reference = "docs/agent-files.md describes the formats"

// belayFile is the YAML of Belay's own format.
type belayFile struct {
	Name         string         `yaml:"name"`
	Version      string         `yaml:"version"`
	Description  string         `yaml:"description"`
	Domain       string         `yaml:"domain"`
	Priority     string         `yaml:"priority"`
	Instructions string         `yaml:"instructions"`
	Model        string         `yaml:"model"`
	Effort       string         `yaml:"effort"`
	Mode         string         `yaml:"mode"`
	Tools        *words         `yaml:"tools"`
	Capabilities words          `yaml:"capabilities"`
	Limits       amounts        `yaml:"limits"`
	Budget       budget         `yaml:"budget"`
	Output       any            `yaml:"output"`
	Requires     words          `yaml:"requires"`
	Optional     words          `yaml:"optional"`
	Conflicts    words          `yaml:"conflicts"`
	Tasks        []StandingTask `yaml:"tasks"`
}

type budget struct {
	Tokens Tokens `yaml:"tokens"`
	Money  scalar `yaml:"money"`
}

// words is a list, or one text with commas.
type words []string

// UnmarshalYAML reads either.
func (w *words) UnmarshalYAML(read func(any) error) error {
	var one string
	if read(&one) == nil {
		*w = commas(one)
		return nil
	}
	return read((*[]string)(w))
}

// scalar is a text or a number as it is written.
type scalar string

// UnmarshalYAML reads either.
func (s *scalar) UnmarshalYAML(raw []byte) error {
	*s = scalar(strings.Trim(strings.TrimSpace(string(raw)), `"'`))
	return nil
}

type amounts map[string]scalar

func commas(s string) (out []string) {
	for _, w := range strings.Split(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// yamlText says how mistakes in a file are told.
func yamlText(path string) strictyaml.Text {
	return strictyaml.Text{Name: path, Noun: "agent", Code: belay.CodeBadManifest, Hint: reference, Empty: reference}
}

// readYAML reads a file in Belay's format or in Toka's, which has metadata and spec.
func (a *Agent) readYAML(data []byte) {
	text := yamlText(a.Path)
	root, err := text.Document(data)
	if err == nil {
		if _, ok := root.(*ast.MappingNode); !ok {
			if _, single := root.(*ast.MappingValueNode); !single {
				err = text.Errorf(root.GetToken(), "want an object here")
			}
		}
	}
	if err != nil {
		a.bad(err)
		return
	}
	if strictyaml.At(root, "metadata") != nil && strictyaml.At(root, "spec") != nil {
		a.Format = Toka
		a.readToka(text, root)
		return
	}
	a.Format = Belay
	var f belayFile
	if err := text.Decode(root, &f); err != nil {
		a.bad(err)
		return
	}
	at := func(path ...any) string { return (&strictyaml.Reader{Text: text, Root: root}).At(path...) }
	a.named(f.Name, f.Version, at("name"), at("version"))
	a.Description, a.Domain, a.Instructions, a.Model = strings.TrimSpace(f.Description), f.Domain, strings.TrimSpace(f.Instructions), f.Model
	a.Priority = a.oneOf("priority", f.Priority, at("priority"), Priorities...)
	a.Effort = a.oneOf("effort", f.Effort, at("effort"), "low", "medium", "high")
	a.Mode = belay.Mode(a.oneOf("mode", f.Mode, at("mode"), modes()...))
	if f.Tools != nil {
		a.Tools, a.NoTools = *f.Tools, len(*f.Tools) == 0
	}
	a.capable(f.Capabilities, at("capabilities"))
	for _, name := range slices.Sorted(maps.Keys(f.Limits)) {
		if err := a.limit(name, string(f.Limits[name])); err != nil {
			a.find(Error, CodeBadLimit, at("limits", name), "the limits are "+limitNames, "%v", err)
		}
	}
	a.spend(f.Budget, at)
	if f.Output != nil {
		a.Output = a.schema(strictyaml.At(root, "output"), at("output"))
	}
	for _, l := range []struct {
		field string
		names []string
		into  *[]Need
	}{{"requires", f.Requires, &a.Requires}, {"optional", f.Optional, &a.Optional}, {"conflicts", f.Conflicts, &a.Conflicts}} {
		for i, name := range l.names {
			if n, ok := a.need(name, "", at(l.field, i)); ok {
				*l.into = append(*l.into, n)
			}
		}
	}
	a.Tasks = f.Tasks
	for i, t := range a.Tasks {
		a.checkTask(t, at("tasks", i))
	}
	if a.Instructions == "" && len(a.Tasks) == 0 {
		a.find(Error, CodeBadFile, at("instructions"), "instructions: what the agent is to know and do", "the agent has neither instructions nor tasks")
	}
}

func (a *Agent) spend(b budget, at func(...any) string) {
	switch t := b.Tokens; {
	case t.Min < 0 || t.Optimal < 0:
		a.find(Error, CodeBadLimit, at("budget", "tokens"), "", "a number of tokens is below zero")
	case t.Optimal > 0 && t.Min > t.Optimal:
		a.find(Error, CodeBadLimit, at("budget", "tokens", "min"), "exchange them", "min is greater than optimal")
	default:
		a.Tokens, a.Limits.Tokens = t, t.Optimal
	}
	if b.Money != "" {
		var err error
		if a.Limits.MicroUSD, err = money(string(b.Money)); err != nil {
			a.find(Error, CodeBadLimit, at("budget", "money"), "", "%v", err)
		}
	}
}

// schema is a JSON Schema that stands in the file.
func (a *Agent) schema(n ast.Node, where string) json.RawMessage {
	v, err := strictyaml.Value(n)
	if err == nil {
		if _, ok := v.(map[string]any); !ok {
			err = fmt.Errorf("a schema is an object")
		}
	}
	var raw []byte
	if err == nil {
		raw, err = yaml.YAMLToJSON([]byte(n.String()))
	}
	if err == nil {
		err = tool.CheckSchema(raw)
	}
	if err != nil {
		a.find(Error, CodeBadFile, where, "a JSON Schema, such as type: object", "the output's schema can't be used: %v", err)
		return nil
	}
	return bytes.TrimSpace(raw)
}

func (a *Agent) checkTask(t StandingTask, where string) {
	if strings.TrimSpace(t.Description) == "" {
		a.find(Error, CodeBadFile, where, "description: what to do", "a task has no description")
	}
	a.oneOf("priority", t.Priority, where, Priorities...)
}

// capable takes words that narrow what the agent may do.
func (a *Agent) capable(words []string, where string) {
	if len(words) == 0 {
		return
	}
	if _, err := policy.CapabilityRules(policy.TierAgent, words); err != nil {
		a.find(Error, CodeCapability, where, "docs/policy.md lists the words", "%v", err)
		return
	}
	for _, w := range words {
		if !policy.IsCapability(w) {
			a.find(Note, CodeCapability, where, "", "%s is no capability that Belay knows: it is taken for a tool's name", short(w, 80))
		}
	}
	a.Can = words
}

// oneOf checks a fixed word; empty is one.
func (a *Agent) oneOf(key, word, where string, known ...string) string {
	if word == "" || slices.Contains(known, word) {
		return word
	}
	level := Error
	if a.Format == Markdown {
		level = Warning // what other programs know needn't be known here
	}
	a.find(level, CodeUnknownWord, where, "one of "+strings.Join(known, ", "), "%s: there is no %q", key, short(word, 40))
	return ""
}

func modes() (out []string) {
	for _, m := range belay.Modes {
		out = append(out, string(m))
	}
	return out
}

// bad is the finding of a file that its format refuses.
func (a *Agent) bad(err error) {
	f := Finding{Level: Error, Code: CodeBadFile, Where: a.Path, Message: err.Error(), Hint: reference}
	if e, ok := err.(*belay.Error); ok { //nolint:errorlint // the reader makes it
		f.Where, f.Message, f.Hint = e.Where, e.Message, e.Hint
		if e.Err != nil {
			f.Message += ": " + e.Err.Error()
		}
	}
	a.Findings = append(a.Findings, f)
	if a.Name == "" {
		a.Name = baseName(a.Path)
	}
}

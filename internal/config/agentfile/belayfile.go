package agentfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	Input        any            `yaml:"input"`
	Output       any            `yaml:"output"`
	Tasks        []StandingTask `yaml:"tasks"`
	CompleteAt   scalar         `yaml:"complete_at"`
	Estimate     scalar         `yaml:"estimate"`
	Context      string         `yaml:"context"`
	Isolation    string         `yaml:"isolation"`
	Skills       words          `yaml:"skills"`

	// exported, because the reader of YAML sets no others
	Allowed `yaml:",inline"`
	Proof   `yaml:",inline"`
	Others  `yaml:",inline"`

	Members map[string]memberFile `yaml:"members"`
	Result  map[string]string     `yaml:"result"` // expressions, by the fields of a team's output
}

// Allowed is what an agent may do and use.
type Allowed struct {
	Mode         string  `yaml:"mode"`
	Tools        *words  `yaml:"tools"`
	Capabilities words   `yaml:"capabilities"`
	Rules        []any   `yaml:"rules"` // package rulefile reads them
	Boundary     string  `yaml:"boundary"`
	Limits       amounts `yaml:"limits"`
	Budget       budget  `yaml:"budget"`
	Resources    amounts `yaml:"resources"`
}

// Proof is what shows that an agent, or its work, is good.
type Proof struct {
	Gates      []gate      `yaml:"gates"`
	Verifier   *verifier   `yaml:"verifier"`
	Confidence *confidence `yaml:"confidence"`
	Health     words       `yaml:"health"`
	Tests      []any       `yaml:"tests"` // package eval reads them
}

// Others are the agents that an agent needs, and what follows when it fails.
type Others struct {
	Requires  words  `yaml:"requires"`
	Optional  words  `yaml:"optional"`
	Conflicts words  `yaml:"conflicts"`
	Retry     *retry `yaml:"retry"`
	Fallback  words  `yaml:"fallback"`
	OnFailure string `yaml:"on_failure"`
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
	a.places = map[string]string{"tools": at("tools"), "model": at("model"), "rules": at("rules")}
	a.capable(f.Capabilities, at("capabilities"))
	for _, name := range slices.Sorted(maps.Keys(f.Limits)) {
		if err := a.limit(name, string(f.Limits[name])); err != nil {
			a.find(Error, CodeBadLimit, at("limits", name), "the limits are "+limitNames, "%v", err)
		}
	}
	a.spend(f.Budget, at)
	if f.Input != nil {
		a.Input = a.schema("input", strictyaml.At(root, "input"), at("input"))
	}
	if f.Output != nil {
		a.Output = a.schema("output", strictyaml.At(root, "output"), at("output"))
	}
	for _, l := range []struct {
		field string
		names []string
		into  *[]Need
	}{{"requires", f.Requires, &a.Requires}, {"optional", f.Optional, &a.Optional}, {"conflicts", f.Conflicts, &a.Conflicts}} {
		for i, name := range l.names {
			n, ok := a.need(name, "", at(l.field, i))
			if !ok {
				continue
			}
			if *l.into = append(*l.into, n); l.field == "requires" {
				a.names = append(a.names, named{"", n.String(), at(l.field, i)})
			}
		}
	}
	a.work(f, at)
	a.gates(&f, root, at)
	a.Tests = len(f.Tests)
	a.Boundary = f.Boundary
	a.Context = a.oneOf("context", f.Context, at("context"), "task", "fork")
	a.Isolation = a.oneOf("isolation", f.Isolation, at("isolation"), "none", Worktree)
	a.Skills = f.Skills
	a.resources(f.Resources, f.Limits, func(name string) string { return at("resources", name) })
	a.rules(strictyaml.At(root, "rules"), at("rules"))
	if a.Health = f.Health; len(f.Health) == 1 {
		a.Health = strings.Fields(f.Health[0])
	}
	a.Tasks = f.Tasks
	for i, t := range a.Tasks {
		a.checkTask(t, at("tasks", i))
	}
	a.team(f.Members, f.Result, at)
	for _, key := range ofMembers {
		if len(f.Members) > 0 && strictyaml.At(root, key) != nil {
			a.find(Warning, CodeNotTaken, at(key), "write it into the files of the members' agents", "%s isn't taken from the file of a team: it says what one agent may do, or how its work is checked", key)
		}
	}
	if len(f.Members) > 0 && (a.Instructions != "" || len(a.Tasks) > 0) {
		a.find(Error, CodeBadFile, at("members"), "give them to a member", "a team has members, and neither instructions nor tasks of its own")
	}
	if a.Instructions == "" && len(a.Tasks) == 0 && len(f.Members) == 0 {
		a.find(Error, CodeBadFile, at("instructions"), "instructions: what the agent is to know and do", "the agent has neither instructions nor tasks")
	}
}

// ofMembers are the keys that count in the files of a team's agents, and not in its own.
var ofMembers = []string{"model", "effort", "mode", "tools", "boundary", "capabilities", "rules", "resources", "skills", "gates", "verifier", "confidence", "retry", "fallback", "context", "health"}

// work reads what is said of the agent's work as a whole.
func (a *Agent) work(f belayFile, at func(...any) string) {
	a.OnFailure = a.oneOf("on_failure", f.OnFailure, at("on_failure"), "fail", GoOn)
	a.again(f, at)
	if f.Estimate != "" {
		var err error
		if a.Estimate, err = span(string(f.Estimate)); err != nil {
			a.find(Error, CodeBadLimit, at("estimate"), "such as 20m", "%v", err)
		}
	}
	if f.CompleteAt != "" {
		var err error
		if a.CompleteAt, err = strconv.ParseFloat(string(f.CompleteAt), 64); err != nil || !(a.CompleteAt > 0 && a.CompleteAt <= 1) {
			a.CompleteAt = 0
			a.find(Error, CodeBadLimit, at("complete_at"), "such as 0.8", "%q is no share above 0 and at most 1", short(string(f.CompleteAt), 40))
		}
	}
}

func (a *Agent) spend(b budget, at func(...any) string) {
	switch t := b.Tokens; {
	case t.Min < 0 || t.Optimal < 0:
		a.find(Error, CodeBadLimit, at("budget", "tokens"), "such as tokens: {min: 20000, optimal: 200000}", "a number of tokens is below zero")
	case t.Optimal > 0 && t.Min > t.Optimal:
		a.find(Error, CodeBadLimit, at("budget", "tokens", "min"), "exchange them", "min is greater than optimal")
	default:
		a.Tokens, a.Limits.Tokens = t, t.Optimal
	}
	if b.Money != "" {
		var err error
		if a.Limits.MicroUSD, err = money(string(b.Money)); err != nil {
			a.find(Error, CodeBadLimit, at("budget", "money"), "such as 1.50usd", "%v", err)
		}
	}
}

// rules keeps the rules as a file of rules has them.
func (a *Agent) rules(n ast.Node, where string) {
	if n == nil {
		return
	}
	v, err := strictyaml.Value(n)
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(v)
	}
	if err != nil {
		a.find(Error, CodeBadRules, where, "docs/policy.md describes rules", "the rules can't be read: %v", err)
		return
	}
	a.Rules = json.RawMessage(`{"version": 1, "rules": ` + string(raw) + `}`)
}

// schema is a JSON Schema that stands in the file.
func (a *Agent) schema(of string, n ast.Node, where string) json.RawMessage {
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
		_, err = tool.ReadSchema(raw)
	}
	if err != nil {
		a.find(Error, CodeBadFile, where, "a JSON Schema, such as type: object", "the schema of the %s can't be used: %v", of, err)
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
			a.find(Note, CodeCapability, where, "docs/policy.md lists the words", "%s is no capability that Belay knows: it is taken for a tool's name", short(w, 80))
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

package rulefile

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// words is a list that may be written as one word.
type words []string

func (w *words) UnmarshalYAML(read func(any) error) error {
	var one string
	if read(&one) == nil {
		*w = words{one}
		return nil
	}
	var list []string
	if err := read(&list); err != nil {
		return err
	}
	*w = list
	return nil
}

// form is the YAML of a file.
type form struct {
	Version      int              `yaml:"version"`
	Include      words            `yaml:"include"`
	Groups       map[string]words `yaml:"groups"`
	Caps         map[string]int   `yaml:"caps"`
	OwnerOnly    words            `yaml:"owner_only"`
	Trusted      words            `yaml:"trusted"`
	Capabilities words            `yaml:"capabilities"`
	Rules        []ruleForm       `yaml:"rules"`
	Checkers     []checkerForm    `yaml:"checkers"`

	Boundaries map[string]boundaryForm `yaml:"boundaries"`
}

// matchForm is the YAML of what a rule asks for.
type matchForm struct {
	Tool       words        `yaml:"tool"`
	NotTool    words        `yaml:"not_tool"`
	Does       words        `yaml:"does"`
	Mode       words        `yaml:"mode"`
	Agent      words        `yaml:"agent"`
	Capability words        `yaml:"capability"`
	Effect     words        `yaml:"effect"`
	Args       []argForm    `yaml:"args"`
	Command    *commandForm `yaml:"command"`
	Path       *pathForm    `yaml:"path"`
	Host       words        `yaml:"host"`
	Taint      words        `yaml:"taint"`
	Flow       words        `yaml:"flow"`
	Level      string       `yaml:"level"`
	Rerun      bool         `yaml:"rerun"`
	If         string       `yaml:"if"`
}

type argForm struct {
	Path     string   `yaml:"path"`
	Equals   any      `yaml:"equals"`
	Contains string   `yaml:"contains"`
	Matches  string   `yaml:"matches"`
	Less     *float64 `yaml:"less"`
	Greater  *float64 `yaml:"greater"`
	Exists   *bool    `yaml:"exists"`
}

type commandForm struct {
	Program    words  `yaml:"program"`
	NotProgram words  `yaml:"not_program"`
	Subcommand words  `yaml:"subcommand"`
	Class      words  `yaml:"class"`
	Prefix     words  `yaml:"prefix"`
	Matches    string `yaml:"matches"`
}

type pathForm struct {
	Match  words  `yaml:"match"`
	Where  string `yaml:"where"`
	Access string `yaml:"access"`
}

type ruleForm struct {
	ID        string     `yaml:"id"`
	Priority  int        `yaml:"priority"`
	When      *matchForm `yaml:"when"`
	Verdict   string     `yaml:"verdict"`
	Reason    string     `yaml:"reason"`
	Code      string     `yaml:"code"`
	Hint      string     `yaml:"hint"`
	Tags      words      `yaml:"tags"`
	Boundary  string     `yaml:"boundary"`
	Degrade   string     `yaml:"degrade"`
	Examples  examples   `yaml:"examples"`
	NoExample examples   `yaml:"not_examples"`
}

type checkerForm struct {
	ID      string   `yaml:"id"`
	Builtin string   `yaml:"builtin"`
	Argv    []string `yaml:"argv"`
	URL     string   `yaml:"url"`

	Provider     string `yaml:"provider"`
	Model        string `yaml:"model"`
	Instructions string `yaml:"instructions"`

	Timeout string     `yaml:"timeout"`
	OnError string     `yaml:"on_error"`
	When    *matchForm `yaml:"when"`
}

// examples are calls; one that is a text is a command line.
type examples []exampleForm

type exampleForm struct {
	Tool       string `yaml:"tool"`
	Command    string `yaml:"command"`
	Path       string `yaml:"path"`
	Access     string `yaml:"access"`
	Host       string `yaml:"host"`
	Args       any    `yaml:"args"`
	Mode       string `yaml:"mode"`
	Agent      string `yaml:"agent"`
	Capability words  `yaml:"capability"`
	Taint      words  `yaml:"taint"`
}

func (e *exampleForm) UnmarshalYAML(read func(any) error) error {
	var line string
	if read(&line) == nil {
		e.Command = line
		return nil
	}
	type plain exampleForm
	return read((*plain)(e))
}

func (m *matchForm) match() (out policy.Match) {
	if m == nil {
		return out
	}
	out = policy.Match{Tool: m.Tool, NotTool: m.NotTool, Does: m.Does, Agent: m.Agent, Capability: m.Capability, Effect: m.Effect, Host: m.Host, Taint: m.Taint, Flow: m.Flow, Level: m.Level, Rerun: m.Rerun, If: m.If}
	for _, mode := range m.Mode {
		out.Mode = append(out.Mode, belay.Mode(mode))
	}
	for _, a := range m.Args {
		out.Args = append(out.Args, policy.ArgMatch(a))
	}
	if c := m.Command; c != nil {
		out.Command = &policy.CommandMatch{Program: c.Program, NotProgram: c.NotProgram, Subcommand: c.Subcommand, Class: c.Class, Prefix: c.Prefix, Matches: c.Matches}
	}
	if p := m.Path; p != nil {
		out.Path = &policy.PathMatch{Match: p.Match, Where: p.Where, Access: p.Access}
	}
	return out
}

func (r *ruleForm) rule(tier policy.Tier, where string) (policy.Rule, error) {
	out := policy.Rule{ID: r.ID, Tier: tier, Priority: r.Priority, Match: r.When.match(), Verdict: policy.Decision(r.Verdict), Reason: r.Reason,
		Code: r.Code, Hint: r.Hint, Tags: r.Tags, Boundary: r.Boundary, Degrade: policy.Decision(r.Degrade), Where: where}
	var err error
	if out.Examples.Match, err = r.Examples.list(); err != nil {
		return out, err
	}
	out.Examples.NoMatch, err = r.NoExample.list()
	return out, err
}

func (e examples) list() ([]policy.Example, error) {
	var out []policy.Example
	for _, x := range e {
		p := policy.Example{Tool: x.Tool, Command: x.Command, Path: x.Path, Access: x.Access, Host: x.Host, Mode: belay.Mode(x.Mode), Agent: x.Agent, Capability: x.Capability, Taint: x.Taint}
		if x.Args != nil {
			var b bytes.Buffer
			if err := json.NewEncoder(&b).Encode(x.Args); err != nil {
				return nil, err
			}
			p.Args = bytes.TrimSpace(b.Bytes())
		}
		out = append(out, p)
	}
	return out, nil
}

func (c *checkerForm) checker(tier policy.Tier) (policy.Checker, error) {
	out := policy.Checker{ID: c.ID, Tier: tier, Name: c.Builtin, Argv: c.Argv, URL: c.URL, Provider: c.Provider, Model: c.Model, Instructions: c.Instructions, OnError: policy.Decision(c.OnError), When: c.When.match()}
	switch {
	case c.Builtin != "":
		out.Kind = "builtin"
	case len(c.Argv) > 0:
		out.Kind = "process"
	case c.Provider+c.Model+c.Instructions != "":
		out.Kind = "model"
	default:
		out.Kind = "http"
	}
	if c.Timeout != "" {
		d, err := time.ParseDuration(c.Timeout)
		if err != nil {
			return out, err
		}
		out.Timeout = belay.Duration(d)
	}
	return out, nil
}

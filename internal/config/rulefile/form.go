package rulefile

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// words is a list that may be written as one word.
type words = policy.OneOrMore[string]

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

// ruleForm is a rule whose examples stand beside what it asks for.
type ruleForm struct {
	policy.Rule `yaml:",inline"`
	Examples    examples `yaml:"examples"`
	NoExample   examples `yaml:"not_examples"`
}

type checkerForm struct {
	ID      string   `yaml:"id"`
	Builtin string   `yaml:"builtin"`
	Argv    []string `yaml:"argv"`
	URL     string   `yaml:"url"`

	Provider     string `yaml:"provider"`
	Model        string `yaml:"model"`
	Instructions string `yaml:"instructions"`

	Timeout string       `yaml:"timeout"`
	OnError string       `yaml:"on_error"`
	When    policy.Match `yaml:"when"`
}

// examples are calls; one that is a text is a command line.
type examples []exampleForm

// exampleForm is an example whose arguments are YAML.
type exampleForm struct {
	policy.Example `yaml:",inline"`
	Args           any `yaml:"args"`
}

func (e *exampleForm) UnmarshalYAML(read func(any) error) error {
	if read(&e.Command) == nil {
		return nil
	}
	type plain exampleForm
	return read((*plain)(e))
}

func (r *ruleForm) rule(tier policy.Tier, where string) (policy.Rule, error) {
	out := r.Rule
	out.Tier, out.Where = tier, where
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
		if x.Args != nil {
			var b bytes.Buffer
			if err := json.NewEncoder(&b).Encode(x.Args); err != nil {
				return nil, err
			}
			x.Example.Args = bytes.TrimSpace(b.Bytes())
		}
		out = append(out, x.Example)
	}
	return out, nil
}

func (c *checkerForm) checker(tier policy.Tier) (policy.Checker, error) {
	out := policy.Checker{ID: c.ID, Tier: tier, Name: c.Builtin, Argv: c.Argv, URL: c.URL, Provider: c.Provider, Model: c.Model, Instructions: c.Instructions, OnError: policy.Decision(c.OnError), When: c.When}
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

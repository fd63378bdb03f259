package agentfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// gate is a check that an agent's work must pass: one of these.
type gate struct {
	ID        string  `yaml:"id"`
	Command   words   `yaml:"command"` // a program and its arguments
	Dir       string  `yaml:"dir"`
	Timeout   int     `yaml:"timeout"` // seconds
	Files     words   `yaml:"files"`
	Unchanged words   `yaml:"unchanged"`
	Schema    any     `yaml:"schema"` // of the output, or of a JSON file
	Path      string  `yaml:"path"`
	Agent     string  `yaml:"agent"`  // that judges the work
	Prompt    string  `yaml:"prompt"` // what it is to look for
	Min       float64 `yaml:"min"`
	Person    string  `yaml:"person"`
}

// UnmarshalYAML reads a gate; one text is a command with its arguments between blanks.
func (g *gate) UnmarshalYAML(read func(any) error) error {
	var line string
	if read(&line) == nil {
		g.Command = strings.Fields(line)
		return nil
	}
	type plain gate
	return read((*plain)(g))
}

func (g gate) check() belay.Check {
	k := belay.Check{ID: g.ID, Argv: g.Command, Dir: g.Dir, Timeout: g.Timeout, Path: g.Path, Min: g.Min, Prompt: g.Person}
	if len(g.Command) == 1 {
		k.Argv = strings.Fields(g.Command[0])
	}
	switch {
	case len(g.Command) > 0:
		k.Kind = belay.CheckCommand
	case len(g.Unchanged) > 0:
		k.Kind, k.Paths, k.Unchanged = belay.CheckFiles, g.Unchanged, true
	case len(g.Files) > 0:
		k.Kind, k.Paths = belay.CheckFiles, g.Files
	case g.Schema != nil:
		k.Kind = belay.CheckSchema
	case g.Agent != "":
		k.Kind, k.Prompt, k.Agent = belay.CheckAgent, g.Prompt, g.Agent
	case g.Person != "":
		k.Kind = belay.CheckPerson
	}
	return k
}

// verifier is the agent that judges the work.
type verifier struct {
	Agent  string `yaml:"agent"`  // its name; empty: the built-in one
	Prompt string `yaml:"prompt"` // what it is to look for
}

// UnmarshalYAML reads it; one text is the name.
func (v *verifier) UnmarshalYAML(read func(any) error) error {
	if read(&v.Agent) == nil {
		return nil
	}
	type plain verifier
	return read((*plain)(v))
}

// confidence is how sure somebody has to be that the work is done.
type confidence struct {
	From  string `yaml:"from"` // verifier, field
	Field string `yaml:"field"`
	Min   scalar `yaml:"min"`
}

// judge notes an agent that judges the work, unless it is the built-in one.
func (a *Agent) judge(name, as, where string) {
	if name != "" && name != builtInJudge {
		a.names = append(a.names, named{as, name, where})
	}
}

// builtInJudge is the name of the agent that judges where none is named.
const builtInJudge = "judge"

// gates reads the checks that the agent's work must pass. The verifier and the confidence
// are two of them.
func (a *Agent) gates(f *belayFile, root ast.Node, at func(...any) string) {
	var all []belay.Check
	for i, g := range f.Gates {
		k := g.check()
		if k.Kind == belay.CheckSchema {
			if k.Schema = a.schema("gate", strictyaml.At(root, "gates", i, "schema"), at("gates", i, "schema")); k.Schema == nil {
				return
			}
		}
		if k.ID == "" {
			k.ID = fmt.Sprintf("gate-%d", i+1)
		}
		a.judge(k.Agent, "the agent of gate "+short(k.ID, 64), at("gates", i, "agent"))
		all = append(all, k)
	}
	judge := f.Verifier
	least := 0.0
	if c := f.Confidence; c != nil {
		var err error
		if least, err = strconv.ParseFloat(string(c.Min), 64); err != nil || !(least > 0 && least <= 1) {
			a.find(Error, CodeBadLimit, at("confidence"), "confidence: {from: verifier, min: 0.8}", "%q is no confidence above 0 and at most 1", short(string(c.Min), 40))
			return
		}
		switch a.oneOf("confidence", c.From, at("confidence", "from"), "verifier", "field") {
		case "field":
			all = append(all, belay.Check{ID: "confidence", Kind: belay.CheckConfidence, Field: c.Field, Min: least})
			least = 0
		default:
			if judge == nil {
				judge = &verifier{}
			}
		}
	}
	if judge != nil {
		a.judge(judge.Agent, "the verifier", at("verifier"))
		all = append(all, belay.Check{ID: "verifier", Kind: belay.CheckAgent, Agent: judge.Agent, Prompt: judge.Prompt, Min: least})
	}
	if len(all) == 0 {
		return
	}
	checked, err := belay.CheckedAcceptance(all)
	if err != nil {
		a.find(Error, CodeBadFile, at("gates"), "- command: [go, test, ./...], or files, unchanged, schema, agent, person", "a gate can't be used: %v", err)
		return
	}
	a.Gates = checked
}

package app

import (
	"slices"
	"strconv"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// CheckInput is a check of a task, as callers write it.
type CheckInput struct {
	ID        string       `json:"id,omitempty" jsonschema:"KIND-NUMBER when it is left out"`
	Kind      string       `json:"kind" jsonschema:"command, schema, files, person, agent, confidence"`
	Argv      []string     `json:"argv,omitempty" jsonschema:"of a command: the program and its arguments, without a shell; it passes with exit code 0"`
	Dir       string       `json:"dir,omitempty" jsonschema:"of a command: where it runs, relative to the workspace"`
	Timeout   int          `json:"timeout,omitempty" jsonschema:"of a command: seconds; 120 when it is left out"`
	Schema    input.Object `json:"schema,omitempty" jsonschema:"of a schema: the JSON Schema that the output fits"`
	Path      string       `json:"path,omitempty" jsonschema:"of a schema: the JSON file of the workspace that fits it, in place of the output"`
	Paths     []string     `json:"paths,omitempty" jsonschema:"of files: files and folders that must exist"`
	Unchanged bool         `json:"unchanged,omitempty" jsonschema:"of files: they must be as they were when the first attempt began"`
	Prompt    string       `json:"prompt,omitempty" jsonschema:"of a person: the question; of an agent: what to look for"`
	Agent     string       `json:"agent,omitempty" jsonschema:"of an agent: which one judges the result and the changes; a built-in one when it is left out"`
	Min       float64      `json:"min,omitempty" jsonschema:"of an agent: the score that is needed; of a confidence: the number; from 0 to 1"`
	Field     string       `json:"field,omitempty" jsonschema:"of a confidence: the number in the output by which the worker says how sure it is; confidence when it is left out"`
}

// Acceptance are the checks of a task, complete. clean takes secrets out of a text.
func Acceptance(checks []CheckInput, clean func(string) string) ([]belay.Check, error) {
	var out []belay.Check
	for i, c := range checks {
		k := belay.Check{ID: c.ID, Kind: belay.CheckKind(c.Kind), Argv: slices.Clone(c.Argv), Dir: c.Dir, Timeout: c.Timeout, Path: c.Path, Paths: c.Paths, Unchanged: c.Unchanged, Prompt: clean(c.Prompt), Agent: clean(c.Agent), Min: c.Min, Field: c.Field}
		for j := range k.Argv {
			k.Argv[j] = clean(k.Argv[j])
		}
		if c.Schema != nil {
			k.Schema = c.Schema.JSON()
			if _, err := tool.ReadSchema(k.Schema); err != nil {
				return nil, input.At("acceptance["+strconv.Itoa(i)+"].schema", belay.Errorf(belay.CodeBadCommand, "the schema can't be used: %s", err))
			}
		}
		out = append(out, k)
	}
	return belay.CheckedAcceptance(out)
}

// Verifiable refuses checks that turns under some rules could never pass.
func Verifiable(rules *thread.Rules, checks []belay.Check) error {
	if len(checks) == 0 {
		return nil
	}
	if _, has := rules.Tool(tool.CompleteName); !has || rules.Settings.Completion == belay.CompletionConversational {
		return belay.Errorf(belay.CodeBadCommand, "a conversation has no end at which checks could run").At("acceptance").WithHint("completion required, as belay run has it")
	}
	judged := slices.ContainsFunc(checks, func(c belay.Check) bool { return c.Kind == belay.CheckAgent })
	if judged && rules.Settings.Provider == config.Direct && rules.Asked == nil {
		return belay.Errorf(belay.CodeBadCommand, "an agent has to judge the work, and the session has no model for it").At("acceptance").WithHint("belay config set provider NAME, or waive this check: belay tasks complete TASK --waive CHECK --why TEXT")
	}
	runs := slices.ContainsFunc(checks, func(c belay.Check) bool { return c.Kind == belay.CheckCommand })
	if _, has := rules.Tool(tool.ExecName); runs && !has {
		return belay.Errorf(belay.CodeBadCommand, "checks run their commands with the tool %s, which the agent hasn't got", tool.ExecName).At("acceptance").WithHint("give it %s, or leave these checks out", tool.ExecName)
	}
	return nil
}

package command

import (
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/lib/files"
)

// CheckFlags say what must hold before a task counts as done.
type CheckFlags struct {
	Check          []string `placeholder:"'PROGRAM ARG…'" sep:"none" help:"It is done only if this program ends with exit code 0; it is no shell. May be repeated."`
	CheckFiles     []string `placeholder:"PATH" sep:"none" help:"It is done only if this file or folder exists. May be repeated."`
	CheckUnchanged []string `placeholder:"PATH" sep:"none" help:"It is done only if this file or folder is as it was. May be repeated."`
	CheckSchema    string   `placeholder:"FILE" help:"It is done only if its output fits the JSON Schema in this file."`
	CheckAgent     []string `placeholder:"TEXT" sep:"none" help:"It is done only if another agent, which sees the objective, the result and the changes, finds this. May be repeated."`
	CheckAgentBy   string   `placeholder:"NAME" help:"Which agent judges; one that Belay has when it is left out."`
	CheckAgentMin  float64  `placeholder:"SCORE" help:"The score from 0 to 1 that it must give at least."`
	CheckPerson    []string `placeholder:"TEXT" sep:"none" help:"It is done only if a person says yes to this question. May be repeated."`
}

// Checks are those that the flags name.
func (c *CheckFlags) Checks(a *Program) ([]belay.Check, error) {
	in, err := c.Input(a)
	if err != nil {
		return nil, err
	}
	return app.Acceptance(in, a.Secrets().String)
}

// Input are the checks as commands take them.
func (c *CheckFlags) Input(a *Program) (in []app.CheckInput, err error) {
	for _, line := range c.Check {
		argv, err := argvOf(line)
		if err != nil {
			return nil, err
		}
		in = append(in, app.CheckInput{Kind: string(belay.CheckCommand), Argv: argv})
	}
	if len(c.CheckFiles) > 0 {
		in = append(in, app.CheckInput{Kind: string(belay.CheckFiles), Paths: c.CheckFiles})
	}
	if len(c.CheckUnchanged) > 0 {
		in = append(in, app.CheckInput{Kind: string(belay.CheckFiles), Paths: c.CheckUnchanged, Unchanged: true})
	}
	if c.CheckSchema != "" {
		schema, err := readSchema(a.Environment().Abs(c.CheckSchema))
		if err != nil {
			return nil, err
		}
		in = append(in, app.CheckInput{Kind: string(belay.CheckSchema), Schema: schema})
	}
	if len(c.CheckAgent) == 0 && (c.CheckAgentBy != "" || c.CheckAgentMin != 0) {
		c.CheckAgent = []string{""}
	}
	for _, q := range c.CheckAgent {
		in = append(in, app.CheckInput{Kind: string(belay.CheckAgent), Prompt: q, Agent: c.CheckAgentBy, Min: c.CheckAgentMin})
	}
	for _, q := range c.CheckPerson {
		in = append(in, app.CheckInput{Kind: string(belay.CheckPerson), Prompt: q})
	}
	return in, nil
}

func readSchema(name string) (schema input.Object, err error) {
	raw, err := files.ReadGiven(name, belay.MaxCheckBytes)
	if err == nil {
		err = json.Unmarshal(raw, &schema)
	}
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the schema can't be read: %s", files.Reason(err)).At("--check-schema " + name)
	}
	return schema, nil
}

// argvOf are the words of a command line without anything that only a shell would do.
// Quotes keep words together.
func argvOf(line string) (argv []string, err error) {
	var word strings.Builder
	open, quote, escaped := false, rune(0), false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			open, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			open, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if open {
				argv = append(argv, word.String())
			}
			word.Reset()
			open = false
		case strings.ContainsRune("|&;<>`$()", r):
			return nil, belay.Errorf(belay.CodeUsage, "a check is one program and its arguments; %q is for a shell", r).At("--check " + line).WithHint(`quote it, or name the shell: --check "sh -c '…'"`)
		default:
			open = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, belay.Errorf(belay.CodeUsage, "a quote isn't closed").At("--check " + line)
	}
	if open {
		argv = append(argv, word.String())
	}
	if len(argv) == 0 {
		return nil, belay.Errorf(belay.CodeUsage, "the check names no program").At("--check").WithHint("--check 'go test ./...'")
	}
	return argv, nil
}

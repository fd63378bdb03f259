package permission

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/tool/exec"
)

// PolicyCmd is the command "belay policy".
type PolicyCmd struct {
	Explain  policyExplainCmd  `cmd:"" use:"evaluate_permission" help:"Say why a call is allowed, asked about or denied, and what would change that."`
	Test     policyTestCmd     `cmd:"" help:"Try the examples of rules."`
	Lint     policyLintCmd     `cmd:"" help:"Find rules that can never decide, or that contradict each other."`
	Replay   policyReplayCmd   `cmd:"" use:"replay_policy" help:"Judge recorded calls by other rules, and list every verdict that changes."`
	Suggest  policySuggestCmd  `cmd:"" use:"suggest_rules" help:"Suggest rules for what is asked about most, with what they would have allowed."`
	Import   policyImportCmd   `cmd:"" help:"Convert the rules of another agent into a rule file, and list the result for each."`
	Classify policyClassifyCmd `cmd:"" help:"Say what a shell command may do, without running it."`
}

type policyClassifyCmd struct {
	Command string `arg:"" optional:"" help:"The command, as a shell gets it; without it JSON lines {\"id\",\"cmd\"} are read from stdin."`
	Cwd     string `placeholder:"DIR" help:"Where the command would run; the workspace."`
	Home    string `placeholder:"DIR" help:"The value of HOME that it would see. [$$HOME]"`
	Shell   string `enum:"bash,sh," default:"" placeholder:"NAME" help:"The shell that would run it: bash or sh. By default the one that a new session has here."`
}

// classified is one answer of policy classify.
type classified struct {
	ID json.RawMessage `json:"id,omitempty"` // as it came
	policies.CommandReport
}

// toClassify is one line of what policy classify reads.
type toClassify struct {
	ID  json.RawMessage `json:"id"`
	Cmd *string         `json:"cmd"`
}

// maxClassifyLine bounds one line on stdin. A command that is too long to run
// is still answered; a line beyond this isn't JSON of one command.
const maxClassifyLine = 16 << 20

func (c *policyClassifyCmd) Run(_ context.Context, a *command.Program) (int, error) {
	o, err := c.options(a)
	if err != nil {
		return 0, err
	}
	if c.Command != "" {
		a.PrintJSON(classified{CommandReport: policies.Classify(c.Command, o)})
		return belay.ExitOK, nil
	}
	if a.In == nil || a.IsTerminal(a.In) {
		return 0, belay.Errorf(belay.CodeUsage, "no command is named, and stdin has none").WithHint("belay policy classify 'ls | wc -l'")
	}
	return belay.ExitOK, c.lines(a, o)
}

// options are the places that a command is judged by. They are text: none of
// them needs to exist here, so commands of another machine can be judged.
func (c *policyClassifyCmd) options(a *command.Program) (policies.CommandOptions, error) {
	o := policies.CommandOptions{Workspace: a.Workspace, Dir: c.Cwd, Home: cmp.Or(c.Home, a.Getenv("HOME")), Dialect: policies.Dialect(cmp.Or(c.Shell, exec.OfSession().Dialect))}
	if o.Workspace == "" {
		ws, err := a.WorkspaceDir()
		if err != nil {
			return o, err
		}
		o.Workspace = ws
	}
	o.Workspace = filepath.ToSlash(a.Environment().Abs(o.Workspace))
	if o.Dir = cmp.Or(o.Dir, o.Workspace); !filepath.IsAbs(o.Dir) {
		o.Dir = a.Environment().Abs(o.Dir)
	}
	return o, nil
}

// lines answers each line of stdin. The first that can't be read ends it: what
// follows may be out of step.
func (c *policyClassifyCmd) lines(a *command.Program, o policies.CommandOptions) error {
	in := bufio.NewScanner(a.In)
	in.Buffer(make([]byte, 0, 64<<10), maxClassifyLine)
	n := 0
	for in.Scan() {
		if n++; len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var t toClassify
		d := json.NewDecoder(bytes.NewReader(in.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&t); err != nil {
			return badLine(n, "%v", err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return badLine(n, "there is more than one value")
		}
		if t.Cmd == nil {
			return badLine(n, `it has no "cmd"`)
		}
		a.PrintJSON(classified{t.ID, policies.Classify(*t.Cmd, o)})
	}
	if err := in.Err(); err != nil {
		return badLine(n+1, "%v", err)
	}
	return nil
}

func badLine(n int, format string, args ...any) error {
	return belay.Errorf(belay.CodeUsage, format, args...).At(fmt.Sprintf("stdin, line %d", n)).
		WithHint(`each line is {"id": …, "cmd": "a command"}`)
}

//go:build unix

// Package exec holds the tool that runs programs. It promises: what a call
// starts ends with the call; the environment is a short list and what the call
// declares, without secrets and without what makes programs load other code;
// output of any size is kept whole and shown in part; and a program's failure
// is a result, because the model must read it. It does not confine what it
// runs: the engine applies a boundary and says which.
package exec

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

// Codes of problems, besides those of files for dir.
const (
	CodeOneOf          = "COMMAND_OR_ARGV"
	CodeEnvRefused     = "ENV_REFUSED"
	CodeNoProgram      = "NO_SUCH_PROGRAM"
	CodeNotRunnable    = "NOT_RUNNABLE"
	CodeNotStarted     = "NOT_STARTED"
	CodeTimeout        = "TIMEOUT"
	CodeCancelled      = "CANCELLED"
	CodeOutputNotSaved = "OUTPUT_NOT_SAVED"
	CodeIdle           = "IDLE"
	CodeTooMuch        = "TOO_MUCH_OUTPUT"
	CodeTooMany        = "TOO_MANY_PROCESSES"
	CodeNoProcess      = "NO_SUCH_PROCESS"
	CodeEnded          = "PROCESS_ENDED"
	CodeNoInput        = "NO_INPUT"
	CodeNoTerminal     = "NO_TERMINAL"
	CodeExpired        = "OUTPUT_EXPIRED"
)

const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	head, tail     = 8 << 10, 8 << 10 // of the output that is shown

	backTimeout    = time.Hour // of what may go on in the background
	maxBackTimeout = 24 * time.Hour
	maxYield       = time.Minute
	atOnce         = 300 * time.Millisecond // what fails this fast is reported with the start
	maxLeft        = 16                     // processes of a thread in the background
)

//go:embed exec.md
var execDoc string

// Config is how programs are run. The zero value works.
type Config struct {
	Environ []string      // where the allowed variables come from; nil is the process's own
	Grace   time.Duration // from TERM to KILL; 0 is the default of package process
}

type execArgs struct {
	Command string            `json:"command,omitempty" jsonschema:"for the shell"`
	Argv    []string          `json:"argv,omitempty" jsonschema:"no shell"`
	Dir     string            `json:"dir,omitempty" jsonschema:"folder"`
	Timeout float64           `json:"timeout_seconds,omitempty" jsonschema:"default 120; background 3600"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"added"`
	Back    *float64          `json:"background_after,omitempty" jsonschema:"seconds, then in the background"`
	Idle    float64           `json:"idle_seconds,omitempty" jsonschema:"end if silent so long"`
	TTY     bool              `json:"tty,omitempty" jsonschema:"a terminal"`

	// The gate reads these: a wider boundary needs a person's approval.
	Boundary string `json:"boundary,omitempty" jsonschema:"full asks"`
	Reason   string `json:"reason,omitempty" jsonschema:"why"`
}

// Tools lists the tools of this package.
func Tools(cfg Config) []tool.Tool { return []tool.Tool{Exec(cfg), Processes(), Sender()} }

// Exec runs programs.
func Exec(cfg Config) tool.Tool {
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.Grace <= 0 {
		cfg.Grace = process.DefaultGrace
	}
	spec := tool.Spec{
		Name: tool.ExecName, Doc: strings.TrimSpace(execDoc), Effect: belay.AtMostOnce, Destructive: true, Access: belay.Write,
		Capabilities: []string{tool.CapProcess}, Command: &belay.CommandArgs{Line: "command", Argv: "argv", Dir: "dir", Env: "env", Boundary: "boundary", Reason: "reason"},
		// The call's own limit comes first; this one leaves room to end the program.
		Timeout:     belay.Duration(maxTimeout + cfg.Grace + 30*time.Second),
		OutputLimit: head + tail + 1<<10,
	}
	return exec{cfg: cfg, Tool: tool.New(spec, func(ctx context.Context, c tool.Call, in execArgs) (tool.Result, error) {
		p, err := prepare(cfg, c, in)
		if err != nil {
			return tool.Result{}, err
		}
		p.Env = append(p.Env, c.Quiet...)
		r, _, err := p.Run(ctx, c)
		return r, err
	})}
}

// exec says beforehand what it would start.
type exec struct {
	tool.Tool
	cfg Config
}

var _ tool.ProgramLister = exec{}

// Starts is tool.Starter's.
func (e exec) Starts(_ context.Context, c tool.Call, names []string) (tool.Start, error) {
	var in execArgs
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tool.Start{}, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "the arguments of exec are not JSON: %v", err)
	}
	p, err := prepare(e.cfg, c, in)
	if err != nil {
		return tool.Start{}, err
	}
	return p.Starts(names), nil
}

// prepare checks the arguments and says what to run, and for how long at most.
func prepare(cfg Config, c tool.Call, in execArgs) (p Program, err error) {
	if (in.Command == "") == (len(in.Argv) == 0) {
		return p, tool.Failf(tool.BadArguments, CodeOneOf, "give either command or argv")
	}
	p = Program{Grace: cfg.Grace, Argv: in.Argv}
	if err := p.timed(in); err != nil {
		return p, err
	}
	if p.Yield > 0 && c.Processes != nil && len(c.Processes.Left()) >= maxLeft {
		return p, tool.Failf(tool.Conflict, CodeTooMany, "%d processes run in the background already", maxLeft).WithHint("end one with process_send first")
	}
	if p.Dir, err = Folder(c, in.Dir); err != nil {
		return p, err
	}
	if p.Env, err = environment(cfg.Environ, in.Env, p.Dir); err != nil {
		return p, err
	}
	if in.TTY {
		p.PTY = &process.Size{Rows: 24, Cols: 80}
		p.Env = terminal(p.Env)
	}
	if in.Command != "" {
		p.Argv = commandLine(c.Shell, in.Command)
	}
	return p, nil
}

// timed sets how long a program may run, and how long the call waits for it.
func (p *Program) timed(in execArgs) error {
	most, usual := maxTimeout, defaultTimeout
	var yield float64
	if in.Back != nil {
		most, usual = maxBackTimeout, backTimeout
		if yield = *in.Back; yield == 0 {
			yield = atOnce.Seconds()
		}
	}
	p.Hint = fmt.Sprintf("give a larger timeout_seconds (at most %d), or run less at once", int(most.Seconds()))
	for _, t := range []struct {
		name        string
		given       float64
		most, usual time.Duration
		set         *time.Duration
	}{
		{"timeout_seconds", in.Timeout, most, usual, &p.Limit},
		{"background_after", yield, maxYield, 0, &p.Yield},
		{"idle_seconds", in.Idle, most, 0, &p.Idle},
	} {
		*t.set = t.usual
		if t.given == 0 {
			continue
		}
		*t.set = time.Duration(t.given * float64(time.Second))
		if t.given < 0 || t.given > t.most.Seconds() || *t.set <= 0 {
			return tool.Failf(tool.BadArguments, tool.CodeBadArguments, "%s must be more than 0 and at most %d", t.name, int(t.most.Seconds()))
		}
	}
	return nil
}

// terminal is an environment that says what kind of terminal there is.
func terminal(env []string) []string {
	if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") && kv != "TERM=" }) {
		return env
	}
	return append(env, "TERM=xterm")
}

//go:build unix

// Package shell holds the tool that runs programs. It promises: what a call
// starts ends with the call; the environment is a short list and what the call
// declares, without secrets and without what makes programs load other code;
// output of any size is kept whole and shown in part; and a program's failure
// is a result, because the model must read it. It does not confine what it
// runs: the engine applies a boundary and says which.
package shell

import (
	"context"
	_ "embed"
	"fmt"
	"os"
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
)

const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	head, tail     = 8 << 10, 8 << 10 // of the output that is shown
)

//go:embed exec.md
var execDoc string

// Config says how programs are run. The zero value works.
type Config struct {
	Environ []string      // where the allowed variables come from; nil is the process's own
	Grace   time.Duration // from TERM to KILL; 0 is the default of package process
}

type execArgs struct {
	Command string            `json:"command,omitempty" jsonschema:"command line for /bin/sh -c"`
	Argv    []string          `json:"argv,omitempty" jsonschema:"program and arguments"`
	Dir     string            `json:"dir,omitempty" jsonschema:"folder, relative to the workspace"`
	Timeout float64           `json:"timeout_seconds,omitempty" jsonschema:"default 120, at most 600"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"variables to add"`
}

// Tools lists the tools of this package.
func Tools(cfg Config) []tool.Tool { return []tool.Tool{Exec(cfg)} }

// Exec runs programs.
func Exec(cfg Config) tool.Tool {
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.Grace <= 0 {
		cfg.Grace = process.DefaultGrace
	}
	spec := tool.Spec{
		Name: "exec", Doc: strings.TrimSpace(execDoc), Effect: belay.AtMostOnce, Destructive: true, Access: belay.Write,
		Capabilities: []string{tool.CapProcess}, Command: &belay.CommandArgs{Line: "command", Argv: "argv", Dir: "dir", Env: "env"},
		// The call's own limit comes first; this one leaves room to end the program.
		Timeout:     belay.Duration(maxTimeout + cfg.Grace + 30*time.Second),
		OutputLimit: head + tail + 1<<10,
	}
	return tool.New(spec, func(ctx context.Context, c tool.Call, in execArgs) (tool.Result, error) {
		p, err := prepare(cfg, c, in)
		if err != nil {
			return tool.Result{}, err
		}
		r, _, err := p.Run(ctx, c)
		return r, err
	})
}

// prepare checks the arguments and says what to run, and for how long at most.
func prepare(cfg Config, c tool.Call, in execArgs) (p Program, err error) {
	if (in.Command == "") == (len(in.Argv) == 0) {
		return p, tool.Failf(tool.BadArguments, CodeOneOf, "give either command or argv")
	}
	p = Program{Limit: defaultTimeout, Grace: cfg.Grace, Argv: in.Argv,
		Hint: fmt.Sprintf("give a larger timeout_seconds (at most %d), or run less at once", int(maxTimeout.Seconds()))}
	if in.Timeout != 0 {
		p.Limit = time.Duration(in.Timeout * float64(time.Second))
	}
	if in.Timeout < 0 || in.Timeout > maxTimeout.Seconds() || p.Limit <= 0 {
		return p, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "timeout_seconds must be more than 0 and at most %d", int(maxTimeout.Seconds()))
	}
	if p.Dir, err = Folder(c, in.Dir); err != nil {
		return p, err
	}
	if p.Env, err = environment(cfg.Environ, in.Env, p.Dir); err != nil {
		return p, err
	}
	if in.Command != "" {
		p.Argv = []string{"/bin/sh", "-c", in.Command}
	}
	return p, nil
}

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
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
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
		Capabilities: []string{tool.CapProcess},
		// The call's own limit comes first; this one leaves room to end the program.
		Timeout:     belay.Duration(maxTimeout + cfg.Grace + 30*time.Second),
		OutputLimit: head + tail + 1<<10,
	}
	return tool.New(spec, func(ctx context.Context, c tool.Call, in execArgs) (tool.Result, error) {
		r := &run{cfg: cfg, call: c, in: in}
		return r.exec(ctx)
	})
}

// run is one execution.
type run struct {
	cfg  Config
	call tool.Call
	in   execArgs
}

func (r *run) exec(ctx context.Context) (tool.Result, error) {
	cmd, limit, err := r.prepare()
	if err != nil {
		return tool.Result{}, err
	}
	out := newOutput(r.call.Sink)
	defer out.close()
	cmd.Output = out
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, err := process.Start(cmd)
	if err != nil {
		return tool.Result{}, r.notStarted(cmd, err)
	}
	r.call.Sink.Fact(event.ProcessStarted{PID: p.PID, StartTime: p.Start, Argv: cmd.Argv, Cwd: cmd.Dir})
	end := p.Wait(ctx)
	ref, text, saveErr := out.finish()
	if end.OutputErr != nil {
		saveErr = end.OutputErr
	}
	return r.ended(end, limit, text, ref, saveErr)
}

// prepare checks the arguments and says what to run, and for how long at most.
func (r *run) prepare() (cmd process.Command, limit time.Duration, err error) {
	in := r.in
	if (in.Command == "") == (len(in.Argv) == 0) {
		return cmd, 0, tool.Failf(tool.BadArguments, CodeOneOf, "give either command or argv")
	}
	limit = defaultTimeout
	if in.Timeout != 0 {
		limit = time.Duration(in.Timeout * float64(time.Second))
	}
	if in.Timeout < 0 || in.Timeout > maxTimeout.Seconds() || limit <= 0 {
		return cmd, 0, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "timeout_seconds must be more than 0 and at most %d", int(maxTimeout.Seconds()))
	}
	cmd.Grace = r.cfg.Grace
	if cmd.Dir, err = r.dir(); err != nil {
		return cmd, 0, err
	}
	if cmd.Env, err = environment(r.cfg.Environ, in.Env, cmd.Dir); err != nil {
		return cmd, 0, err
	}
	if in.Command != "" {
		cmd.Path, cmd.Argv = "/bin/sh", []string{"/bin/sh", "-c", in.Command}
		return cmd, limit, nil
	}
	cmd.Argv = in.Argv
	if cmd.Path, err = program(in.Argv[0], cmd.Dir, cmd.Env); err != nil {
		r.failed(err)
	}
	return cmd, limit, err
}

// dir is the folder to run in. A link may lead elsewhere in the workspace, not
// out of it.
func (r *run) dir() (string, error) {
	if r.in.Dir == "" || r.in.Dir == "." {
		return r.call.Dir, nil
	}
	name, err := file.Clean(r.in.Dir)
	if err != nil {
		return "", err
	}
	info, err := r.call.Root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", tool.Failf(tool.NotFound, file.CodeNoSuchFile, "dir: %s does not exist", name)
	case err != nil:
		return "", tool.Failf(tool.Denied, file.CodeOutside, "dir: %s can't be reached inside the workspace", name)
	case !info.IsDir():
		return "", tool.Failf(tool.BadArguments, file.CodeNotDirectory, "dir: %s is not a folder", name)
	}
	return filepath.Join(r.call.Dir, filepath.FromSlash(path.Clean(name))), nil
}

// failed records a process that there will not be.
func (r *run) failed(err error) {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		r.call.Sink.Fact(event.ProcessFailed{Class: e.Class, Reason: e.Message})
	}
}

// notStarted is the failure of the system to start what prepare allowed.
func (r *run) notStarted(cmd process.Command, err error) error {
	e := tool.Failf(tool.Internal, CodeNotStarted, "%s could not be started: %v", cmd.Argv[0], err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e = tool.Failf(tool.NotFound, CodeNoProgram, "%s can't be run: it, its folder or its interpreter does not exist", cmd.Argv[0])
	case errors.Is(err, fs.ErrPermission):
		e = tool.Failf(tool.Denied, CodeNotRunnable, "no permission to run %s", cmd.Argv[0])
	}
	r.failed(e)
	return e
}

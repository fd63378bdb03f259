//go:build unix

package shell

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"time"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// Program is a program to run for a call. What it does is recorded like
// everything that exec runs: process.started and how it ended.
type Program struct {
	Argv   []string // the program as a path or a name on its PATH, and its arguments
	Dir    string   // absolute
	Env    []string // the whole environment
	Stdin  []byte   // empty is nothing to read
	Limit  time.Duration
	Grace  time.Duration // 0 is the default of package process
	Output int           // bytes that are shown; 0 is the default
	Hint   string        // what to do when it didn't end in time
}

// Run runs the program to its end. Its failure is a result: the exit code is
// the last line of the text.
func (p Program) Run(ctx context.Context, c tool.Call) (tool.Result, process.Exit, error) {
	r := &run{call: c, p: p}
	cmd := process.Command{Argv: p.Argv, Dir: p.Dir, Env: p.Env, Stdin: p.Stdin, Grace: p.Grace}
	var err error
	if cmd.Path, err = program(p.Argv[0], p.Dir, p.Env); err != nil {
		r.failed(err)
		return tool.Result{}, process.Exit{}, err
	}
	out := newOutput(c.Sink, p.Output)
	defer out.close()
	cmd.Output = out
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	if c.Box != nil {
		cmd.Box = c.Box
	}
	proc, err := process.Start(cmd)
	if err != nil {
		return tool.Result{}, process.Exit{}, r.notStarted(cmd, err)
	}
	if err := begin(ctx, c, proc, event.ProcessStarted{PID: proc.PID, StartTime: proc.Start, Argv: recorded(cmd.Argv), Cwd: cmd.Dir}); err != nil {
		return tool.Result{}, process.Exit{}, r.notStarted(cmd, err)
	}
	end := proc.Wait(ctx)
	ref, text, saveErr := out.finish()
	if end.OutputErr != nil {
		saveErr = end.OutputErr
	}
	res, err := r.ended(end, text, ref, saveErr)
	return res, end, err
}

// maxRecorded bounds the arguments as a fact holds them; the whole ones are in
// the call's arguments.
const maxRecorded = 8 << 10

// recorded is argv as far as it fits into a fact.
func recorded(argv []string) []string {
	left := maxRecorded
	for i, arg := range argv {
		if left -= event.TextLen(arg) + 3; left < 0 {
			cut := append(append([]string(nil), argv[:i]...), event.CutText(arg, max(0, left+event.TextLen(arg)))+"…")
			return cut
		}
	}
	return argv
}

// run is one execution.
type run struct {
	call tool.Call
	p    Program
}

// Folder is a folder of the workspace to run in, as an absolute path; dir is
// relative to the workspace or absolute. A link
// may lead elsewhere in the workspace, not out of it.
func Folder(c tool.Call, dir string) (string, error) {
	if dir = file.Within(c.Dir, dir); dir == "" || dir == "." {
		return c.Dir, nil
	}
	name, err := file.Clean(dir)
	if err != nil {
		return "", err
	}
	info, err := c.Root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", tool.Failf(tool.NotFound, file.CodeNoSuchFile, "dir: %s does not exist", name)
	case err != nil:
		return "", tool.Failf(tool.Denied, file.CodeOutside, "dir: %s can't be reached inside the workspace", name)
	case !info.IsDir():
		return "", tool.Failf(tool.BadArguments, file.CodeNotDirectory, "dir: %s is not a folder", name)
	}
	return filepath.Join(c.Dir, filepath.FromSlash(path.Clean(name))), nil
}

// failed records a process that there will not be.
func (r *run) failed(err error) {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		r.call.Sink.Fact(event.ProcessFailed{Class: e.Class, Reason: e.Message})
	}
}

// notStarted is the failure of the system to start what was allowed.
func (r *run) notStarted(cmd process.Command, err error) error {
	if told, ok := errors.AsType[*tool.Error](err); ok {
		r.failed(told)
		return told
	}
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

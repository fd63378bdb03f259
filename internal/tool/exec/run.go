//go:build unix

package exec

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
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
	Idle   time.Duration // it may print nothing for so long; 0 is no limit
	Grace  time.Duration // 0 is the default of package process
	Output int           // bytes that are shown; 0 is the default
	Most   int64         // bytes it may print; 0 is MaxOutput
	Hint   string        // what to do when it didn't end in time

	// Tells is how a line begins by which it tells how far it is: PREFIX DONE TOTAL TEXT.
	// Such a line is no output. Empty: it has none.
	Tells string

	// Yield lets it go on after the call when it hasn't ended by then; 0 is
	// never. Such a program has an input that can be written to.
	Yield time.Duration
	PTY   *process.Size // it gets a terminal of this size; nil: none
}

// maxOutput is how many bytes a program may print by default.
const maxOutput = 4 << 30

// mayPrint is how many bytes the program may print: no more than its boundary says.
func (p Program) mayPrint(box *tool.Box) int64 {
	most := p.Most
	if most <= 0 {
		most = maxOutput
	}
	if box != nil && box.Output > 0 {
		most = min(most, box.Output)
	}
	return most
}

// Left is how a program ends that continues after its call: not yet.
const Left = "left"

// Run runs the program to its end, or until it continues in the background. Its
// failure is a result: the exit code is the last line of the text.
func (p Program) Run(ctx context.Context, c tool.Call) (tool.Result, process.Exit, error) {
	j, err := p.start(ctx, c)
	if err != nil {
		return tool.Result{}, process.Exit{}, err
	}
	if !j.watch(ctx, func() string { return process.ReasonOf(ctx) }, p.Yield) {
		return j.leave(), process.Exit{How: Left}, nil
	}
	defer j.out.keeps.close()
	res, err := j.ended()
	return res, j.proc.Exit(), err
}

// start starts the program and records it.
func (p Program) start(ctx context.Context, c tool.Call) (*job, error) {
	cmd := process.Command{Argv: p.Argv, Dir: p.Dir, Env: p.Env, Stdin: p.Stdin, Grace: p.Grace, Open: p.Yield > 0, PTY: p.PTY}
	j := &job{call: c, p: p, began: time.Now(), over: make(chan struct{})}
	j.size.Store(p.PTY)
	j.out = newOutput(c.Sink, p.Output)
	if p.Yield > 0 {
		j.pieces = newPieces(c.Sink, c.Process)
		j.out.keeps = j.pieces
	} else {
		j.out.keeps = &singleOutput{sink: c.Sink, most: j.out.most, trail: newTrail(c.Sink, c.Process)}
	}
	j.out.limit = p.mayPrint(c.Box)
	full := make(chan struct{}, 1)
	j.full, j.out.enough = full, func() {
		select {
		case full <- struct{}{}:
		default:
		}
	}
	cmd.Output = j.out
	if p.Tells != "" {
		lines := &toldLines{to: j.out, sink: c.Sink, prefix: p.Tells}
		j.lines, cmd.Output = lines, lines
	}
	var err error
	if j.proc, err = Launch(ctx, c, cmd, ""); err != nil {
		j.out.keeps.close()
		return nil, err
	}
	return j, nil
}

// Launch starts a command for a call, in the call's boundary, and records it. It
// fills in the command's Path and Box. server names the MCP server that it is. An
// error is a *tool.Error, is recorded, and means that nothing ran.
func Launch(ctx context.Context, c tool.Call, cmd process.Command, server string) (*process.Process, error) {
	var err error
	if cmd.Path, err = program(cmd.Argv[0], cmd.Dir, cmd.Env); err != nil {
		recordFailed(c, err)
		return nil, err
	}
	if c.Box != nil {
		cmd.Box = c.Box
	}
	proc, err := process.Start(cmd)
	if err == nil {
		err = begin(ctx, c, proc, event.ProcessStarted{PID: proc.PID, StartTime: proc.Start, Argv: recorded(cmd.Argv), Cwd: cmd.Dir, TTY: cmd.PTY != nil, Server: server})
	}
	if err != nil {
		return nil, notStarted(c, cmd, err)
	}
	return proc, nil
}

// maxRecorded bounds the arguments as a fact holds them; the whole ones are in
// the call's arguments.
const maxRecorded = 8 << 10

// recorded is argv as far as it fits into a fact.
func recorded(argv []string) []string {
	left := maxRecorded
	for i, arg := range argv {
		if left -= event.TextLen(arg) + 3; left < 0 {
			return append(slices.Clone(argv[:i]), event.CutText(arg, max(0, left+event.TextLen(arg)))+"…")
		}
	}
	return argv
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

// recordFailed records a process that there will not be.
func recordFailed(c tool.Call, err error) {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		c.Sink.Fact(event.ProcessFailed{Class: e.Class, Reason: e.Message})
	}
}

// notStarted is the failure of the system to start what was allowed.
func notStarted(c tool.Call, cmd process.Command, err error) error {
	if told, ok := errors.AsType[*tool.Error](err); ok {
		recordFailed(c, told)
		return told
	}
	e := tool.Failf(tool.Internal, CodeNotStarted, "%s could not be started: %v", cmd.Argv[0], err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e = tool.Failf(tool.NotFound, CodeNoProgram, "%s can't be run: it, its folder or its interpreter does not exist", cmd.Argv[0])
	case errors.Is(err, fs.ErrPermission):
		e = tool.Failf(tool.Denied, CodeNotRunnable, "no permission to run %s", cmd.Argv[0])
	}
	recordFailed(c, e)
	return e
}

package sessions

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/processes"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store"
)

// ProcessCmd is the command "belay process".
type ProcessCmd struct {
	List   processListCmd   `cmd:"" use:"list_processes" default:"withargs" help:"List the programs that sessions run."`
	Output processOutputCmd `cmd:"" use:"read_process_output" help:"Print what is kept of a program's output, also when it has ended."`
	Write  processWriteCmd  `cmd:"" use:"write_process_stdin" help:"Give a program in the background input: a line, or what - reads."`
	Kill   processKillCmd   `cmd:"" use:"terminate_process" help:"End a program in the background, with all it started."`
}

// processRow is a processes.RunningProcess, as JSON.
type processRow struct {
	Process belay.ProcessID `json:"process"`
	Session belay.SessionID `json:"session"`
	Thread  belay.ThreadID  `json:"thread"`
	PID     int             `json:"pid"`
	Status  string          `json:"status"` // running: its call waits; background; lost: its record is open, but no process drives the session
	Since   time.Time       `json:"since"`
	Command string          `json:"command"`

	CPU    int64 `json:"cpuMs,omitempty"`       // of it and all below it, so far
	Memory int64 `json:"memoryBytes,omitempty"` // of them now
	Count  int   `json:"processes,omitempty"`   // how many they are
}

type processListCmd struct {
	ID string `arg:"" optional:"" help:"Only of this session."`
}

func (c *processListCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	in := &processes.ListedProcesses{}
	if c.ID != "" {
		s, err := app.FindSession(ctx, st, c.ID)
		if err != nil {
			return 0, err
		}
		in.Session = s.ID
	}
	all, err := processes.ListProcesses(ctx, a.Reader(st).Call("list_processes"), in)
	if err != nil {
		return 0, err
	}
	return term.PrintRows(&a.Env, processRows(all.Processes), "no programs run", ranHeads, func(r processRow) []any { return r.cells(a.Now()) })
}

// processRows are programs as the terminal's JSON has them.
func processRows(all []processes.RunningProcess) (rows []processRow) {
	for _, p := range all {
		rows = append(rows, processRow(p))
	}
	return rows
}

const ranHeads = "PROCESS\tSTATUS\tPID\tFOR\tCPU\tMEMORY\tSESSION\tCOMMAND"

func (r processRow) cells(now time.Time) []any {
	return []any{r.Process, r.Status, r.PID, now.Sub(r.Since).Round(time.Second),
		(time.Duration(r.CPU) * time.Millisecond).Round(10 * time.Millisecond), term.Megabytes(r.Memory), r.Session, term.Line(term.Short(r.Command, 60))}
}

type processOutputCmd struct {
	ID     string `arg:"" help:"The process."`
	Offset int64  `placeholder:"BYTE" help:"Begin here; a negative number counts from the end."`
	Bytes  int64  `placeholder:"N" help:"Print so many at most (default everything)."`
}

func (c *processOutputCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	if c.Bytes < 0 {
		return 0, belay.Errorf(belay.CodeUsage, "%d bytes can't be printed", c.Bytes).At("--bytes").WithHint("leave it out for everything; --offset=-1000 begins near the end")
	}
	o, err := processes.OpenOutput(ctx, a.Reader(st).Call("read_process_output"), "", belay.ProcessID(c.ID))
	if err != nil {
		return 0, err
	}
	from := c.Offset
	if from < 0 {
		from = max(0, o.Size+from)
	}
	to := o.Size
	if c.Bytes > 0 {
		to = min(to, from+c.Bytes)
	}
	out := io.Writer(a.Out)
	if a.IsTerminal(a.Out) { // what a program prints must not control the user's terminal
		plain := &process.TerminalText{Dst: a.Out}
		defer plain.Flush() //nolint:errcheck // the terminal is gone, then
		out = plain
	}
	for from < to {
		b, at, err := o.Read(ctx, from, int(min(to-from, processes.MaxOutput)))
		if err != nil || len(b) == 0 || at >= to {
			return 0, err
		}
		if at > from {
			fmt.Fprintf(a.Err, "bytes %d to %d were not kept: the runtime stopped before the program had ended\n", from, at)
		}
		b = b[:min(int64(len(b)), to-at)]
		if _, err := out.Write(b); err != nil {
			return 0, err
		}
		from = at + int64(len(b))
	}
	return belay.ExitOK, nil
}

type processWriteCmd struct {
	ID   string   `arg:"" help:"The process."`
	Text []string `arg:"" optional:"" help:"A line to write; - reads standard input."`
	EOF  bool     `name:"eof" help:"No more input comes after it."`
}

func (c *processWriteCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	text := strings.Join(c.Text, " ")
	switch {
	case text == "-":
		b, err := io.ReadAll(io.LimitReader(a.In, maxGivenInput))
		if err != nil {
			return 0, err
		}
		text = string(b)
	case text != "":
		text += "\n"
	}
	return toProcess(ctx, a, c.ID, "written", func(r *app.Runtime, at belay.IDs) (*app.Result, error) {
		return processes.Write(ctx, r.Call("write_process_stdin"), &processes.WriteProcessStdin{Session: at.Session, Process: at.Process, Input: text, End: c.EOF})
	})
}

// maxGivenInput is more than a command takes: what is longer is refused there.
const maxGivenInput = 64 << 10

type processKillCmd struct {
	ID      string `arg:"" help:"The process."`
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

func (c *processKillCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return toProcess(ctx, a, c.ID, "asked to end", func(r *app.Runtime, at belay.IDs) (*app.Result, error) {
		return processes.Terminate(ctx, r.Call("terminate_process"), &processes.TerminateProcess{Session: at.Session, Process: at.Process, Reason: c.Message})
	})
}

// toProcess finds a program, gives it what f gives, and prints what came of it.
func toProcess(ctx context.Context, a *command.Program, id, what string, f func(*app.Runtime, belay.IDs) (*app.Result, error)) (int, error) {
	return a.Ordering(ctx, func(r *app.Runtime) (int, error) {
		o, err := processes.OpenOutput(ctx, r.Call("read_process_output"), "", belay.ProcessID(id))
		if err != nil {
			return 0, err
		}
		res, err := f(r, o.IDs)
		if err != nil {
			return 0, err
		}
		return a.Tell(ctx, r, res, what)
	})
}

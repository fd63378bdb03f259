package sessions

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/processes"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// TopCmd is the command "belay top".
type TopCmd struct {
	Once  bool          `help:"Print one table and end, as without a terminal."`
	Every time.Duration `default:"1s" placeholder:"TIME" help:"The time between refreshes (default 1s)."`
}

// topRow is a session that is driven or has programs, as JSON.
type topRow struct {
	Session belay.SessionID `json:"session"`
	Title   string          `json:"title,omitempty"`
	Status  string          `json:"status"`
	Owner   int             `json:"owner,omitempty"` // pid of the runtime that drives it
	Steps   int             `json:"steps"`
	Usage   belay.Usage     `json:"usage"`
	Active  belay.Duration  `json:"active,omitempty"`

	Took   view.Programs `json:"took,omitzero"`    // by its programs that have ended
	Agents []agentUse    `json:"agents,omitempty"` // the same of its threads that had programs

	CPU     int64        `json:"cpuMs"`       // of its programs, so far
	Memory  int64        `json:"memoryBytes"` // of its programs now
	Percent int          `json:"cpuPercent"`  // of one processor, since the look before
	Runs    []processRow `json:"runs,omitempty"`
}

// agentUse is what the programs of a thread took, which is one agent's.
type agentUse struct {
	Thread belay.ThreadID `json:"thread"`
	Ended  view.Programs  `json:"took"`
}

// Read implements command.Reader.
func (c *TopCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	if c.Every < 100*time.Millisecond {
		return 0, belay.Errorf(belay.CodeUsage, "%s is too short", c.Every).At("--every").WithHint("--every 1s")
	}
	call := a.Reader(st).Call("list_running_sessions")
	live := !c.Once && !a.JSON && a.IsTerminal(a.Out)
	before := map[belay.ProcessID]int64{}
	at := time.Time{}
	for {
		rows, err := busy(ctx, call, before, a.Now().Sub(at))
		if err != nil {
			return 0, err
		}
		at = a.Now()
		if a.JSON {
			for _, r := range rows {
				a.PrintJSON(r)
			}
			return belay.ExitOK, nil
		}
		var screen bytes.Buffer
		if live {
			screen.WriteString("\x1b[H\x1b[2J")
		}
		if err := paint(&screen, rows, at); err != nil {
			return 0, err
		}
		if _, err := a.Out.Write(screen.Bytes()); err != nil || !live {
			return belay.ExitOK, err
		}
		if done := pause(ctx, a, c.Every); done {
			return belay.ExitOK, nil
		}
	}
}

// pause waits, and reports whether the program is to end.
func pause(ctx context.Context, a *command.Program, d time.Duration) (done bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-a.Signals:
	case <-ctx.Done():
	}
	return true
}

// busy lists the sessions that are driven or have programs. before is what each
// program had used at the look before, and how long ago that was; it is brought
// up to date.
func busy(ctx context.Context, c *app.Call, before map[belay.ProcessID]int64, since time.Duration) (rows []topRow, err error) {
	all, err := processes.ListRunningSessions(ctx, c, &processes.ListedSessions{})
	if err != nil {
		return nil, err
	}
	now := map[belay.ProcessID]int64{}
	for _, s := range all.Sessions {
		r := topRow{Session: s.Session, Title: s.Title, Status: "at rest", Owner: s.Driver, Steps: s.Steps, Usage: s.Usage, Active: s.Active, Took: s.Ended,
			CPU: s.CPU, Memory: s.Memory, Runs: processRows(s.Processes)}
		if r.Owner != 0 {
			r.Status = "driven"
		}
		for _, th := range s.Threads {
			r.Agents = append(r.Agents, agentUse(th))
		}
		for _, p := range r.Runs {
			if used, seen := before[p.Process]; seen && since > 0 {
				r.Percent += int(100 * (p.CPU - used) / max(since.Milliseconds(), 1))
			}
			now[p.Process] = p.CPU
		}
		rows = append(rows, r)
	}
	clear(before)
	maps.Copy(before, now)
	return rows, nil
}

func paint(to *bytes.Buffer, rows []topRow, now time.Time) error {
	var cpu, memory int64
	var programs []processRow
	percent, used := 0, belay.Usage{}
	for _, r := range rows {
		cpu, memory, percent = cpu+r.CPU, memory+r.Memory, percent+r.Percent
		used = used.Add(r.Usage)
		programs = append(programs, r.Runs...)
	}
	self, _ := process.ReadProcessTable().Tree(os.Getpid(), "")
	fmt.Fprintf(to, "%s  %d sessions, %d programs, CPU %d%%, %s, %s tokens (this command: %s)\n\n", now.Format(time.TimeOnly), len(rows), len(programs), percent, term.Megabytes(memory), term.Tokens(used.Total(), used), term.Megabytes(self.Bytes))
	if len(rows) == 0 {
		fmt.Fprintln(to, "no session is running here, and no programs")
		return nil
	}
	const heads = "SESSION\tSTATUS\tBY\tSTEPS\tTOKENS IN\tOUT\tPROGRAMS\tCPU%\tCPU\tMEMORY\tENDED\tTOOK\tTITLE"
	if err := term.WriteTable(to, rows, heads, func(r topRow) []any {
		return []any{r.Session, r.Status, pidOr(r.Owner), r.Steps, term.Tokens(r.Usage.Input, r.Usage), term.Tokens(r.Usage.Output, r.Usage),
			len(r.Runs), r.Percent, (time.Duration(r.CPU) * time.Millisecond).Round(10 * time.Millisecond), term.Megabytes(r.Memory),
			r.Took.Ended, time.Duration(r.Took.CPU).Round(10 * time.Millisecond), term.Line(term.Short(r.Title, 40))}
	}); err != nil {
		return err
	}
	paintLimits(to, rows)
	if len(programs) == 0 {
		return nil
	}
	fmt.Fprintln(to)
	return term.WriteTable(to, programs, ranHeads, func(r processRow) []any { return r.cells(now) })
}

// paintLimits shows how much of a limit sessions and their agents have used.
func paintLimits(to *bytes.Buffer, rows []topRow) {
	for _, r := range rows {
		if l := term.LimitsUse(r.Took); l != "" {
			fmt.Fprintf(to, "%s: %s\n", r.Session, l)
		}
		for _, a := range r.Agents {
			if l := term.LimitsUse(a.Ended); l != "" {
				fmt.Fprintf(to, "%s, %s: %s\n", r.Session, a.Thread, l)
			}
		}
	}
}

func pidOr(pid int) string {
	if pid == 0 {
		return "-"
	}
	return fmt.Sprint("pid ", pid)
}

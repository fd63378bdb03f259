package processes

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// ListedProcesses is what list_processes takes.
type ListedProcesses struct {
	Session belay.SessionID `json:"sessionId,omitempty" jsonschema:"only those of this session"`
	After   int64           `json:"after,omitempty" jsonschema:"a position that the answer must have seen"`
}

// ProcessesShown are programs that sessions run.
type ProcessesShown struct {
	app.Fresh
	Processes []RunningProcess `json:"processes"`
}

// RunningProcess is a program that a session runs.
type RunningProcess struct {
	Process belay.ProcessID `json:"processId"`
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId"`
	PID     int             `json:"pid"`
	Status  string          `json:"status"` // running: its call waits; background; lost: its record is open, but the program is gone
	Since   time.Time       `json:"since"`
	Command string          `json:"command"`

	CPU    int64 `json:"cpuMs,omitempty"`       // of it and all below it, so far
	Memory int64 `json:"memoryBytes,omitempty"` // of them now
	Count  int   `json:"processes,omitempty"`   // how many they are
}

// ListProcesses lists what runs in all sessions, or in one.
func ListProcesses(ctx context.Context, c *app.Call, in *ListedProcesses) (*ProcessesShown, error) {
	f, err := c.Fresh(ctx, store.Position(in.After))
	if err != nil {
		return nil, err
	}
	var threads []belay.ThreadID
	if in.Session != "" {
		s, err := c.Known(ctx, in.Session)
		if err != nil {
			return nil, err
		}
		threads = s.All()
	} else {
		all, err := view.In(ctx, c.Store, view.ProgramsList, 0)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			for _, th := range s.Threads {
				if len(th.Running) > 0 {
					threads = append(threads, th.ID)
				}
			}
		}
	}
	out := &ProcessesShown{f, []RunningProcess{}}
	table := process.ReadProcessTable()
	for _, id := range threads {
		th, err := c.Thread(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, p := range th.Procs {
			if p.PID == 0 { // an MCP server that is elsewhere
				continue
			}
			out.Processes = append(out.Processes, running(p, table))
		}
	}
	return out, nil
}

func running(p thread.Proc, table process.ProcessTable) RunningProcess {
	r := RunningProcess{Process: p.IDs.Process, Session: p.IDs.Session, Thread: p.IDs.Thread, PID: p.PID, Status: "running", Since: p.Since, Command: p.What}
	if p.Left {
		r.Status = "background"
	}
	use, there := table.Tree(p.PID, p.Start)
	if !there {
		r.Status = "lost"
	}
	r.CPU, r.Memory, r.Count = use.CPU.Milliseconds(), use.Bytes, use.Processes
	return r
}

// ListedSessions is what list_running_sessions takes.
type ListedSessions struct {
	After int64 `json:"after,omitempty" jsonschema:"a position that the answer must have seen"`
}

// RunningSessionsShown are sessions that something happens in, the one that changed
// last first.
type RunningSessionsShown struct {
	app.Fresh
	Sessions []RunningSession `json:"sessions"`
}

// RunningSession is a session that a process drives, or that has programs.
type RunningSession struct {
	Session belay.SessionID `json:"sessionId"`
	Title   string          `json:"title,omitempty"`
	Driver  int             `json:"driverPid,omitempty"` // the process that drives it; left out: none does
	Steps   int             `json:"steps"`
	Usage   belay.Usage     `json:"usage"`
	Active  belay.Duration  `json:"active,omitempty"`

	Ended   view.Programs    `json:"ended,omitzero"`    // what its programs took that have ended
	Threads []ThreadPrograms `json:"threads,omitempty"` // the same of its threads that had programs

	CPU       int64            `json:"cpuMs"`       // of its programs, so far
	Memory    int64            `json:"memoryBytes"` // of its programs now
	Processes []RunningProcess `json:"processes,omitempty"`
}

// ThreadPrograms is what the programs of a thread took that have ended.
type ThreadPrograms struct {
	Thread belay.ThreadID `json:"threadId"`
	Ended  view.Programs  `json:"ended"`
}

// ListRunningSessions lists the sessions that are driven or have programs.
func ListRunningSessions(ctx context.Context, c *app.Call, in *ListedSessions) (*RunningSessionsShown, error) {
	all, err := ListProcesses(ctx, c, &ListedProcesses{After: in.After})
	if err != nil {
		return nil, err
	}
	programs := map[belay.SessionID][]RunningProcess{}
	for _, p := range all.Processes {
		programs[p.Session] = append(programs[p.Session], p)
	}
	owned, err := c.Store.Owned(ctx)
	if err != nil {
		return nil, err
	}
	ids := slices.Collect(maps.Keys(programs))
	for id := range owned {
		if programs[id] == nil {
			ids = append(ids, id)
		}
	}
	sessions, err := view.SessionsByID(ctx, c.Store, ids)
	if err != nil {
		return nil, err
	}
	out := &RunningSessionsShown{all.Fresh, []RunningSession{}}
	for _, s := range sessions {
		r := RunningSession{Session: s.ID, Title: s.Title, Driver: owned[s.ID].PID, Steps: s.Counts.Steps, Usage: s.Usage, Active: s.Active, Ended: s.Programs, Processes: programs[s.ID]}
		for _, th := range s.Threads {
			if th.Programs.Ended > 0 {
				r.Threads = append(r.Threads, ThreadPrograms{th.ID, th.Programs})
			}
		}
		for _, p := range r.Processes {
			r.CPU += p.CPU
			r.Memory += p.Memory
		}
		out.Sessions = append(out.Sessions, r)
	}
	return out, nil
}

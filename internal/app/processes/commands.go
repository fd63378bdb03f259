// Package processes has the use cases about programs that sessions run: those that run
// and what they use, what they printed, and input and an end for those in the
// background.
package processes

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/view"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.Define("list_processes", auth.Read, false, "List the programs that sessions run, and what they use of the machine.", ListProcesses),
		app.Define("list_running_sessions", auth.Read, false, "List the sessions that a process drives or that run programs, and what they use.", ListRunningSessions),
		app.DefineLook("read_process_output", auth.Read, "Read what is kept of a program's output, also when it has ended.", readProcessOutput),
		app.Define("write_process_stdin", auth.Work, true, "Give a program in the background input.", Write),
		app.Define("terminate_process", auth.Work, true, "End a program in the background, with all it started.", Terminate),
	}
}

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineRead(app.Read{Name: "listPrograms", Path: "/v1/programs", Tag: "reads", Doc: "List the running and ended programs of sessions, the newest first.",
			Query: []read.Param{{Name: "sessionId", Doc: "Only those of this session."},
				{Name: "status", Doc: "Only those that are so; ended: from outside.", OneOf: []string{view.Running, "exited", view.Ended, "failed"}},
				{Name: "before", Doc: "Those before a position: next of the answer before.", Whole: true},
				{Name: "limit", Doc: "How many at most; 100 when left out.", Whole: true}}}, listPrograms),
	}
}

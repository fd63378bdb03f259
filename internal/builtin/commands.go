// Package builtin lists what the program is made of. Everything that exists is named
// here, so that the surfaces, and tests, have the same.
package builtin

import (
	"slices"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/access"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/app/channels"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/app/processes"
	"github.com/belay-run/belay/internal/app/servers"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/app/storage"
	"github.com/belay-run/belay/internal/app/tasks"
	"github.com/belay-run/belay/internal/app/transfer"
	"github.com/belay-run/belay/internal/app/turns"
)

// Commands returns the table of commands: the standard's, also those whose subsystem
// isn't here yet, and the runtime's own.
func Commands() []app.Command {
	return slices.Concat(turns.Commands(), transfer.Commands(), approvals.Commands(), sessions.Commands(), policies.Commands(), processes.Commands(), tasks.Commands(), storage.Commands(), channels.Commands(), access.Commands(), servers.Commands(), agents.Commands(), planned())
}

// Reads returns the table of reads.
func Reads() []app.Read {
	return slices.Concat(app.Models, sessions.Reads(), approvals.Reads(), transfer.Reads(), channels.Reads(), access.Reads(), storage.Reads(), servers.Reads(), agents.Reads(), policies.Reads(), processes.Reads())
}

// planned are the standard's commands that this build hasn't.
func planned() []app.Command {
	return []app.Command{
		app.Planned("export_evidence", false, "evidence", "Export an evidence pack."),
		app.Planned("export_replay", false, "replay", "Export a replay case."),
		app.Planned("create_job", true, "jobs", "Create a job."),
		app.Planned("get_job", false, "jobs", "Show a job."),
		app.Planned("cancel_job", true, "jobs", "Cancel a job."),
		app.Planned("export_review", false, "evidence", "Export a review."),
		app.Planned("start_benchmark_trial", true, "benchmarks", "Start a trial."),
		app.Planned("record_benchmark_reward", true, "benchmarks", "Record a reward."),
		app.Planned("export_benchmark_trial", false, "benchmarks", "Export a trial."),
		app.Planned("compare_benchmark_runs", false, "benchmarks", "Compare trials."),
		app.Planned("list_jobs", false, "jobs", "List jobs."),
	}
}

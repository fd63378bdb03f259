// Package builtin lists what the program is made of. Everything that exists is named
// here, so that the surfaces, and tests, have the same.
package builtin

import (
	"slices"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/access"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/app/channels"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/app/processes"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/app/transfer"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/auth"
)

// Commands returns the table of commands: the standard's, also those whose subsystem
// isn't here yet, and the runtime's own.
func Commands() []app.Command {
	return slices.Concat(turns.Commands(), transfer.Commands(), approvals.Commands(), sessions.Commands(), policies.Commands(), processes.Commands(), channels.Commands(), access.Commands(), planned())
}

// Reads returns the table of reads.
func Reads() []app.Read {
	return slices.Concat(app.Models, sessions.Reads(), approvals.Reads(), transfer.Reads(), channels.Reads())
}

// planned are the standard's commands that this build hasn't.
func planned() []app.Command {
	return []app.Command{
		app.Planned("create_task", auth.Work, true, "tasks", "Create a task without starting it."),
		app.Planned("update_task", auth.Work, true, "tasks", "Change a task's objective or constraints."),
		app.Planned("start_task", auth.Work, true, "tasks", "Start a task that was created."),
		app.Planned("append_task_progress", auth.Work, true, "tasks", "Record progress of a task."),
		app.Planned("pause_task", auth.Work, true, "tasks", "Pause a task."),
		app.Planned("resume_task", auth.Work, true, "tasks", "Go on with a paused task."),
		app.Planned("complete_task", auth.Work, true, "tasks", "Reconcile a task as completed."),
		app.Planned("fail_task", auth.Work, true, "tasks", "Reconcile a task as failed."),
		app.Planned("link_tasks", auth.Work, true, "task graphs", "Add an edge between tasks."),
		app.Planned("unlink_tasks", auth.Work, true, "task graphs", "Remove an edge between tasks."),
		app.Planned("spawn_subagent", auth.Work, true, "sub-agents", "Start a child."),
		app.Planned("send_subagent_input", auth.Work, true, "sub-agents", "Send a child input."),
		app.Planned("wait_subagents", auth.Read, false, "sub-agents", "Wait for children."),
		app.Planned("close_subagent", auth.Work, true, "sub-agents", "End a child."),
		app.Planned("export_evidence", auth.Read, false, "evidence", "Export an evidence pack."),
		app.Planned("export_replay", auth.Read, false, "replay", "Export a replay case."),
		app.Planned("list_subagents", auth.Read, false, "sub-agents", "List children."),
		app.Planned("create_job", auth.Work, true, "jobs", "Create a job."),
		app.Planned("get_job", auth.Read, false, "jobs", "Show a job."),
		app.Planned("cancel_job", auth.Work, true, "jobs", "Cancel a job."),
		app.Planned("export_review", auth.Read, false, "evidence", "Export a review."),
		app.Planned("start_benchmark_trial", auth.Work, true, "benchmarks", "Start a trial."),
		app.Planned("record_benchmark_reward", auth.Work, true, "benchmarks", "Record a reward."),
		app.Planned("export_benchmark_trial", auth.Read, false, "benchmarks", "Export a trial."),
		app.Planned("compare_benchmark_runs", auth.Read, false, "benchmarks", "Compare trials."),
		app.Planned("resume_subagent", auth.Work, true, "sub-agents", "Go on with a child."),
		app.Planned("list_jobs", auth.Read, false, "jobs", "List jobs."),
	}
}

// Package tasks has the use cases that plan tasks, join them by edges, start them and
// show how they stand.
package tasks

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	create := app.Define("create_task", auth.Work, true, "Create a task without starting it.", Create)
	create.MaxBody = 2 * app.MaxText // some of it is escaped
	update := app.Define("update_task", auth.Work, true, "Change what a task is that hasn't ended: its title, objective, owner, priority.", Update)
	update.MaxBody = create.MaxBody
	goal := app.Define("set_goal", auth.Work, true, "Set the goal of a session: turns of its main agent follow one another until one meets it, at most 10.", Goal).RunsAgents()
	goal.MaxBody = create.MaxBody
	return []app.Command{
		create,
		update,
		goal,
		app.Define("clear_goal", auth.Work, true, "Cancel the goal of a session.", Clear),
		app.Define("start_task", auth.Work, true, "Start a task that was created, as soon as no other task blocks it.", Start).RunsAgents(),
		app.Define("append_task_progress", auth.Work, true, "Record how far a task is.", Progress),
		app.Define("complete_task", auth.Work, true, "Complete a task of which no attempt runs.", Complete).RunsAgents(),
		app.Define("pause_task", auth.Work, true, "Keep a task, its parts and the agents that work on them from beginning anything more.", Pause),
		app.Define("resume_task", auth.Work, true, "End the pause of a task: it goes on in the same turn.", Resume).RunsAgents(),
		app.Define("fail_task", auth.Work, true, "Fail a task of which no attempt runs.", Fail),
		app.Define("cancel_task", auth.Work, true, "Record the wish to stop a task; one that runs is interrupted.", Cancel),
		app.Define("link_tasks", auth.Work, true, "Add an edge from a task to another one, or to something else that it has to do with.", Link),
		app.Define("unlink_tasks", auth.Work, true, "Remove an edge of a task.", Unlink),
		app.DefineLook("list_tasks", auth.Read, "List the tasks of a session.", List),
		app.DefineLook("get_task", auth.Read, "Show a task, its edges and its attempts.", Get),
	}
}

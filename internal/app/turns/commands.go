// Package turns has the use cases that give sessions something to do and steer it.
package turns

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	submit := app.Define("submit_turn", auth.Work, true, "Give a session, a new one if need be, something to do.", submitTurn).RunsAgents()
	submit.MaxBody = 2 * app.MaxText // some of it is escaped
	return []app.Command{
		submit,
		app.Define("call_tool", auth.Work, true, "Run one call in a session without a model, decided and recorded like any other.", callTool).RunsAgents(),
		app.Define("interrupt_turn", auth.Work, true, "End the running turn, or one that waits; its partial text is kept.", Interrupt),
		app.Define("resume_thread", auth.Work, true, "Go on with an unfinished turn, under other settings perhaps.", resumeThread).RunsAgents(),
		app.Define("update_thread", auth.Work, true, "Change the mode, the model or other settings of a session; a running turn continues under them.", Update),
		app.Define("retry_task", auth.Work, true, "Start another attempt of a task that ended without success.", Retry).RunsAgents(),
		app.Define("remove_queued_turn", auth.Work, true, "Remove a turn that waits.", Remove),
		app.Define("promote_queued_turn", auth.Work, true, "Move a waiting turn to the front, or to another place.", Promote),
		app.Define("reorder_queued_turns", auth.Work, true, "Put the turns that wait into another order.", Reorder),
		app.Define("configure_queue", auth.Work, true, "Set how a thread takes turns while one runs.", Configure),
		app.Define("compact_thread", auth.Work, true, "Shorten what the model is shown of a thread's conversation; the facts stay.", Compact).RunsAgents(),
		app.Define("pin_context", auth.Work, true, "Keep a text in a thread's conversation, word for word.", Pin),
		app.Define("unpin_context", auth.Work, true, "Take a pinned text out of a thread's conversation.", Unpin),
	}
}

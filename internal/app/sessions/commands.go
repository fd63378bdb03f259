// Package sessions has the use cases that find, show and change sessions, and show
// their threads and runs.
package sessions

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.DefineLook("get_session", auth.Read, "Show a session: its threads, tasks, open questions and figures.", getSession),
		app.DefineLook("get_thread_read", auth.Read, "Show a thread: its turn, what waits behind it, what it asks.", getThreadRead),
		app.DefineLook("list_peer_sessions", auth.Read, "List the other sessions of a session's workspace.", peers),
		app.DefineLook("read_peer_session", auth.Read, "Show what was said in another session of a session's workspace, a page at a time.", peerHistory),
		app.Define("tell_peer_session", auth.Work, true, "Tell another session of a session's workspace something, as an agent.", tellPeer).RunsAgents(),
		app.DefineLook("list_subagents", auth.Read, "List the agents that a session's agents started, and how far they are.", Subagents),
		app.Define("spawn_subagent", auth.Work, true, "Start an agent as a child of a session's main agent, or of one that it started; in the background.", Spawn).RunsAgents(),
		app.Define("send_subagent_input", auth.Work, true, "Tell an agent that another one started something more; one that has ended goes on with it.", SendInput).RunsAgents(),
		app.Define("wait_subagents", auth.Read, false, "Wait until agents of a session have ended, or for some time, and show how.", Wait),
		app.Define("pause_subagent", auth.Work, true, "Keep an agent, and those that it started, from beginning anything more.", PauseAgent),
		app.Define("resume_subagent", auth.Work, true, "Let an agent that was paused go on, with those that it started.", ResumeAgent).RunsAgents(),
		app.Define("close_subagent", auth.Work, true, "End an agent that another one started, with those that it started.", CloseAgent),
		app.DefineLook("get_tool_inventory", auth.Read, "List the tools of a session, or of a workspace.", getToolInventory),
		app.DefineLook("get_execution_environment", auth.Read, "Show a session's workspace and the boundary of its processes.", getExecutionEnvironment),
		app.Define("fork_session", auth.Work, true, "Begin a new session with the history of another one, up to a turn.", Fork),
		app.Define("rollback_thread", auth.Work, true, "Take a session back to the end of a turn: its conversation and its files.", rollbackThread),
		app.Define("undo_turns", auth.Work, true, "Take back what the last turns did to files; the conversation stays.", undoTurns),
		app.Define("delete_session", auth.Own, true, "Delete a session with its facts, its content and its worktree, for good.", Delete),
		app.Define("set_budget", auth.Work, true, "Change what a session may spend: a limit, or a raise of one.", ChangeBudget),
		app.Define("label_session", auth.Work, true, "Change a session's title and tags, or put it into the archive.", Label),
	}
}

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.SessionModel("tool_inventory_snapshot", "the workspace's rules", "The tools that a session's next turn has.", toolInventory),
		app.DefineRead(app.Read{Name: "routing_limit_summary", Of: "sessions", View: "standings, sessions", Doc: "Which model is asked and why, usage, cost, limits, budget.", ID: "Whose."}, routingLimits),
		app.DefineRead(app.Read{Name: "getOverview", Path: "/v1/overview", Tag: "reads", Doc: "Show what waits for a person, what runs, and the results of the last 24 hours, over all sessions."}, overview),
		app.DefineRead(app.Read{Name: "getUsage", Path: "/v1/usage", Tag: "reads", Doc: "Show what was used in a time: cost, tokens, turns and calls, grouped.",
			Query: []read.Param{{Name: "from", Doc: "When it begins, such as 2026-11-01T00:00:00Z; it is rounded to hours. 24 hours before its end when it is left out."},
				{Name: "to", Doc: "When it ends; now when it is left out."},
				{Name: "by", Doc: "What rows are of; day when left out.", OneOf: []string{"day", "hour", "model", "session", "tool", "outcome"}},
				{Name: "zone", Doc: "Minutes that local time, by which days are counted, is before UTC.", Whole: true}}}, usage),
		app.DefineRead(app.Read{Name: "getRun", Path: "/v1/runs/{id}", Tag: "runs", Doc: "Show a run: its progress, and how it ended.", ID: "The run."}, getRun),
		app.DefineRead(app.Read{Name: "why", Path: "/v1/why/{id}", Tag: "reads", Doc: "Explain from the facts why something happened.", ID: "A turn, step, call, action, task, run, session or event, or the beginning of its id.",
			Query: []read.Param{{Name: "sessionId", Doc: "Where it happened; found when it is left out, which takes longer."}}}, why),
		app.DefineRead(app.Read{Name: "getQuotas", Path: "/v1/quotas", Tag: "reads", Doc: "Show what quotas have left in their windows."}, quotas),
		app.DefineRead(app.Read{Name: "getSessionBudget", Path: "/v1/sessions/{id}/budget", Tag: "reads", Doc: "Show what a session may spend, and what it has spent.", ID: "The session."}, sessionBudget),
		app.DefineRead(app.Read{Name: "getThreadContext", Path: "/v1/threads/{id}/context", Tag: "reads", Doc: "Show what fills the context of a thread's model: by kind, the largest items, pins, where it was shortened.", ID: "The thread.",
			Query: []read.Param{{Name: "step", Doc: "The request of this step, by its id; the next request when it is left out."},
				{Name: "messages", Doc: "true: with the messages of the request.", OneOf: []string{"true", "false"}}}}, threadContext),
	}
}

package cli

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/machine"
	"github.com/belay-run/belay/internal/cli/permission"
	"github.com/belay-run/belay/internal/cli/serve"
	"github.com/belay-run/belay/internal/cli/sessions"
	"github.com/belay-run/belay/internal/cli/work"
)

// topCommand is a command of the first level.
type topCommand struct {
	group, name, help string
	node              func() any // its arguments and flags, and what is below it
	use               string     // the rows of the table of use cases that it performs, as the tag use has them below
}

// topCommands are the commands of the first level, in the order of the help.
func topCommands(a *command.Program) []topCommand {
	return []topCommand{
		{"Work with an agent:", "chat", "Talk with an agent in this terminal. It is what belay does without a command.", func() any { return new(work.ChatCmd) }, "submit_turn,respond_action,update_thread"},
		{"Work with an agent:", "print", "Answer once and print the answer alone: belay -p TEXT.", func() any { return new(work.PrintCmd) }, "submit_turn"},
		{"Work with an agent:", "run", "Give an agent something to do and see it through.", func() any { return new(work.RunCmd) }, "submit_turn"},
		{"Work with an agent:", "sessions", "List, show, resume and interrupt sessions.", func() any { return new(sessionsCmd) }, ""},
		{"Work with an agent:", "queue", "List the turns of a session that wait, and change their order.", func() any { return new(work.QueueCmd) }, ""},
		{"Work with an agent:", "fork", "Begin a new session with the history of another, up to a turn.", func() any { return new(sessions.ForkCmd) }, "fork_session"},
		{"Work with an agent:", "rollback", "Take a session back to the end of a turn: its conversation and its files.", func() any { return new(work.RollbackCmd) }, "rollback_thread"},
		{"Work with an agent:", "undo", "Take back what the last turns did to files; the conversation stays.", func() any { return new(work.UndoCmd) }, "undo_turns"},
		{"Work with an agent:", "worktree", "List and remove the git worktrees of sessions.", func() any { return new(sessions.WorktreeCmd) }, ""},
		{"Answer what it asks:", "actions", "List what agents ask and nobody answered yet.", func() any { return new(permission.ActionsCmd) }, "listActions"},
		{"Answer what it asks:", "approve", "Allow what an agent asks for.", func() any { return new(permission.ApproveCmd) }, "respond_action"},
		{"Answer what it asks:", "deny", "Deny what an agent asks for.", func() any { return new(permission.DenyCmd) }, "respond_action"},
		{"Answer what it asks:", "answer", "Answer an agent's question.", func() any { return new(permission.AnswerCmd) }, "respond_action"},
		{"Answer what it asks:", "grants", "List what people allowed beyond single calls, or take it back.", func() any { return new(permission.GrantsCmd) }, ""},
		{"See what happened, and why:", "why", "Explain from the facts why something happened.", func() any { return new(sessions.WhyCmd) }, "why"},
		{"See what happened, and why:", "events", "Print the facts of a session, or follow them.", func() any { return new(sessions.EventsCmd) }, "read_sessions_id_events,read_stream"},
		{"See what happened, and why:", "stats", "Count how turns end, how tools and models fare, what was decided and used.", func() any { return new(sessions.StatsCmd) }, ""},
		{"See what happened, and why:", "top", "Show the sessions that run and what their programs use, live.", func() any { return new(sessions.TopCmd) }, "list_running_sessions"},
		{"See what happened, and why:", "export", "Export a session: everything, its messages, or the standard's snapshots.", func() any { return new(sessions.ExportCmd) }, "exportSession"},
		{"See what happened, and why:", "import", "Import exported sessions, or transcripts of other agents.", func() any { return new(sessions.ImportCmd) }, "import_session"},
		{"What it may spend, and what its model is shown:", "budget", "Show and change what a session may spend.", func() any { return new(sessions.BudgetCmd) }, ""},
		{"What it may spend, and what its model is shown:", "quota", "Show what quotas have left, and until when.", func() any { return new(sessions.QuotaCmd) }, "getQuotas"},
		{"What it may spend, and what its model is shown:", "context", "Show what fills the context of a session's model, and where it was shortened.", func() any { return new(sessions.ContextCmd) }, "getThreadContext"},
		{"What it may spend, and what its model is shown:", "compact", "Shorten what the model is shown of a session; nothing is removed.", func() any { return new(work.CompactCmd) }, "compact_thread"},
		{"What it may spend, and what its model is shown:", "pin", "Keep a text in a session's conversation, word for word.", func() any { return new(sessions.PinCmd) }, "pin_context"},
		{"What it may spend, and what its model is shown:", "unpin", "Take a pinned text out of a session's conversation.", func() any { return new(sessions.UnpinCmd) }, "unpin_context"},
		{"Agents, tasks and skills:", "agents", "Start, steer and watch agents; list and check the files that define them.", func() any { return new(agentsCmd) }, ""},
		{"Agents, tasks and skills:", "tasks", "Plan, link, start and follow tasks.", func() any { return new(sessions.TasksCmd) }, ""},
		{"Agents, tasks and skills:", "goal", "Set a goal of a session, which its turns work on until it is met.", func() any { return new(sessions.GoalCmd) }, ""},
		{"Agents, tasks and skills:", "skills", "List, show and check skills: folders with instructions for agents.", func() any { return new(sessions.SkillsCmd) }, ""},
		{"Tools, programs and the rules for them:", "tool", "List and show tools, and run one call without a model.", func() any { return new(work.ToolCmd) }, ""},
		{"Tools, programs and the rules for them:", "mcp", "Add, list, test and trust MCP servers, or be one.", func() any { return new(permission.MCPCmd) }, ""},
		{"Tools, programs and the rules for them:", "policy", "Explain, test, replay and import the rules that decide on calls.", func() any { return new(permission.PolicyCmd) }, ""},
		{"Tools, programs and the rules for them:", "trust", "Trust files of this workspace, such as rules and agents, as they are now.", func() any { return new(permission.TrustCmd) }, "list_trust,trust_file,revoke_trust"},
		{"Tools, programs and the rules for them:", "process", "List the programs of sessions, read their output, write to them, end them.", func() any { return new(sessions.ProcessCmd) }, ""},
		{"Tools, programs and the rules for them:", "attach", "Follow a program and type on it, through the server. Ctrl-P Ctrl-Q detaches.", func() any { return new(sessions.AttachCmd) }, "attach"},
		{"Tools, programs and the rules for them:", "outputs", "List the kept output of programs and tools, or let it go.", func() any { return new(machine.OutputsCmd) }, ""},
		{"Tools, programs and the rules for them:", "redact", "Copy a text without the secrets in it, or say what is found.", func() any { return new(machine.RedactCmd) }, ""},
		{"Models, keys and settings:", "login", "Keep a vendor's key, after trying it.", func() any { return new(machine.LoginCmd) }, ""},
		{"Models, keys and settings:", "logout", "Forget a vendor's key.", func() any { return new(machine.LogoutCmd) }, ""},
		{"Models, keys and settings:", "models", "List and show the models that are known: context, abilities, prices.", func() any { return new(machine.ModelsCmd) }, ""},
		{"Models, keys and settings:", "config", "Show and change the settings, and see where they come from.", func() any { return new(machine.ConfigCmd) }, ""},
		{"Models, keys and settings:", "secret", "Keep keys in an encrypted file, list and forget them.", func() any { return new(machine.SecretCmd) }, ""},
		{"Models, keys and settings:", "templates", "List, show and fill templates for prompts.", func() any { return new(work.TemplatesCmd) }, ""},
		{"A server:", "serve", "Serve the runtime over HTTP: commands, reads, streams and the console.", func() any { return new(serve.ServeCmd) }, ""},
		{"A server:", "console", "Print the address of the server's web console, with a code to log in.", func() any { return new(serve.ConsoleCmd) }, ""},
		{"A server:", "token", "Make, list and revoke the tokens of the server.", func() any { return new(serve.TokenCmd) }, ""},
		{"A server:", "api", "Perform a command or read of the HTTP API on this store, without a server.", func() any { return &apiCmd{build: a.Build} }, ""},
		{"The store and this machine:", "doctor", "Check this machine, the keys and the store, and say what is missing.", func() any { return new(machine.DoctorCmd) }, ""},
		{"The store and this machine:", "store", "Look after the store: its size, backups, retention.", func() any { return new(machine.StoreCmd) }, ""},
		{"The store and this machine:", "views", "Rebuild the indexes that lists and searches read.", func() any { return new(machine.ViewsCmd) }, ""},
		{"The store and this machine:", "verify", "Check the whole store: every hash, every stream, every blob.", func() any { return new(machine.VerifyCmd) }, ""},
		{"Try it out:", "demo", "Kill an agent in the middle and watch it go on. Offline, no key.", func() any { return new(demoCmd) }, ""},
		{"Try it out:", "eval", "Play scenarios in throw-away workspaces and check what comes of them.", func() any { return new(evalCmd) }, ""},
		{"Try it out:", "bench", "Run many sessions at once and print how fast they went.", func() any { return new(work.BenchCmd) }, ""},
		{"This program:", "version", "Print the version.", func() any { return new(machine.VersionCmd) }, ""},
		{"This program:", "completion", "Print a completion script for a shell.", func() any { return new(completionCmd) }, ""},
	}
}

// parser makes the parser of a command line. Reading what a command takes has its
// price, so that is done for the commands that the arguments name, and for all of
// them if none is named or all are to be described.
func parser(a *command.Program, f *command.Flags, args []string, exit func(int)) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("belay"),
		kong.Description("Runs agents: every step is recorded before it happens, every action is governed, nothing accepted is lost.\n\n" +
			"Exit codes: 0 completed, 1 failed, 2 usage, 3 waits for a person, 4 denied, 5 budget, 6 timed out, 7 lost, 8 store, 130 cancelled."),
		kong.Writers(a.Out, a.Err),
		kong.Exit(exit),
		kong.PostBuild(command.AddSettingFlags),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true, WrapUpperBound: 100}),
	}
	all := topCommands(a)
	whole := slices.Contains(args, "completion") || !slices.ContainsFunc(all, func(c topCommand) bool { return slices.Contains(args, c.name) })
	for _, c := range all {
		node := any(new(struct{}))
		if whole || slices.Contains(args, c.name) {
			node = c.node()
		}
		options = append(options, kong.DynamicCommand(c.name, c.help, c.group, node, fmt.Sprintf("use:%q", c.use)))
	}
	return kong.New(f, options...)
}

// agentsCmd has the commands about agents: those that show and steer them, and the one
// that gives them work.
type agentsCmd struct {
	sessions.AgentsCmd
	Test agentsTestCmd     `cmd:"" help:"Play the tests of an agent's file: scenarios on a scripted model."`
	Run  work.AgentsRunCmd `cmd:"" use:"run_agents" help:"Run agents that are kept as files side by side, each after those that it requires."`
}

// sessionsCmd has the commands about sessions: those that show and change them, and the
// one that goes on with their work.
type sessionsCmd struct {
	List      sessions.ListCmd      `cmd:"" use:"read_sessions" default:"withargs" help:"List the sessions of this workspace."`
	Show      sessions.ShowCmd      `cmd:"" use:"get_session" help:"Show one session."`
	Resume    work.ResumeCmd        `cmd:"" use:"resume_thread,retry_task" help:"Go on with a session: its unfinished turn, or another attempt."`
	Artifacts sessions.ArtifactsCmd `cmd:"" use:"artifact_checkpoint_summary" help:"List what a session published, or print one of them."`
	Interrupt sessions.InterruptCmd `cmd:"" use:"interrupt_turn" help:"End the running turn; its partial text is kept."`
	Set       sessions.SetCmd       `cmd:"" use:"update_thread" help:"Change the mode, the model or the effort of a session, also while it runs."`
	Rename    sessions.RenameCmd    `cmd:"" use:"label_session" help:"Give a session another title."`
	Tag       sessions.TagCmd       `cmd:"" use:"label_session" help:"Put tags on a session."`
	Untag     sessions.UntagCmd     `cmd:"" use:"label_session" help:"Take tags off a session."`
	Archive   sessions.ArchiveCmd   `cmd:"" use:"label_session" help:"Leave sessions out of lists; nothing is removed."`
	Delete    sessions.DeleteCmd    `cmd:"" use:"delete_session" help:"Delete sessions with all their facts and content, for good."`
	Unarchive sessions.UnarchiveCmd `cmd:"" use:"label_session" help:"Show archived sessions in lists again."`
}

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
	name, help string
	node       func() any // its arguments and flags, and what is below it
	use        string     // the rows of the table of use cases that it performs, as the tag use has them below
}

// topCommands are the commands of the first level, in the order of the help.
func topCommands(a *command.Program) []topCommand {
	return []topCommand{
		{"chat", "Talk with an agent in this terminal. It is what belay does without a command.", func() any { return new(work.ChatCmd) }, "submit_turn,respond_action,update_thread"},
		{"print", "Answer once and print the answer alone: belay -p TEXT.", func() any { return new(work.PrintCmd) }, "submit_turn"},
		{"run", "Give an agent something to do and see it through.", func() any { return new(work.RunCmd) }, "submit_turn"},
		{"sessions", "List, show, resume and interrupt sessions.", func() any { return new(sessionsCmd) }, ""},
		{"queue", "List the turns of a session that wait, and change their order.", func() any { return new(work.QueueCmd) }, ""},
		{"fork", "Begin a new session with the history of another, up to a turn.", func() any { return new(sessions.ForkCmd) }, "fork_session"},
		{"rollback", "Take a session back to the end of a turn: its conversation and its files.", func() any { return new(work.RollbackCmd) }, "rollback_thread"},
		{"undo", "Take back what the last turns did to files; the conversation stays.", func() any { return new(work.UndoCmd) }, "undo_turns"},
		{"context", "Show what fills the context of a session's model, and where it was shortened.", func() any { return new(sessions.ContextCmd) }, "getThreadContext"},
		{"compact", "Shorten what the model is shown of a session; nothing is removed.", func() any { return new(work.CompactCmd) }, "compact_thread"},
		{"pin", "Keep a text in a session's conversation, word for word.", func() any { return new(sessions.PinCmd) }, "pin_context"},
		{"unpin", "Take a pinned text out of a session's conversation.", func() any { return new(sessions.UnpinCmd) }, "unpin_context"},
		{"worktree", "List and remove the git worktrees of sessions.", func() any { return new(sessions.WorktreeCmd) }, ""},
		{"actions", "List what agents ask and nobody answered yet.", func() any { return new(permission.ActionsCmd) }, "listActions"},
		{"approve", "Allow what an agent asks for.", func() any { return new(permission.ApproveCmd) }, "respond_action"},
		{"deny", "Deny what an agent asks for.", func() any { return new(permission.DenyCmd) }, "respond_action"},
		{"answer", "Answer an agent's question.", func() any { return new(permission.AnswerCmd) }, "respond_action"},
		{"budget", "Show and change what a session may spend.", func() any { return new(sessions.BudgetCmd) }, ""},
		{"quota", "Show what quotas have left, and until when.", func() any { return new(sessions.QuotaCmd) }, "getQuotas"},
		{"grants", "List what people allowed beyond single calls, and take it back.", func() any { return new(permission.GrantsCmd) }, ""},
		{"events", "Print the facts of a session, or follow them.", func() any { return new(sessions.EventsCmd) }, "read_sessions_id_events,read_stream"},
		{"stats", "Count how turns end, how tools and models fare, what was decided and used.", func() any { return new(sessions.StatsCmd) }, ""},
		{"top", "Show which sessions are driven and what their programs take, again and again.", func() any { return new(sessions.TopCmd) }, "list_running_sessions"},
		{"agents", "Agents: those that a session's agents started, and those that are kept as files.", func() any { return new(sessions.AgentsCmd) }, ""},
		{"tasks", "Plan tasks, join them, start them and see how they stand.", func() any { return new(sessions.TasksCmd) }, ""},
		{"process", "List the programs that sessions run, read their output, write to them, end them.", func() any { return new(sessions.ProcessCmd) }, ""},
		{"outputs", "List what programs and tools printed and the store keeps, and let it go.", func() any { return new(machine.OutputsCmd) }, ""},
		{"attach", "Follow a program and type on it, through the server. Ctrl-P Ctrl-Q detaches.", func() any { return new(sessions.AttachCmd) }, "attach"},
		{"tool", "List and show tools, and run one call without a model.", func() any { return new(work.ToolCmd) }, ""},
		{"trust", "Say which files of a workspace count, as they are now.", func() any { return new(permission.TrustCmd) }, "list_trust,trust_file,revoke_trust"},
		{"mcp", "List, show and try MCP servers, accept what they say of their tools, and be one.", func() any { return new(permission.MCPCmd) }, ""},
		{"models", "List and show the models that are known: context, abilities, prices.", func() any { return new(machine.ModelsCmd) }, ""},
		{"policy", "Look at what decides whether a call may run.", func() any { return new(permission.PolicyCmd) }, ""},
		{"login", "Keep a vendor's key, after trying it.", func() any { return new(machine.LoginCmd) }, ""},
		{"logout", "Forget a vendor's key.", func() any { return new(machine.LogoutCmd) }, ""},
		{"config", "Show and change the settings, and see where they come from.", func() any { return new(machine.ConfigCmd) }, ""},
		{"secret", "Keep keys in an encrypted file, list and forget them.", func() any { return new(machine.SecretCmd) }, ""},
		{"redact", "Copy a text without the secrets in it, or say what is found.", func() any { return new(machine.RedactCmd) }, ""},
		{"templates", "List, show and fill templates for prompts.", func() any { return new(work.TemplatesCmd) }, ""},
		{"why", "Say from the facts why something happened.", func() any { return new(sessions.WhyCmd) }, "why"},
		{"export", "Write a session into a file: everything, its messages, or the standard's forms.", func() any { return new(sessions.ExportCmd) }, "exportSession"},
		{"import", "Bring sessions into this store: exported ones, or transcripts of other agents.", func() any { return new(sessions.ImportCmd) }, "import_session"},
		{"store", "Look after the store: its size, backups, retention.", func() any { return new(machine.StoreCmd) }, ""},
		{"views", "Look after what is folded from the log for lists and searches.", func() any { return new(machine.ViewsCmd) }, ""},
		{"verify", "Check the whole store: every hash, every stream, every blob.", func() any { return new(machine.VerifyCmd) }, ""},
		{"demo", "Kill an agent in the middle and watch it go on. Offline, no key.", func() any { return new(demoCmd) }, ""},
		{"eval", "Play scenarios in throw-away workspaces and hold what comes of them against what is expected.", func() any { return new(evalCmd) }, ""},
		{"bench", "Run many sessions at once and print how fast they went.", func() any { return new(work.BenchCmd) }, ""},
		{"serve", "Serve the runtime over HTTP: commands, reads, streams, for everybody with a token.", func() any { return new(serve.ServeCmd) }, ""},
		{"console", "Show where the page of the server is: what runs, what waits for an answer.", func() any { return new(serve.ConsoleCmd) }, ""},
		{"token", "Make, list and revoke the tokens of the server.", func() any { return new(serve.TokenCmd) }, ""},
		{"doctor", "Say what this machine gives and what is missing.", func() any { return new(machine.DoctorCmd) }, ""},
		{"api", "Perform a command or read of the HTTP interface on this store, without a server.", func() any { return &apiCmd{build: a.Build} }, ""},
		{"version", "Print the version.", func() any { return new(machine.VersionCmd) }, ""},
		{"completion", "Print a completion script for a shell.", func() any { return new(completionCmd) }, ""},
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
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	}
	all := topCommands(a)
	whole := slices.Contains(args, "completion") || !slices.ContainsFunc(all, func(c topCommand) bool { return slices.Contains(args, c.name) })
	for _, c := range all {
		node := any(new(struct{}))
		if whole || slices.Contains(args, c.name) {
			node = c.node()
		}
		options = append(options, kong.DynamicCommand(c.name, c.help, "", node, fmt.Sprintf("use:%q", c.use)))
	}
	return kong.New(f, options...)
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

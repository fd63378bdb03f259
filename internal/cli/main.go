// Package cli is the program: it reads arguments and environment, wires a store,
// an engine, tools and a model, runs one command and prints the result. It
// promises an exit code by kind of end, an error that names the next command,
// and that no text of a model or a tool reaches a terminal unescaped; the only
// exception is the terminal of a program that the user is attached to.
// It decides nothing about turns: that is the deciders' work.
//
// main.go has the grammar, config.go the settings, wire.go what exists; each
// command is a file.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/trust"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/workspace/gitsafe"
)

// Sys is what the program gets from the operating system.
type Sys struct {
	term.Env
	Dir     string            // the working directory
	Point   func(kind string) // passed to the engine; for crash tests
	Formats []eval.Format     // of scenarios, besides our own
}

// grammar is the command line.
type grammar struct {
	Place
	JSON bool `name:"json" help:"Print JSON, one object in a line."`

	Run        runCmd        `cmd:"" help:"Give an agent something to do and see it through."`
	Sessions   sessionsCmd   `cmd:"" help:"List, show, resume and interrupt sessions."`
	Queue      queueCmd      `cmd:"" help:"List the turns of a session that wait, and change their order."`
	Fork       forkCmd       `cmd:"" help:"Begin a new session with the history of another, up to a turn."`
	Rollback   rollbackCmd   `cmd:"" help:"Take a session back to the end of a turn: its conversation and its files."`
	Undo       undoCmd       `cmd:"" help:"Take back what the last turns did to files; the conversation stays."`
	Worktree   worktreeCmd   `cmd:"" help:"List and remove the git worktrees of sessions."`
	Approve    approveCmd    `cmd:"" help:"Allow what an agent asks for."`
	Deny       denyCmd       `cmd:"" help:"Deny what an agent asks for."`
	Answer     answerCmd     `cmd:"" help:"Answer an agent's question."`
	Grants     grantsCmd     `cmd:"" help:"List what people allowed beyond single calls, and take it back."`
	Events     eventsCmd     `cmd:"" help:"Print the facts of a session, or follow them."`
	Stats      statsCmd      `cmd:"" help:"Count how turns end, how tools and models fare, what was decided and used."`
	Top        topCmd        `cmd:"" help:"Show which sessions are driven and what their programs take, again and again."`
	Process    processCmd    `cmd:"" help:"List the programs that sessions run, read their output, write to them, end them."`
	Outputs    outputsCmd    `cmd:"" help:"List what programs and tools printed and the store keeps, and let it go."`
	Attach     attachCmd     `cmd:"" help:"Follow a program and type on it, through the server. Ctrl-P Ctrl-Q detaches."`
	Tool       toolCmd       `cmd:"" help:"List and show tools, and run one call without a model."`
	Trust      trustCmd      `cmd:"" help:"Say which files of a workspace count, as they are now."`
	Models     modelsCmd     `cmd:"" help:"List and show the models that are known: context, abilities, prices."`
	Policy     policyCmd     `cmd:"" help:"Look at what decides whether a call may run."`
	Config     configCmd     `cmd:"" help:"Show the settings and where they come from."`
	Secret     secretCmd     `cmd:"" help:"Keep keys in an encrypted file, list and forget them."`
	Templates  templatesCmd  `cmd:"" help:"List, show and fill templates for prompts."`
	Why        whyCmd        `cmd:"" help:"Say from the facts why something happened."`
	Export     exportCmd     `cmd:"" help:"Write a session into a file: everything, its messages, or the standard's forms."`
	Import     importCmd     `cmd:"" help:"Bring sessions into this store: exported ones, or transcripts of other agents."`
	Store      storeCmd      `cmd:"" name:"store" help:"Look after the store: its size, backups, retention."`
	Views      viewsCmd      `cmd:"" help:"Look after what is folded from the log for lists and searches."`
	Verify     verifyCmd     `cmd:"" help:"Check the whole store: every hash, every stream, every blob."`
	Demo       demoCmd       `cmd:"" help:"Kill an agent in the middle and watch it go on. Offline, no key."`
	Eval       evalCmd       `cmd:"" help:"Play scenarios in throw-away workspaces and hold what comes of them against what is expected."`
	Bench      benchCmd      `cmd:"" help:"Run many sessions at once and print how fast they went."`
	Serve      serveCmd      `cmd:"" help:"Serve the runtime over HTTP: commands, reads, streams, for everybody with a token."`
	Token      tokenCmd      `cmd:"" help:"Make, list and revoke the tokens of the server."`
	Doctor     doctorCmd     `cmd:"" help:"Say what this machine gives and what is missing."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
}

// Place is where to work; every command takes it.
type Place struct {
	Store     string `placeholder:"DIR" help:"Where sessions are kept. [$$BELAY_STORE]"`
	Workspace string `placeholder:"DIR" help:"What to work on; the root of the git repository, else the current directory. [$$BELAY_WORKSPACE]"`
}

// app is one run of the program.
type app struct {
	Sys
	Place
	kong   *kong.Kong
	models models
	making sync.Once
	tools  []tool.Tool // made once: use builtin()

	mu      sync.Mutex
	places  map[string]*place // the workspaces that were read: use place()
	here    *place            // the one that was entered last: use current()
	opened  store.Store       // the open store
	bookMu  sync.Mutex
	trusted *trust.Book       // as it was read: use book()
	said    []string          // of what doesn't count
	origin  map[string]string // of worktrees: the workspace they were made of
	hosts   config.Hosts
	serves  bool // it is a tenant of a server

	watches map[string]*gitsafe.Watch // by workspace: use inspect

	hiding sync.Once
	hidden *secret.Scrubber // use secrets()

	extra        []tool.Tool                         // tools besides the built-in ones; an evaluation adds them
	wrapProvider func(model.Provider) model.Provider // stands between the engine and a provider; nil is nothing
	wrapStore    func(store.Store) store.Store       // stands between the program and its store; nil is nothing

	houses []*wiring // of the tenants of a server
}

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, sys Sys) int {
	process.KeepInherited()
	a := &app{Sys: sys}
	return a.main(ctx, args)
}

func (a *app) main(ctx context.Context, args []string) int {
	if a.Now == nil {
		a.Now = time.Now
	}
	if a.IsTerminal == nil {
		a.IsTerminal = func(any) bool { return false }
	}
	exit, err := a.dispatch(ctx, args)
	if err != nil {
		exit = a.Fail(a.explain(err))
	}
	return exit
}

// explain makes every error one with a code and a next command, without secrets.
func (a *app) explain(err error) *belay.Error { return a.Explain(err, a.secrets().String) }

func (a *app) dispatch(ctx context.Context, args []string) (int, error) {
	g := new(grammar)
	helped := false
	k, err := newParser(g, a.Sys, func(int) { helped = true })
	if err != nil {
		return 0, err
	}
	a.kong = k
	if err := checkArgs(args); err != nil {
		return 0, err
	}
	if len(args) == 0 {
		a.takePlace(g)
		defer tidy()()
		return a.overview(ctx)
	}
	kctx, err := k.Parse(args)
	if helped {
		return belay.ExitOK, nil
	}
	a.takePlace(g)
	if err != nil {
		a.JSON = slices.Contains(args, "--json") // the parser sets nothing when it fails
		return 0, usage(err)
	}
	defer tidy()()
	return a.do(ctx, kctx.Selected().Target.Addr().Interface(), kctx.Selected().FullPath())
}

// takePlace takes over what the command line and the environment say about the store,
// the workspace and the output.
func (a *app) takePlace(g *grammar) {
	a.Place, a.JSON = g.Place, g.JSON
	a.placeFromEnv()
	if a.Store != "" && a.Store != a.Getenv("BELAY_STORE") {
		a.StoreFlag = " --store " + a.environment().Abs(a.Store)
	}
}

func newParser(g *grammar, sys Sys, exit func(int)) (*kong.Kong, error) {
	return kong.New(g,
		kong.Name("belay"),
		kong.Description("Runs agents: every step is recorded before it happens, every action is governed, nothing accepted is lost.\n\n"+
			"Exit codes: 0 completed, 1 failed, 2 usage, 3 waits for a person, 4 denied, 5 budget, 6 timed out, 7 lost, 8 store, 130 cancelled."),
		kong.Writers(sys.Out, sys.Err),
		kong.Exit(exit),
		kong.PostBuild(addSettingFlags),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
}

// checkArgs refuses what no command can mean: it would be recorded.
func checkArgs(args []string) error {
	for i, s := range args {
		where := fmt.Sprintf("argument %d", i+1)
		if !utf8.ValidString(s) {
			return belay.Errorf(belay.CodeUsage, "it is not UTF-8 text").At(where).WithHint("put the text into a file and use: belay run - <FILE")
		}
		if strings.ContainsRune(s, 0) {
			return belay.Errorf(belay.CodeUsage, "it contains a NUL character").At(where).WithHint("leave the character out")
		}
	}
	return nil
}

// usage turns what the parser says into an error with a next command.
func usage(err error) error {
	path := "belay"
	if e, ok := errors.AsType[*kong.ParseError](err); ok && e.Context != nil && e.Context.Selected() != nil {
		path = e.Context.Selected().FullPath()
	}
	return belay.Errorf(belay.CodeUsage, "%s", err.Error()).WithHint("%s --help", path)
}

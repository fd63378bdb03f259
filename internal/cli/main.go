// Package cli is the program: it reads arguments and environment, wires a store,
// an engine, tools and a model, runs one command and prints the result. It
// promises an exit code by kind of end, an error that names the next command,
// and that no text of a model or a tool reaches a terminal unescaped; the only
// exception is the terminal of a program that the user is attached to.
// It decides nothing about turns: that is the deciders' work.
//
// main.go has the grammar, place.go what counts in a workspace, wire.go what
// exists; each command is a file.
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
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/host"
	"github.com/belay-run/belay/internal/builtin"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// Sys is what the program gets from the operating system.
type Sys struct {
	term.Env
	Dir     string            // the working directory
	Point   func(kind string) // passed to the engine; for crash tests
	Formats []eval.Format     // of scenarios, besides our own
	More    []app.Command     // commands of the table besides the built-in ones
}

// flags are what every command takes.
type flags struct {
	Place
	JSON bool `name:"json" help:"Print JSON, one object in a line."`
}

// Place is where to work; every command takes it.
type Place struct {
	Store     string `placeholder:"DIR" help:"Where sessions are kept. [$$BELAY_STORE]"`
	Workspace string `placeholder:"DIR" help:"What to work on; the root of the git repository, else the current directory. [$$BELAY_WORKSPACE]"`
}

// program is one run of the program.
type program struct {
	Sys
	Place
	*host.Host // made when the command line is known
	kong       *kong.Kong

	said   []string // of what doesn't count
	serves bool     // it is a tenant of a server
	tenant string

	hiding sync.Once
	hidden *secret.Scrubber // use secrets()

	extra        []tool.Tool                         // tools besides the built-in ones; an evaluation adds them
	wrapProvider func(model.Provider) model.Provider // stands between the engine and a provider; nil is nothing
	wrapStore    func(store.Store) store.Store       // stands between the program and its store; nil is nothing
}

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, sys Sys) int {
	process.KeepInherited()
	a := &program{Sys: sys}
	return perform(ctx, a, args)
}

func perform(ctx context.Context, a *program, args []string) int {
	if a.Now == nil {
		a.Now = time.Now
	}
	if a.IsTerminal == nil {
		a.IsTerminal = func(any) bool { return false }
	}
	exit, err := dispatch(ctx, a, args)
	if err != nil {
		exit = a.Fail(a.explain(err))
	}
	return exit
}

// explain makes every error one with a code and a next command, without secrets.
func (a *program) explain(err error) *belay.Error { return a.Explain(err, a.secrets().String) }

func dispatch(ctx context.Context, a *program, args []string) (int, error) {
	g := new(flags)
	helped := false
	k, err := parser(a, g, args, func(int) { helped = true })
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
		return overview(ctx, a)
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
	return do(ctx, a, kctx.Selected().Target.Addr().Interface(), kctx.Selected().FullPath())
}

// takePlace takes over what the command line and the environment say about the store,
// the workspace and the output.
func (a *program) takePlace(g *flags) {
	a.Place, a.JSON = g.Place, g.JSON
	a.placeFromEnv()
	a.Host = a.newHost()
	if a.Store != "" && a.Store != a.Getenv("BELAY_STORE") {
		a.StoreFlag = " --store " + a.environment().Abs(a.Store)
	}
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

// commands is the table of commands.
func commands(a *program) []app.Command { return append(builtin.Commands(), a.More...) }

// Package cli is the program: it reads arguments and environment, runs one command
// and prints the result. It promises an exit code by kind of end, an error that names
// the next command, and that no text of a model or a tool reaches a terminal
// unescaped; the only exception is the terminal of a program that the user is attached
// to. It decides nothing about turns: that is the deciders' work.
//
// grammar.go has the commands; they are in the folders below, by what they are about.
// Here are those that run the program itself.
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
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/machine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/store"
)

// do runs a node of the grammar; one that only holds others is refused under the
// path that was typed.
func do(ctx context.Context, a *command.Program, node any, path string) (int, error) {
	switch c := node.(type) {
	case command.Command:
		return c.Run(ctx, a)
	case command.Reader:
		return a.Reading(ctx, func(st store.Store) (int, error) { return c.Read(ctx, a, st) })
	case command.Keeper:
		return a.Keeping(ctx, func(db store.Admin) (int, error) { return c.Keep(ctx, a, db) })
	case command.Orderer:
		return a.Ordering(ctx, func(r *app.Runtime) (int, error) { return c.Order(ctx, a, r) })
	}
	return 0, belay.Errorf(belay.CodeUsage, "%s needs a command", path).WithHint("%s --help", path)
}

// withAgents are the commands that perform no row of the table and run agents all the same.
var withAgents = []string{"belay agents test", "belay bench run", "belay demo", "belay eval", "belay serve"}

// mayRunAgents refuses a process that an agent's program started a command because of which
// an agent works. Every command line passes here.
func mayRunAgents(a *command.Program, node *kong.Node) error {
	runs := slices.Contains(withAgents, node.FullPath())
	for _, use := range strings.Split(node.Tag.Get("use"), ",") {
		row := app.Find(a.Build.Commands, use)
		runs = runs || row != nil && row.Runs
	}
	if !runs {
		return nil
	}
	return notBelow(a)
}

// notBelow refuses a process that an agent's program started.
func notBelow(a *command.Program) error {
	if a.Getenv(process.Parent) == "" {
		return nil
	}
	return belay.Errorf(belay.CodeUsage, "a program of an agent runs no agents").At(process.Parent).
		WithHint("the tool spawn_agent starts one; a person who means it runs: env -u %s belay …", process.Parent)
}

// tidy removes what processes left that were killed: folders that stood in for
// protected names at once, and programs while the command runs, because looking at
// all processes takes a few milliseconds. The function that it returns waits.
func tidy() (wait func()) {
	sandbox.Clear()
	var strays sync.WaitGroup
	strays.Go(func() { process.EndStrays() })
	return strays.Wait
}

// Sys is what the program gets from the operating system.
type Sys = command.Sys

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, sys Sys) int {
	process.KeepInherited()
	a := &command.Program{Sys: sys}
	return perform(ctx, a, args)
}

func perform(ctx context.Context, a *command.Program, args []string) int {
	a.Build = build(a.Sys)
	if a.Now == nil {
		a.Now = time.Now
	}
	if a.IsTerminal == nil {
		a.IsTerminal = func(any) bool { return false }
	}
	exit, err := dispatch(ctx, a, args)
	if err != nil {
		e := a.Explained(err)
		if len(args) == 0 || args[0] != "api" {
			e.Hint = commandsIn(a, e.Hint)
		}
		exit = a.Fail(e)
	}
	return exit
}

func dispatch(ctx context.Context, a *command.Program, args []string) (int, error) {
	if len(args) > 0 && args[0] == "--version" {
		args = append([]string{"version"}, args[1:]...)
	}
	args = chatted(a, args)
	g := new(command.Flags)
	helped := false
	k, err := parser(a, g, args, func(int) { helped = true })
	if err != nil {
		return 0, err
	}
	a.Kong = k
	if err := checkArgs(args); err != nil {
		return 0, err
	}
	if len(args) == 0 {
		a.TakePlace(g)
		defer tidy()()
		return overview(ctx, a)
	}
	kctx, err := k.Parse(args)
	if helped {
		return belay.ExitOK, nil
	}
	a.TakePlace(g)
	if err != nil {
		a.JSON = slices.Contains(args, "--json") // the parser sets nothing when it fails
		return 0, usage(k, args, err)
	}
	defer tidy()()
	if err := mayRunAgents(a, kctx.Selected()); err != nil {
		return 0, err
	}
	return do(ctx, a, kctx.Selected().Target.Addr().Interface(), kctx.Selected().FullPath())
}

// chatted puts the command chat before arguments that mean a conversation: on a
// terminal none at all, a text with blanks, or options of chat without a command; and
// the command print before those with -p.
func chatted(a *command.Program, args []string) []string {
	if len(args) == 0 {
		if a.IsTerminal(a.In) && a.IsTerminal(a.Out) {
			return []string{"chat"}
		}
		return args
	}
	all := topCommands(a)
	named := func(arg string) bool {
		return slices.ContainsFunc(all, func(c topCommand) bool { return c.name == arg })
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return arg == "-p" || arg == "--print" }); i >= 0 && !slices.ContainsFunc(args[:i], named) {
		return append([]string{"print"}, args...)
	}
	for i, arg := range args {
		switch {
		case arg == "-h" || arg == "--help" || named(arg):
			return args
		case (arg == "-r" || arg == "--resume") && (i == len(args)-1 || strings.HasPrefix(args[i+1], "-")):
			args = slices.Replace(slices.Clone(args), i, i+1, "--resume=")
		}
	}
	if strings.HasPrefix(args[0], "-") || strings.ContainsAny(args[0], " \n") {
		return append([]string{"chat"}, args...)
	}
	return args
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
func usage(k *kong.Kong, args []string, err error) error {
	path, text := "belay", err.Error()
	if e, ok := errors.AsType[*kong.ParseError](err); ok && e.Context != nil && e.Context.Selected() != nil {
		path = e.Context.Selected().FullPath()
	}
	if flag, value, ok := dashed(text); ok {
		return belay.Errorf(belay.CodeUsage, "what begins with - is taken for a flag").At(flag).WithHint("%s=%s", flag, value)
	}
	hint := path + " --help"
	if path == "belay" && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		for _, leaf := range k.Model.Leaves(true) {
			if leaf.Name == args[0] && leaf.Parent != nil && leaf.Parent.Type == kong.CommandNode {
				hint = leaf.FullPath()
				break
			}
		}
	}
	return belay.Errorf(belay.CodeUsage, "%s", text).WithHint("%s", hint)
}

// dashed are the flag and the value that the parser refused because the value begins
// with a hyphen.
func dashed(text string) (flag, value string, ok bool) {
	flag, rest, ok := strings.Cut(text, ": expected ")
	_, rest, value2 := strings.Cut(rest, " but got \"-")
	value, _, closed := strings.Cut(rest, "\"")
	return flag, "-" + value, ok && value2 && closed
}

// build is what this build has.
func build(sys Sys) command.Build {
	return command.Build{Commands: append(builtin.Commands(), sys.More...), Reads: builtin.Reads(), HasStore: builtin.HasStore, NewHost: func(a *command.Program) command.Host { return newHost(a) }, Confined: confined, Findings: machine.Findings}
}

func confined(a *command.Program) command.Confinement {
	return builtin.Confinement{Env: a.Environment(), StoreDir: a.StoreDir}
}

func newHost(a *command.Program) *host.Host {
	h := builtin.NewHost(builtin.Options{Env: a.Environment(), Now: a.Now, Secrets: a.Secrets(), Principal: a.Principal(), Serves: a.Serves, Tenant: a.Tenant, Interactive: a.Interactive(),
		StoreDir: a.StoreDir, Say: a.SayIgnored, Point: a.Point, Tools: a.Extra, WrapStore: a.WrapStore})
	h.Models().Wrap = func(p model.Provider) model.Provider {
		if a.WrapProvider == nil {
			return p
		}
		return a.WrapProvider(p)
	}
	return h
}

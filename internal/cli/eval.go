package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	procs "runtime"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

type evalCmd struct {
	Paths    []string `arg:"" name:"path" help:"Scenarios, or directories of them."`
	Only     string   `name:"run" placeholder:"REGEXP" help:"Only those whose category/id or tag matches."`
	Parallel int      `short:"p" placeholder:"N" help:"How many run at the same time; the number of processors."`
	Keep     bool     `help:"Keep each workspace and store, and say where they are."`
	JUnit    string   `name:"junit" placeholder:"FILE" help:"Also write the results as JUnit XML."`
	List     bool     `help:"List the scenarios and run none."`
}

// Player plays scenarios with this program: each command line in this process,
// without standard input, terminal and signals.
func Player() eval.Player {
	return eval.Player{
		Program: func(ctx context.Context, c eval.Command) int {
			a := &command.Program{Sys: command.Sys{Env: term.Env{Out: c.Stdout, Err: c.Stderr, Environ: c.Env}, Dir: c.Dir}, Extra: c.Tools, WrapStore: c.Store}
			return perform(ctx, a, c.Args)
		},
		Open: func(ctx context.Context, dir string) (store.Store, error) {
			return newHost(&command.Program{Sys: Sys{Env: term.Env{Now: time.Now}}, Location: command.Location{Store: dir}}).Open(ctx, false)
		},
		Env: os.Environ(), Now: time.Now,
	}
}

func (c *evalCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	some, err := c.scenarios(a)
	if err != nil {
		return 0, err
	}
	if c.List {
		return c.list(a, some), nil
	}
	parallel := c.Parallel
	if parallel <= 0 {
		parallel = procs.GOMAXPROCS(0)
	}
	return played(ctx, a, some, parallel, c.Keep, func(results []eval.Result) error { return c.junit(a, results) })
}

// played plays scenarios and prints what came of them. done gets the results at the end; it
// may be nil.
func played(ctx context.Context, a *command.Program, some []*eval.Scenario, parallel int, keep bool, done func([]eval.Result) error) (int, error) {
	ctx, release := a.UntilSignal(ctx)
	defer release()
	if done == nil {
		done = func([]eval.Result) error { return nil }
	}
	begun := a.Now()
	var results []eval.Result
	var sum eval.Summary
	p := Player()
	p.Env, p.Now, p.Keep = a.Environ, a.Now, keep
	err := p.All(ctx, some, parallel, func(r eval.Result) {
		results = append(results, r)
		sum.Add(r)
		evaluated(&a.Env, r)
	})
	if err != nil {
		if ctx.Err() != nil {
			err = belay.Errorf(belay.CodeInternal, "the evaluation was stopped after %s: %v", term.Plural(sum.Total, "scenario"), err).WithHint("begin it again")
			return belay.ExitCancelled, errors.Join(err, done(results))
		}
		return 0, err
	}
	sum.MS = a.Now().Sub(begun).Milliseconds()
	summed(&a.Env, sum)
	if err := done(results); err != nil {
		return 0, err
	}
	if sum.Failed > 0 {
		return belay.ExitFailed, nil
	}
	return belay.ExitOK, nil
}

// scenarios reads all of them before any is run.
func (c *evalCmd) scenarios(a *command.Program) ([]*eval.Scenario, error) {
	pattern, err := regexp.Compile(c.Only)
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%q is no regular expression: %v", c.Only, err).At("--run").WithHint("--run 'endings/|edit-'")
	}
	var paths []string
	for _, p := range c.Paths {
		paths = append(paths, a.Environment().Abs(p))
	}
	all, err := eval.Load(paths, a.Formats...)
	if err != nil {
		return nil, err
	}
	for _, s := range all { // people know files from where they are
		if rel, err := filepath.Rel(a.Dir, s.File); err == nil && filepath.IsLocal(rel) {
			s.File = rel
		}
	}
	some := eval.Pick(all, pattern)
	if len(some) == 0 {
		return nil, belay.Errorf(belay.CodeUsage, "none of %s matches %q", term.Plural(len(all), "scenario"), c.Only).At("--run").WithHint("belay eval --list PATH")
	}
	return some, nil
}

func (c *evalCmd) list(a *command.Program, some []*eval.Scenario) int {
	for _, s := range some {
		a.Say(struct {
			ID       string   `json:"id"`
			Title    string   `json:"title,omitempty"`
			Category string   `json:"category"`
			Tags     []string `json:"tags,omitempty"`
			File     string   `json:"file"`
			Line     int      `json:"line"`
		}{s.ID, s.Title, s.Category, s.Tags, s.File, s.Line}, "%s/%s  %s", s.Category, s.ID, term.Line(s.Title))
	}
	return belay.ExitOK
}

// junit writes the results beside what was printed.
func (c *evalCmd) junit(a *command.Program, results []eval.Result) error {
	if c.JUnit == "" {
		return nil
	}
	f, err := os.Create(a.Environment().Abs(c.JUnit))
	if err != nil {
		return belay.Errorf(belay.CodeUsage, "%s: %s", c.JUnit, files.Reason(err)).At("--junit").WithHint("name a file that can be written")
	}
	return errors.Join(eval.JUnit(f, results), f.Close())
}

// evaluated prints a result.
func evaluated(e *term.Env, r eval.Result) {
	e.Show(r.Line(), func() {
		fmt.Fprintf(e.Out, "%s  %s/%s  %s\n", r.Status(), r.Scenario.Category, r.Scenario.ID, term.Millis(r.Took.Milliseconds()))
		for _, f := range r.Failures {
			fmt.Fprintln(e.Out, "      "+strings.ReplaceAll(term.Text(f), "\n", "\n      "))
		}
		if r.Kept != nil {
			fmt.Fprintf(e.Out, "      kept: %s; belay sessions list --all --store %s\n", r.Kept.Workspace, r.Kept.Store)
		}
	})
}

func summed(e *term.Env, s eval.Summary) {
	e.Show(struct {
		Summary eval.Summary `json:"summary"`
	}{s}, func() {
		fmt.Fprintf(e.Out, "%d of %s passed, %d failed, in %s\n", s.Passed, term.Plural(s.Total, "scenario"), s.Failed, term.Millis(s.MS))
	})
}

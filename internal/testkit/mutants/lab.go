package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// The outcome of a mutant. Only a caught one is as it should be.
const (
	caught   = "caught"
	survived = "SURVIVED"
	misfit   = "MISFIT" // its tests fail without it, or there are none
)

// A suite may run this long, and under a mutant five times as long as without, or
// a while where that is longer. A program that hangs is broken too, and noticed by it.
const (
	longest = 2 * time.Minute
	awhile  = 10 * time.Second
)

// tries is how often a mutant's suite runs before it has survived: some draw
// what they look at by chance.
const tries = 2

// All mutants are compiled into the same program. Which of them is on is a text
// in the program's file, that a copy of it has replaced: it holds for every
// process of a test, whatever environment and folder it has.
const (
	brokenVar  = "brokenLaw"
	brokenFunc = "brokenOr"
	none       = "broken law: none"
)

// idOf is the text that is in the program when a mutant is on, as long as none.
func idOf(n int) string { return fmt.Sprintf("broken law: %04d", n) }

const onePackage = `package %s

var ` + brokenVar + ` = %q

func ` + brokenFunc + `[T any](id string, broken, whole T) T {
	if ` + brokenVar + ` == id {
		return broken
	}
	return whole
}
`

type verdict struct {
	what   string
	again  int // it was caught after so many runs in which nothing noticed
	output string
	took   time.Duration
}

// lab builds and runs tests; dir is scratch space.
type lab struct {
	*tree
	dir      string
	binaries map[string]string // by package directory
	took     sync.Map          // how long a suite takes without a mutant
}

// overlay weaves all mutants into the tree and writes the list that the go
// command reads.
func (l *lab) overlay(all []mutant) (string, error) {
	files := map[*file][]insertion{}
	for i, m := range all {
		for _, e := range m.edits {
			in, err := l.apply(e, idOf(i))
			if err != nil {
				return "", fmt.Errorf("%s: %w", m.breaks, err)
			}
			files[in.file] = append(files[in.file], in)
		}
	}
	replace := map[string]string{}
	add := func(name, text string) error {
		full, err := filepath.Abs(filepath.Join(l.root, name))
		if err != nil {
			return err
		}
		replace[full] = filepath.Join(l.dir, strings.ReplaceAll(name, "/", "_"))
		return os.WriteFile(replace[full], []byte(text), 0o600)
	}
	for f, in := range files {
		if err := add(f.path, woven(f.src, in)); err != nil {
			return "", err
		}
		if err := add(path.Join(path.Dir(f.path), "brokenlaw.go"), fmt.Sprintf(onePackage, f.ast.Name.Name, none)); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(struct{ Replace map[string]string }{replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(l.dir, "overlay.json")
	return list, os.WriteFile(list, b, 0o600)
}

// build compiles the tests of the suites' packages, each once. all are woven in,
// also those that aren't tried, so that the next run finds them compiled.
func (l *lab) build(ctx context.Context, all []mutant, suites []suite) error {
	overlay, err := l.overlay(all)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(l.root, "go.mod"))
	if err != nil {
		return err
	}
	module := strings.Fields(string(mod))[1]
	l.binaries = map[string]string{}
	var rounds []map[string]string // packages by their binary's name, as the go command chooses it
	for _, s := range suites {
		dir, err := l.find(s.pkg)
		if err != nil {
			return err
		}
		if l.binaries[dir] != "" {
			continue
		}
		name := path.Base(path.Join(module, dir)) + ".test"
		n := slices.IndexFunc(rounds, func(r map[string]string) bool { return r[name] == "" })
		if n < 0 {
			n, rounds = len(rounds), append(rounds, map[string]string{})
		}
		rounds[n][name] = "./" + dir
		l.binaries[dir] = filepath.Join(l.dir, fmt.Sprint(n), name)
	}
	for n, r := range rounds {
		args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", filepath.Join(l.dir, fmt.Sprint(n)) + "/"}
		build := exec.CommandContext(ctx, "go", append(args, slices.Sorted(maps.Values(r))...)...)
		build.Dir = l.root
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("the program with all mutants doesn't compile: %w\n%s", err, out)
		}
	}
	return nil
}

// sound holds a suite against the tree as it is: one that fails without a
// mutant, or runs nothing, can't tell anything about one.
func (l *lab) sound(ctx context.Context, s suite) string {
	began := time.Now()
	out, err := l.test(ctx, s, none, longest)
	if err != nil { // a test that fails now and then is found by the runs of all tests
		out, err = l.test(ctx, s, none, longest)
	}
	l.took.Store(s, time.Since(began))
	switch {
	case err != nil:
		return fmt.Sprintf("  %s -run %s fails without any mutant: %v\n%s", s.pkg, s.run, err, lastLines(out, 8))
	case !ran(out, s.run):
		return fmt.Sprintf("  %s -run %s: no test has that name\n", s.pkg, s.run)
	}
	return ""
}

// ran reports whether a test as deep as the pattern began.
func ran(out, pattern string) bool {
	deep := strings.Repeat(`[^\n/]+/`, strings.Count(pattern, "/"))
	return regexp.MustCompile(`(?m)^=== RUN +` + deep + `\S`).MatchString(out)
}

// try runs a mutant's suite with the mutant on, until it fails.
func (l *lab) try(ctx context.Context, n int, s suite) (v verdict) {
	began := time.Now()
	defer func() { v.took = time.Since(began) }()
	within := awhile
	if took, ok := l.took.Load(s); ok {
		within = max(within, 5*took.(time.Duration))
	}
	for again := range tries {
		out, err := l.test(ctx, s, idOf(n), within)
		if err != nil {
			return verdict{what: caught, again: again, output: out}
		}
		v = verdict{what: survived, output: lastLines(out, 8)}
	}
	return v
}

// lastLines is the end of a text, indented.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	lines = lines[max(0, len(lines)-n):]
	return "  " + strings.Join(lines, "\n  ") + "\n"
}

// test runs a suite in a copy of its package's tests in which a mutant is on.
func (l *lab) test(ctx context.Context, s suite, id string, within time.Duration) (string, error) {
	dir, err := l.find(s.pkg)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(l.binaries[dir])
	if err != nil {
		return "", err
	}
	if id != none {
		b = bytes.ReplaceAll(b, []byte(none), []byte(id))
	}
	copied, err := os.MkdirTemp(l.dir, "run-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(copied)
	bin := filepath.Join(copied, filepath.Base(l.binaries[dir]))
	if err := os.WriteFile(bin, b, 0o700); err != nil {
		return "", err
	}
	run := exec.CommandContext(ctx, bin, "-test.run", s.run, "-test.timeout", within.String(), "-test.failfast", "-test.v")
	run.Dir = filepath.Join(l.root, dir)
	out, err := run.CombinedOutput()
	return string(out), err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// The outcome of a mutant. Only a caught one is as it should be.
const (
	caught   = "caught"
	survived = "SURVIVED"
	misfit   = "MISFIT" // it doesn't apply, doesn't compile, or its tests fail without it
)

// timeout is how long one suite may run under a mutant. A program that hangs is
// broken too, and noticed by it.
const timeout = "30s"

// tries is how often a mutant's suites run before it has survived: some draw
// what they look at by chance.
const tries = 2

type verdict struct {
	what   string
	again  int    // it was caught after so many runs in which nothing noticed
	by     string // the suite that noticed
	output string
	took   time.Duration
}

// lab builds and runs tests; root is where the module is, dir is scratch space.
type lab struct {
	root, dir string
	unsound   map[suite]string // suites that can't tell anything, and why
}

// sound holds the suites against the tree as it is: one that fails without a
// mutant, or runs nothing, can't tell anything about one.
func (l lab) sound(ctx context.Context, all []mutant) map[suite]string {
	seen := map[suite]bool{}
	unsound := map[suite]string{}
	for _, m := range all {
		for _, s := range m.caught {
			if seen[s] {
				continue
			}
			seen[s] = true
			binary := filepath.Join(l.dir, fmt.Sprintf("sound-%d.test", len(seen)))
			out, err := l.test(ctx, s, "", binary)
			if err != nil { // a test that fails now and then is found by the runs of all tests
				out, err = l.test(ctx, s, "", binary)
			}
			switch {
			case err != nil:
				unsound[s] = fmt.Sprintf("  %s -run %s fails without any mutant: %v\n%s", s.pkg, s.run, err, lastLines(out, 8))
			case !ran(out, s.run):
				unsound[s] = fmt.Sprintf("  %s -run %s: no test has that name\n", s.pkg, s.run)
			}
		}
	}
	return unsound
}

// ran reports whether a test as deep as the pattern began.
func ran(out, pattern string) bool {
	deep := strings.Repeat(`[^\n/]+/`, strings.Count(pattern, "/"))
	return regexp.MustCompile(`(?m)^=== RUN +` + deep + `\S`).MatchString(out)
}

// try lays a mutant over the tree and runs its suites until one fails.
func (l lab) try(ctx context.Context, n int, m mutant) (v verdict) {
	began := time.Now()
	defer func() { v.took = time.Since(began) }()
	for _, s := range m.caught {
		if why := l.unsound[s]; why != "" {
			return verdict{what: misfit, output: why}
		}
	}
	overlay, err := l.overlay(n, m.edits)
	if err != nil {
		return verdict{what: misfit, output: "  " + err.Error() + "\n"}
	}
	var said strings.Builder
	for again := range tries {
		for i, s := range m.caught {
			out, err := l.test(ctx, s, overlay, filepath.Join(l.dir, fmt.Sprintf("m%d-%d.test", n, i)))
			said.WriteString(out)
			switch {
			case errors.Is(err, errBuild):
				return verdict{what: misfit, output: out}
			case err != nil:
				return verdict{what: caught, again: again, by: "  (" + s.pkg + " " + s.run + ")", output: out}
			}
		}
	}
	return verdict{what: survived, output: lastLines(said.String(), 8)}
}

// lastLines is the end of a text, indented.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	lines = lines[max(0, len(lines)-n):]
	return "  " + strings.Join(lines, "\n  ") + "\n"
}

// overlay writes the changed files and the list that the go command reads.
func (l lab) overlay(n int, edits []edit) (string, error) {
	replaced := map[string]string{}
	texts := map[string]string{}
	for _, e := range edits {
		file, err := filepath.Abs(filepath.Join(l.root, e.file))
		if err != nil {
			return "", err
		}
		if _, ok := texts[file]; !ok {
			b, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			texts[file] = string(b)
		}
		if texts[file], err = e.apply(texts[file]); err != nil {
			return "", err
		}
	}
	for file, text := range texts {
		to := filepath.Join(l.dir, fmt.Sprintf("m%d-%d.go", n, len(replaced)))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replaced[file] = to
	}
	b, err := json.Marshal(struct{ Replace map[string]string }{replaced})
	if err != nil {
		return "", err
	}
	list := filepath.Join(l.dir, fmt.Sprintf("m%d.json", n))
	return list, os.WriteFile(list, b, 0o600)
}

// apply makes the edit; the old text must stand there once.
func (e edit) apply(src string) (string, error) {
	switch n := strings.Count(src, e.old); {
	case n != 1:
		return "", fmt.Errorf("%s: the text to break occurs %d times, not once: %q", e.file, n, e.old)
	case e.old == e.new:
		return "", fmt.Errorf("%s: the edit changes nothing: %q", e.file, e.old)
	}
	return strings.Replace(src, e.old, e.new, 1), nil
}

var errBuild = errors.New("it doesn't compile")

// test builds a package's tests into bin and runs some of them.
func (l lab) test(ctx context.Context, s suite, overlay, bin string) (string, error) {
	args := []string{"test", "-c", "-vet=off", "-o", bin}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, s.pkg)...)
	build.Dir = l.root
	if out, err := build.CombinedOutput(); err != nil {
		return string(out), fmt.Errorf("%w: %w", errBuild, err)
	}
	defer os.Remove(bin)
	run := exec.CommandContext(ctx, bin, "-test.run", s.run, "-test.timeout", timeout, "-test.failfast", "-test.v")
	run.Dir = filepath.Join(l.root, s.pkg)
	out, err := run.CombinedOutput()
	return string(out), err
}

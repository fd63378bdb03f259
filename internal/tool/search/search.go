//go:build unix

// Package search holds the tools that find files and what is in them: glob and
// grep. They promise: nothing outside the workspace is looked at and no link
// followed; the same tree gives the same answer, in the same order; memory is
// bounded whatever the tree is; and what a limit or a rule left out is said.
package search

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/workspace/fswalk"
)

// Codes of problems.
const (
	CodeBadPattern = "BAD_PATTERN"
	CodeBadGlob    = "BAD_GLOB"
)

// outputLimit is how many bytes of an answer the model is shown.
const outputLimit = 32 << 10

// room is what is left of it for the answer itself.
const room = outputLimit - 1024

// Tools lists the tools of this package.
func Tools() []tool.Tool { return []tool.Tool{Glob(), Grep()} }

// spec is what both tools have in common.
func spec(name, doc string) tool.Spec {
	return tool.Spec{Name: name, Doc: strings.TrimSpace(doc), Effect: belay.Pure, ReadOnly: true, PathArg: "path", Access: belay.Read, OutputLimit: outputLimit}
}

// place is where a search begins.
type place struct {
	start string
	walk  fswalk.Options
}

func placeOf(name string, hidden, ignored bool) (place, error) {
	p := place{start: ".", walk: fswalk.Options{Hidden: hidden, Ignored: ignored}}
	if name == "" {
		return p, nil
	}
	var err error
	p.start, err = file.Clean(name)
	return p, err
}

// under is a path as it is seen from the place.
func (p place) under(full string) string {
	switch {
	case p.start == ".":
		return full
	case full == p.start: // the place is a file
		return path.Base(full)
	}
	return strings.TrimPrefix(full, p.start+"/")
}

// globs reads patterns.
func globs(patterns []string) ([]*fswalk.Glob, error) {
	all := make([]*fswalk.Glob, 0, len(patterns))
	for _, p := range patterns {
		if p == "" {
			return nil, tool.Failf(tool.BadArguments, CodeBadGlob, "the pattern is empty").WithHint("** is every file")
		}
		g, err := fswalk.NewGlob(strings.TrimPrefix(p, "./"))
		if err != nil {
			return nil, tool.Failf(tool.BadArguments, CodeBadGlob, "%v", err).WithHint(`write \[ for a bracket that means itself`)
		}
		all = append(all, g)
	}
	return all, nil
}

// failed is what the model reads when a walk ended with an error.
func failed(err error, start string) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return file.Problem(err, start)
}

// leftOut returns which kinds of files weren't looked at.
func (p place) leftOut() string {
	switch {
	case !p.walk.Hidden && !p.walk.Ignored:
		return "hidden and ignored files were not looked at"
	case !p.walk.Hidden:
		return "hidden files were not looked at"
	case !p.walk.Ignored:
		return "ignored files were not looked at"
	}
	return ""
}

// unread returns which folders couldn't be read.
func unread(r fswalk.Report) string {
	if len(r.Unread) == 0 {
		return ""
	}
	return "folders that can't be read: " + named(r.Unread, r.More)
}

// named lists names and how many more there are.
func named(names []string, more int) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = file.Visible(n)
	}
	s := strings.Join(all, ", ")
	if more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// notes joins what is to be said at the end of an answer.
func notes(all ...string) string {
	var b strings.Builder
	for _, n := range all {
		if n != "" {
			b.WriteString("[" + n + "]\n")
		}
	}
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A sample leaves out most mutants of packages that nobody has touched lately:
// all are tried when their package changes, and the others in turns.
const (
	parts  = 8              // of the mutants whose package didn't change, one part of so many
	recent = 24 * time.Hour // a package has changed if a commit so long before the last one changed it
)

// sample returns those of the chosen mutants that a run of every commit tries.
// changed has the directories of changed packages; round picks the part.
func sample(t *tree, all []mutant, chosen []int, changed map[string]bool, round int) (some []int) {
	for _, i := range chosen {
		if all[i].touches(t, changed) || i%parts == round%parts {
			some = append(some, i)
		}
	}
	return some
}

// touches reports whether the mutant changes a package of one of the directories.
func (m mutant) touches(t *tree, dirs map[string]bool) bool {
	return slices.ContainsFunc(m.edits, func(e edit) bool {
		dir, err := t.find(e.at[:max(strings.LastIndex(e.at, "."), 0)])
		return err == nil && dirs[dir]
	})
}

// lately returns the directories that the last commits changed, and how many
// commits there are.
func lately(ctx context.Context, root string) (changed map[string]bool, commits int, err error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", args[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	count, err := git("rev-list", "--count", "HEAD")
	if err != nil {
		return nil, 0, err
	}
	if commits, err = strconv.Atoi(count); err != nil {
		return nil, 0, err
	}
	last, err := git("log", "-1", "--format=%ct")
	if err != nil {
		return nil, 0, err
	}
	unix, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		return nil, 0, err
	}
	files, err := git("log", "--format=", "--name-only", "--since="+time.Unix(unix, 0).Add(-recent).UTC().Format(time.RFC3339))
	if err != nil {
		return nil, 0, err
	}
	changed = map[string]bool{}
	for file := range strings.Lines(files) {
		changed[path.Dir(strings.TrimSpace(file))] = true
	}
	return changed, commits, nil
}

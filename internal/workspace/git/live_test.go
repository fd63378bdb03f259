//go:build linux

package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/workspace/git"
)

// patience is for loaded machines; what is waited for comes within three seconds.
const patience = 30 * time.Second

// gone waits until a file is, or is as it was.
func gone(t *testing.T, path string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(path); err != nil && !linked(path) || err == nil && !strings.Contains(string(b), "evil") {
			t.Logf("%s is gone after %s", path, time.Since(began).Round(10*time.Millisecond))
			return
		}
	}
	t.Errorf("%s is still there", path)
}

func linked(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestProtectedNamesAreMovedAsideWhileProgramsRun: each line makes a file that other
// programs obey; it is gone while the program that made it still runs.
// Guarantee: T52.
func TestProtectedNamesAreMovedAsideWhileProgramsRun(t *testing.T) {
	for _, c := range []struct{ name, line, moved string }{
		{"at the root", `echo evil >.envrc`, ".envrc"},
		{"a folder of an editor", `mkdir .zed; echo evil >.zed/tasks.json`, ".zed/tasks.json"},
		{"in a folder that was there", `echo evil >pkg/AGENTS.md`, "pkg/AGENTS.md"},
		{"in folders that are new", `mkdir -p n/b/c; echo evil >n/b/c/.mcp.json`, "n/b/c/.mcp.json"},
		{"moved there with its folder", `mkdir -p n/.claude; echo evil >n/.claude/settings.json; mv n m`, "m/.claude/settings.json"},
		{"moved twice", `mkdir -p n/b; mv n c; sleep 1.5; mv c d; echo evil >d/b/.envrc`, "d/b/.envrc"},
		{"a folder in the place of another", `mkdir -p m n; sleep 1.5; mv m o; mv n m; echo evil >m/.envrc`, "m/.envrc"},
		{"made again", `mkdir n; sleep 1.5; rmdir n; mkdir n; echo evil >n/.envrc`, "n/.envrc"},
		{"a link", `ln -s evil .exrc`, ".exrc"},
		{"changed", `echo evil >>CLAUDE.md`, "CLAUDE.md"},
		{"never done with", `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo evil >>.bashrc; sleep .3; test -e .bashrc || break; done`, ".bashrc"},
		{"a hook", `cp evil .git/hooks/pre-commit`, ".git/hooks/pre-commit"},
		{"a hook that couldn't run", `cp evil .git/hooks/update; sleep 1; chmod +x .git/hooks/update`, ".git/hooks/update"},
		{"a monitor", `git config core.fsmonitor evil`, ".git/config"},
		{"a repository with a monitor", `git init -q sub; git -C sub config core.fsmonitor evil`, "sub/.git/config"},
		{"hooks of a repository", `git init -q --template= sub; sleep 1.5; mkdir sub/.git/hooks; cp evil sub/.git/hooks/pre-push`, "sub/.git/hooks/pre-push"},
		{"a bare repository with a monitor", `git init -q --bare b; sleep 1.5; git -C b config core.fsmonitor evil`, "b/config"},
		{"a file that leads elsewhere", `mkdir s; echo gitdir: /tmp/evil >s/.git`, "s/.git"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, run, w := space(t)
			run(before + "; printf '#!/bin/sh\nevil' >evil; chmod +x evil")
			w.Begin(t.Context(), git.Program{})
			run(c.line)
			gone(t, filepath.Join(dir, c.moved))
			moved := w.Look(t.Context(), git.Program{}, true)
			if len(moved) == 0 || moved[0].To == "" {
				t.Errorf("moved %+v", moved)
			}
		})
	}
}

// TestProtectedNamesThatStayWhileProgramsRun: what the end allows stays, whatever
// else is moved aside meanwhile.
// Guarantee: T52.
func TestProtectedNamesThatStayWhileProgramsRun(t *testing.T) {
	for _, c := range []struct {
		name, line, stays string
		p                 git.Program
	}{
		{"what may be left", `mkdir -p sub; echo evil >sub/.envrc`, "sub/.envrc", git.Program{Leave: []string{"sub/.envrc"}}},
		{"checkout", `git checkout -q other`, "sub/CLAUDE.md", git.Program{}},
		{"init", `git init -q new`, "new/.git/config", git.Program{}},
		{"worktree", `git worktree add -q w other`, "w/.git", git.Program{}},
		{"clone of what was there", `git clone -q -b other . c`, "c/sub/CLAUDE.md", git.Program{}},
		{"clone that was allowed", `git init -q e; echo evil >e/.envrc; git -C e add -f .envrc; git -C e commit -qm x; git clone -q e sub`, "sub/.envrc", git.Program{History: true}},
		{"packages", `mkdir -p node_modules/p; echo evil >node_modules/p/.npmrc`, "node_modules/p/.npmrc", git.Program{}},
		{"a rebase that tests each step", `git branch -q up HEAD~1 2>/dev/null || git commit -q --allow-empty -m e; mkdir .git/rebase-merge; echo 'exec true' >.git/rebase-merge/git-rebase-todo`, ".git/rebase-merge/git-rebase-todo", git.Program{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, run, w := space(t)
			run(before)
			for i, p := range c.p.Leave {
				c.p.Leave[i] = filepath.Join(dir, p)
			}
			w.Begin(t.Context(), c.p)
			run(c.line)
			run(`echo evil >.git/hooks/later`) // moved aside later than what is before it
			gone(t, filepath.Join(dir, ".git/hooks/later"))
			if _, err := os.Lstat(filepath.Join(dir, c.stays)); err != nil {
				t.Error(err)
			}
			w.Look(t.Context(), c.p, true) // ends it: else it puts back what the test removes
		})
	}
}

//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/workspace/git"
)

// before is a workspace with protected names, some in its history only.
const before = `mkdir -p app/.vscode app/.husky pkg; echo be kind >CLAUDE.md; echo '{}' >app/.vscode/settings.json; ln -s CLAUDE.md AGENTS.md; git add -A; git commit -qm names
git checkout -q -b other; mkdir -p .github/workflows sub; echo ci >.github/workflows/x.yml; echo kind >sub/CLAUDE.md; echo '* text' >.gitattributes; echo other >CLAUDE.md; git add -A; git commit -qm other; git checkout -q main
echo x >sub.txt; mkdir -p pkg/.cursor; echo stashed >pkg/.cursor/rules; git stash -qu; mkdir -p pkg app/.husky`

// TestProtectedNamesAreMovedAside: a protected name that a program made, at any
// depth, or changed where no boundary holds it.
// Guarantee: T52.
func TestProtectedNamesAreMovedAside(t *testing.T) {
	for _, c := range []struct{ name, line, moved string }{
		{"in a folder", `mkdir sub; echo x >sub/.envrc`, "sub/.envrc"},
		{"at the root", `echo x >.npmrc`, ".npmrc"},
		{"in two parts", `mkdir -p z/.cargo; echo x >z/.cargo/config.toml; echo x >z/.cargo/registry`, "z/.cargo/config.toml"},
		{"a whole folder", `mkdir -p z/.vscode/deep; echo x >z/.vscode/tasks.json; echo x >z/.vscode/deep/y`, "z/.vscode"},
		{"another spelling", `echo x >app/Claude.MD`, "app/Claude.MD"},
		{"submodules with a program", `printf '[submodule "s"]\n\tpath = s\n\turl = ext::evil\n' >.gitmodules`, ".gitmodules"},
		{"one more in a folder", `echo x >app/.vscode/tasks.json`, "app/.vscode/tasks.json"},
		{"in a folder that was empty", `echo x >app/.husky/pre-commit`, "app/.husky"},
		{"a link", `ln -s evil pkg/.envrc`, "pkg/.envrc"},
		{"renamed", `mkdir e; echo x >e/tasks.json; mv e pkg/.vscode`, "pkg/.vscode"},
		{"changed", `echo evil >CLAUDE.md`, "CLAUDE.md"},
		{"changed in place, with its time", `touch -r CLAUDE.md r; printf 'be evil' >CLAUDE.md; touch -r r CLAUDE.md`, "CLAUDE.md"},
		{"a link changed", `ln -sf evil AGENTS.md`, "AGENTS.md"},
		{"committed by the program", `echo x >.envrc; git add -f .envrc; git commit -qm x`, ".envrc"},
		{"history of the program", `b=$(echo x | git hash-object -w --stdin); t=$(printf "100644 blob $b\t.envrc\n" | git mktree); git branch evil $(git commit-tree -m x $t); git checkout -q evil -- .envrc`, ".envrc"},
		{"history under another path", `git show other:sub/CLAUDE.md >pkg/CLAUDE.md`, "pkg/CLAUDE.md"},
		{"history that was replaced", `b=$(echo x | git hash-object -w --stdin); t=$(printf "100644 blob $b\t.envrc\n" | git mktree); c=$(git commit-tree -m x $t); git replace -f other $c; git checkout -q $c -- .envrc`, ".envrc"},
		{"history with a graft", `b=$(echo x | git hash-object -w --stdin); t=$(printf "100644 blob $b\t.envrc\n" | git mktree); c=$(git commit-tree -m x $t); mkdir -p .git/info; echo "$(git rev-parse other) $c" >.git/info/grafts; git checkout -q $c -- .envrc`, ".envrc"},
		{"clone of its own", `git init -q e; echo x >e/.envrc; git -C e add -f .envrc; git -C e commit -qm x; git clone -q e sub; rm -rf e`, "sub/.envrc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, run, w := space(t)
			run(before)
			at := filepath.Join(dir, c.moved)
			was, had := os.ReadFile(at)
			w.Begin(t.Context(), git.Program{})
			run(c.line)
			moved := w.Look(t.Context(), git.Program{}, true)
			if len(moved) != 1 || moved[0].Path != at || moved[0].Layer != "protected" || moved[0].Why == "" {
				t.Fatalf("moved %+v", moved)
			}
			if now, err := os.ReadFile(at); (err == nil) != (had == nil) || string(now) != string(was) || moved[0].Restored != (had == nil) {
				t.Errorf("there is %q, and was %q; %+v", now, was, moved[0])
			}
			w.Begin(t.Context(), git.Program{})
			if again := w.Look(t.Context(), git.Program{}, true); len(again) > 0 {
				t.Errorf("moved again: %+v", again)
			}
		})
	}
}

// TestProtectedNamesThatStay: what was there, what history brings, what may be left.
// Guarantee: T52.
func TestProtectedNamesThatStay(t *testing.T) {
	for _, c := range []struct {
		name, line string
		p          git.Program
	}{
		{"nothing", `cat CLAUDE.md; chmod 600 CLAUDE.md; mkdir -p new/.vscode`, git.Program{}},
		{"what may be left", `mkdir -p sub/.vscode; echo x >sub/.vscode/tasks.json; echo x >sub/.envrc; echo x >CLAUDE.md`, git.Program{Leave: []string{"sub/.envrc", "sub/.vscode/tasks.json", "CLAUDE.md"}}},
		{"of git", `git config core.pager evil`, git.Program{Leave: []string{".git/config"}}},
		{"checkout", `git checkout -q other; git checkout -q main; git switch -q other`, git.Program{}},
		{"by a script", `printf 'git checkout -q other -- sub .github' >s; sh s`, git.Program{Held: true}},
		{"merge", `git merge -q -m m other`, git.Program{}},
		{"stash", `git stash pop -q`, git.Program{}},
		{"worktree", `git worktree add -q w other`, git.Program{}},
		{"clone of what was there", `git clone -q -b other . c`, git.Program{}},
		{"clone that was allowed", `git init -q e; echo x >e/.envrc; git -C e add -f .envrc; git -C e commit -qm x; mv e/.envrc e/x; git clone -q e sub`, git.Program{History: true}},
		{"submodule", `git -c protocol.file.allow=always submodule add -q ./old mod`, git.Program{}},
		{"packages", `for d in node_modules app/node_modules/a vendor/b v/lib/site-packages; do mkdir -p $d/.github/workflows $d/x; echo x >$d/.npmrc; echo x >$d/.github/workflows/x.yml; echo x >$d/x/CLAUDE.md; done`, git.Program{}},
		{"changed where a boundary holds it", `echo a person does >CLAUDE.md`, git.Program{Held: true}},
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
			if moved := w.Look(t.Context(), c.p, true); len(moved) > 0 {
				t.Errorf("moved %+v", moved)
			}
			run(`echo kinder >>CLAUDE.md; mkdir -p p; echo x >p/.envrc`) // a person's
			w.Begin(t.Context(), git.Program{})
			if moved := w.Look(t.Context(), git.Program{}, true); len(moved) > 0 {
				t.Errorf("moved %+v", moved)
			}
		})
	}
}

// TestProtectedNamesOfOthers: while a program runs, a tool may write what was
// allowed, and another program what it may.
func TestProtectedNamesOfOthers(t *testing.T) {
	dir, run, w := space(t)
	lasting, allowed := git.Program{Held: true}, git.Program{Leave: []string{filepath.Join(dir, "b/.envrc")}}
	w.Begin(t.Context(), lasting)
	run(`mkdir -p z/.vscode b; echo x >z/.vscode/tasks.json`)
	w.Wrote(filepath.Join(dir, "z/.vscode/tasks.json"), filepath.Join(dir, "z"))
	w.Begin(t.Context(), allowed)
	run(`echo x >b/.envrc`)
	if moved := w.Look(t.Context(), lasting, false); len(moved) > 0 {
		t.Errorf("moved %+v", moved)
	}
	w.Look(t.Context(), allowed, true)
	run(`echo x >b/.npmrc`)
	if moved := w.Again().Begin(t.Context(), allowed); len(moved) > 0 {
		t.Errorf("the first runtime lives, and this one moved %+v", moved)
	}
	w.Kill()
	if moved := w.Again().Begin(t.Context(), allowed); len(moved) != 1 || !strings.HasSuffix(moved[0].Path, "b/.npmrc") {
		t.Errorf("moved %+v", moved)
	}
	if moved := w.Look(t.Context(), lasting, true); len(moved) != 0 {
		t.Errorf("moved %+v", moved)
	}
	if moved := w.Look(t.Context(), lasting, true); len(moved) != 0 {
		t.Errorf("when none runs: moved %+v", moved)
	}
}

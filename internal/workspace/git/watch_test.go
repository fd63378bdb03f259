//go:build unix

package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/workspace/git"
)

// ways are what a program may leave in a workspace, and the file of it that is
// to be moved aside. repo is a repository that was there before.
var ways = []struct{ name, line, moved string }{
	{"commondir", `mkdir e && echo ../e >.git/commondir`, ".git/commondir"},
	{"config.worktree", `git config -f .git/config.worktree core.fsmonitor evil`, ".git/config.worktree"},
	{"monitor", `git config core.fsmonitor evil`, ".git/config"},
	{"hooks path", `git config core.hooksPath e`, ".git/config"},
	{"include", `git config include.path ../e`, ".git/config"},
	{"include if", `git config includeIf.onbranch:x.path ../e`, ".git/config"},
	{"alias", `git config alias.st '!evil'`, ".git/config"},
	{"filter", `git config filter.x.clean evil`, ".git/config"},
	{"text conversion", `git config diff.x.textconv evil`, ".git/config"},
	{"external diff", `git config diff.external evil`, ".git/config"},
	{"merge driver", `git config merge.x.driver evil`, ".git/config"},
	{"pager", `git config core.pager evil`, ".git/config"},
	{"pager of one command", `git config pager.log evil`, ".git/config"},
	{"editor", `git config core.editor evil`, ".git/config"},
	{"sequence editor", `git config sequence.editor evil`, ".git/config"},
	{"signatures", `git config gpg.program evil`, ".git/config"},
	{"ssh", `git config core.sshCommand evil`, ".git/config"},
	{"proxy", `git config core.gitProxy evil`, ".git/config"},
	{"credentials", `git config credential.helper '!evil'`, ".git/config"},
	{"helper program", `git remote add x 'ext::sh -c evil'`, ".git/config"},
	{"foreign remote", `git config remote.x.vcs evil`, ".git/config"},
	{"upload-pack", `git config remote.origin.uploadpack evil`, ".git/config"},
	{"rewritten address", `git config url.ext::evil.insteadOf https://`, ".git/config"},
	{"branch's remote", `git config branch.main.remote 'ext::sh -c evil'`, ".git/config"},
	{"submodule's update", `git config submodule.x.update '!evil'`, ".git/config"},
	{"difftool", `git config difftool.x.cmd evil`, ".git/config"},
	{"interactive filter", `git config interactive.diffFilter evil`, ".git/config"},
	{"trailer", `git config trailer.x.command evil`, ".git/config"},
	{"work tree", `git config core.worktree /etc`, ".git/config"},
	{"templates", `git config init.templateDir e`, ".git/config"},
	{"unknown", `git config new.thing evil`, ".git/config"},
	{"spelled otherwise", `printf '[CoRe] FSMonitor = "ev"il # x\n' >>.git/config`, ".git/config"},
	{"unreadable", `printf '[core\n' >>.git/config`, ".git/config"},
	{"pipe", `rm .git/config && mkfifo .git/config`, ".git/config"},
	{"link", `cp .git/config e && git config -f e core.pager evil && ln -sf ../e .git/config`, ".git/config"},
	{"hook", `echo evil >.git/hooks/pre-commit`, ".git/hooks/pre-commit"},
	{"hook that was there", `echo evil >.git/hooks/post-commit`, ".git/hooks/post-commit"},
	{"linked hooks", `mkdir e && mv .git/hooks .git/h && ln -s ../e .git/hooks`, ".git/hooks"},
	{"alternates", `echo /etc >.git/objects/info/alternates`, ".git/objects/info/alternates"},
	{"legacy remote", `mkdir -p .git/remotes && echo 'URL: ext::sh -c evil' >.git/remotes/x`, ".git/remotes/x"},
	{"rebase", `mkdir .git/rebase-merge && echo 'exec evil' >.git/rebase-merge/git-rebase-todo`, ".git/rebase-merge/git-rebase-todo"},
	{"nested", `git init -q sub && git -C sub config core.fsmonitor evil`, "sub/.git/config"},
	{"deep", `mkdir -p node_modules/a/b/c && git init -q node_modules/a/b/c && git -C node_modules/a/b/c config core.pager evil`, "node_modules/a/b/c/.git/config"},
	{"nested hook", `git init -q --template= sub && mkdir sub/.git/hooks && echo evil >sub/.git/hooks/pre-commit`, "sub/.git/hooks/pre-commit"},
	{"nested that was there", `git -C old config core.pager evil`, "old/.git/config"},
	{"bare", `git init -q --bare b && git -C b config core.bare false && git -C b config core.worktree . && git -C b config core.fsmonitor evil`, "b/config"},
	{"half a folder", `mkdir b && cp .git/HEAD b && echo ../e >b/commondir`, "b/commondir"},
	{"renamed", `git init -q s && git -C s config core.pager evil && mv s/.git s/x && mv s/x s/.git`, "s/.git/config"},
	{"file", `git init -q --bare e && git -C e config core.pager evil && mkdir s && echo 'gitdir: ../e' >s/.git`, "e/config"},
	{"file to outside", `mkdir s && echo 'gitdir: /etc' >s/.git`, "s/.git"},
	{"linked folder", `git init -q --bare e && mkdir s && ln -s ../e s/.git`, "s/.git"},
	{"worktree's configuration", `git worktree add -q w && git config -f .git/worktrees/w/config.worktree core.pager evil`, ".git/worktrees/w/config.worktree"},
	{"worktree's commondir", `git worktree add -q w && mkdir e && echo ../../../e >.git/worktrees/w/commondir`, ".git/worktrees/w/commondir"},
	{"module", `git init -q --bare .git/modules/a/b && git -C .git/modules/a/b config core.fsmonitor evil`, ".git/modules/a/b/config"},
	{"module's hook", `git init -q --bare .git/modules/m && echo evil >.git/modules/m/hooks/post-checkout`, ".git/modules/m/hooks/post-checkout"},
	{"attributes", `mkdir -p .git/info && echo '* filter=own' >.git/info/attributes`, ".git/info/attributes"},
}

// kept is what may be done.
var kept = []struct{ name, line string }{
	{"nothing", `true`},
	{"init", `git init -q new && cd new && git commit -q --allow-empty -m one`},
	{"clone", `git clone -q . c && git -C c log --oneline`},
	{"bare clone", `git clone -q --bare . c.git`},
	{"shared clone", `git clone -q --shared . c && git -C c status`},
	{"submodule", `git -c protocol.file.allow=always submodule add -q ./old mod && git submodule status`},
	{"worktree", `git worktree add -q w && git -C w commit -q --allow-empty -m two`},
	{"name", `git config user.name somebody && git config user.email a@b`},
	{"remote", `git remote add up https://example.org/a.git && git remote add two git@example.org:a/b.git && git branch -q --track x main`},
	{"sparse", `git sparse-checkout set src`},
	{"work", `git checkout -q -b two && git commit -q --allow-empty -m x && git stash list && git tag t && git gc -q`},
	{"own hook is kept", `chmod 755 .git/hooks/post-commit; git status`},
}

// prepared is a workspace as space makes them, made once.
var prepared = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "belay-watch-") })

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := prepared(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

var making sync.Mutex

func space(t *testing.T) (dir string, run func(line string) string, w *git.Watch) {
	t.Helper()
	needs.Program(t, "git")
	home := t.TempDir()
	first, err := prepared()
	if err != nil {
		t.Fatal(err)
	}
	dir, err = filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	run = func(line string) string {
		cmd := exec.Command("/bin/sh", "-ec", line)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		return string(out)
	}
	making.Lock()
	defer making.Unlock()
	if there(filepath.Join(first, "a")) {
		run(`cp -a ` + first + `/. .`)
		return dir, run, git.Git{Environ: env}.NewWatch(dir, filepath.Join(home, "aside"))
	}
	run(`git init -q -b main; echo a >a; git add a; git commit -qm one; git init -q old; git -C old commit -q --allow-empty -m one
git config core.editor vim; git config filter.own.clean cat; printf '#!/bin/sh\n' >.git/hooks/post-commit; chmod 755 .git/hooks/post-commit; git -C old config user.name me
cp -a . ` + first)
	return dir, run, git.Git{Environ: env}.NewWatch(dir, filepath.Join(home, "aside"))
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Guarantee: T91.
func TestWhatMakesGitRunSomethingIsMovedAside(t *testing.T) {
	for _, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, run, w := space(t)
			before, err := os.ReadFile(filepath.Join(dir, c.moved))
			if moved := w.Begin(t.Context(), git.Program{}); len(moved) > 0 {
				t.Fatalf("before it began: %+v", moved)
			}
			run(c.line)
			moved := w.Look(t.Context(), git.Program{}, true)
			if len(moved) != 1 || moved[0].Path != filepath.Join(dir, c.moved) || moved[0].Why == "" {
				t.Fatalf("moved %+v", moved)
			}
			if _, err := os.Lstat(moved[0].To); err != nil {
				t.Errorf("it isn't where it was moved to: %v", err)
			}
			if after, _ := os.ReadFile(filepath.Join(dir, c.moved)); string(after) != string(before) || moved[0].Restored != (err == nil) {
				t.Errorf("there is %q, and was %q; %+v", after, before, moved[0])
			}
			w.Begin(t.Context(), git.Program{})
			if again := w.Look(t.Context(), git.Program{}, true); len(again) > 0 {
				t.Errorf("moved again: %+v", again)
			}
		})
	}
}

// Guarantee: T91.
func TestWhatGitMakesStays(t *testing.T) {
	for _, c := range kept {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, run, w := space(t)
			run(`printf '[core]\n\tpager = less\n' >>old/.git/config`) // a person's, before
			w.Begin(t.Context(), git.Program{})
			run(c.line)
			if moved := w.Look(t.Context(), git.Program{}, true); len(moved) > 0 {
				t.Errorf("moved %+v", moved)
			}
			run(`git config core.pager less`) // a person's, between
			w.Begin(t.Context(), git.Program{})
			if moved := w.Look(t.Context(), git.Program{}, true); len(moved) > 0 {
				t.Errorf("moved %+v", moved)
			}
			if b, _ := os.ReadFile(filepath.Join(dir, ".git/config")); !strings.Contains(string(b), "vim") {
				t.Errorf("the person's configuration is %q", b)
			}
		})
	}
}

// TestWhatIsLeftIsFoundAfterAKill: who looks next knows what stood there when the
// program began, and takes neither the person's settings for the program's nor the
// program's for the person's.
// Guarantee: T91.
func TestWhatIsLeftIsFoundAfterAKill(t *testing.T) {
	dir, run, w := space(t)
	w.Begin(t.Context(), git.Program{})
	run(`git config core.pager evil; git init -q sub; git -C sub config core.pager evil`)
	second := w.Again()
	if moved := second.Begin(t.Context(), git.Program{}); len(moved) != 0 {
		t.Errorf("the first runtime lives, and this one moved %+v", moved)
	}
	second.Look(t.Context(), git.Program{}, true)
	w.Kill()
	third := w.Again()
	if moved := third.Begin(t.Context(), git.Program{}); len(moved) != 2 {
		t.Errorf("moved %+v", moved)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, ".git/config")); !strings.Contains(string(b), "vim") || strings.Contains(string(b), "evil") {
		t.Errorf("the person's configuration is %q", b)
	}
	third.Look(t.Context(), git.Program{}, true)
	run(`git config core.pager less`)
	if moved := w.Again().Begin(t.Context(), git.Program{}); len(moved) != 0 {
		t.Errorf("after all ended: moved %+v", moved)
	}
}

//go:build linux

package sandbox_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/workspace/git"
)

// later are ways to make what a person does next run a program of the workspace,
// evil, and what the person does: in addition to git status, diff, log -p, add
// and commit. A program plants, and the person's git runs outside of every boundary.
var later = []struct {
	name, plant, then string
}{
	{"commondir", `cp -r .git e; git config -f e/config core.fsmonitor $E; echo ../e >.git/commondir`, ``},
	{"configuration of the worktree", `git config extensions.worktreeConfig true; git config -f .git/config.worktree core.fsmonitor $E`, ``},
	{"monitor", `git config core.fsmonitor $E`, ``},
	{"configuration by a file in its place", `cp .git/config c; git config -f c core.fsmonitor $E; mv -f c .git/config`, ``},
	{"hooks in another folder", `mkdir e; cp evil e/pre-commit; git config core.hooksPath e`, ``},
	{"hook", `mkdir -p .git/hooks; cp evil .git/hooks/pre-commit`, ``},
	{"hook of the index", `mkdir -p .git/hooks; cp evil .git/hooks/post-index-change`, ``},
	{"hook of names", `mkdir -p .git/hooks; cp evil .git/hooks/reference-transaction`, ``},
	{"hook of a checkout", `mkdir -p .git/hooks; cp evil .git/hooks/post-checkout`, `git checkout -q -b x`},
	{"hooks by a link", `mkdir e; cp evil e/pre-commit; rm -rf .git/hooks; ln -s ../e .git/hooks`, ``},
	{"hook that was there", `cat evil >.git/hooks/post-commit`, ``},
	{"included file", `git config -f e core.fsmonitor $E; git config include.path ../e`, ``},
	{"included on a condition", `git config -f e core.fsmonitor $E; git config includeIf.onbranch:main.path ../e`, ``},
	{"filter", `git config filter.x.clean "$E"; echo '*.txt filter=x' >.gitattributes`, `touch a.txt`},
	{"filter's process", `git config filter.x.process "$E"; mkdir -p .git/info; echo '*.txt filter=x' >.git/info/attributes`, `touch a.txt`},
	{"text conversion", `git config diff.x.textconv $E; echo '*.txt diff=x' >.gitattributes`, ``},
	{"driver of differences", `git config diff.x.command $E; echo '*.txt diff=x' >.gitattributes`, ``},
	{"external diff", `git config diff.external $E`, ``},
	{"driver of merges", `git config merge.x.driver $E; echo '*.txt merge=x' >.gitattributes`, `git checkout -q .; git merge -q other`},
	{"pager", `git config core.pager $E`, `script -qc 'git log' /dev/null`},
	{"pager of one command", `git config pager.status $E`, `script -qc 'git status' /dev/null`},
	{"editor", `git config core.editor $E`, `git commit -q --allow-empty`},
	{"signing", `git config gpg.program $E; git config commit.gpgSign true`, ``},
	{"secure shell", `git config core.sshCommand $E; git config remote.origin.url ssh://localhost/a; git config branch.main.remote origin`, `git fetch`},
	{"helper of an address", `git config protocol.ext.allow always; git config remote.origin.url "ext::$E"`, `git fetch`},
	{"rewritten address", `git config protocol.ext.allow always; git config "url.ext::$E .insteadOf" https://; git config remote.origin.url https://x/`, `git fetch`},
	{"other end's program", `git config remote.origin.url .; git config remote.origin.uploadpack $E`, `git fetch`},
	{"credentials", `git config credential.helper "!$E"`, `printf 'protocol=https\nhost=x\n\n' | git credential fill`},
	{"another name for a command", `git config alias.st "!$E"`, `git st`},
	{"filter of hunks", `git config interactive.diffFilter $E`, `printf 'q\n' | script -qc 'git add -p' /dev/null`},
	{"trailer", `git config trailer.x.command $E`, `echo | git interpret-trailers --trailer x=1`},
	{"submodule's update", `printf '[submodule "s"]\n\tpath = s\n\turl = ./old\n' >.gitmodules; git config submodule.s.url ./old; git config submodule.s.update "!$E"; git update-index --add --cacheinfo 160000,$(git -C old rev-parse HEAD),s; mkdir s`, `git -c protocol.file.allow=always submodule update`},
	{"step of a rebase", `mkdir .git/rebase-merge; for f in onto orig-head head-name; do git rev-parse HEAD >.git/rebase-merge/$f; done; echo refs/heads/main >.git/rebase-merge/head-name; : >.git/rebase-merge/interactive; echo "exec $E" >.git/rebase-merge/git-rebase-todo; : >.git/rebase-merge/done; echo 0 >.git/rebase-merge/msgnum; echo 1 >.git/rebase-merge/end`, `git checkout -q .; git rebase --continue`},
	{"repository inside, asked by status", `git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub; git -C sub config core.fsmonitor $E`, ``},
	{"repository inside, with a filter", `git init -q sub; echo a >sub/a; git -C sub add a; git -C sub commit -q -m x; git add sub; git -C sub config filter.x.clean $E; echo '* filter=x' >sub/.gitattributes; touch -d @1 sub/a`, ``},
	{"repository deep inside", `mkdir -p node_modules/a; git init -q node_modules/a/b; git -C node_modules/a/b config core.fsmonitor $E`, `git -C node_modules/a/b status`},
	{"repository inside, with a hook", `git init -q sub; mkdir -p sub/.git/hooks; cp evil sub/.git/hooks/pre-commit`, `git -C sub commit -q --allow-empty -m x`},
	{"repository that was inside", `git -C old config core.fsmonitor $E`, `git -C old status`},
	{"repository under another name, renamed", `git init -q sub; git -C sub config core.fsmonitor $E; mv sub/.git sub/g; mv sub/g sub/.git`, `git -C sub status`},
	{"folder that is a repository", `git init -q --bare b; git -C b config core.bare false; git -C b config core.worktree .; git -C b config core.fsmonitor $E`, `git -C b status`},
	{"half a repository", `mkdir b; cp .git/HEAD b/; cp -r .git e; git config -f e/config core.pager $E; echo ../e >b/commondir`, `script -qc 'git -C b log' /dev/null`},
	{"file that leads to a folder", `git init -q --bare e; git -C e config core.bare false; git -C e config core.fsmonitor $E; mkdir s; echo 'gitdir: ../e' >s/.git`, `git -C s status`},
	{"link to a folder", `git init -q --bare e; git -C e config core.bare false; git -C e config core.fsmonitor $E; mkdir s; ln -s ../e s/.git`, `git -C s status`},
	{"worktree's commondir", `git worktree add -q w; cp -r .git e; git config -f e/config core.fsmonitor $E; echo ../../../e >.git/worktrees/w/commondir`, `git -C w status`},
	{"submodule's git folder", `git init -q --bare .git/modules/m; git config -f .git/modules/m/config core.bare false; git config -f .git/modules/m/config core.fsmonitor $E; mkdir m; echo 'gitdir: ../.git/modules/m' >m/.git`, `git -C m status`},
	{"task of an editor", `mkdir -p .vscode; cp evil .vscode/tasks.json`, `test ! -x .vscode/tasks.json || .vscode/tasks.json`},
	{"task of an editor, in a folder", `mkdir -p sub/.vscode; cp evil sub/.vscode/tasks.json`, `test ! -x sub/.vscode/tasks.json || sub/.vscode/tasks.json`},
	{"start of a shell", `cp evil .bashrc`, `HOME=$PWD bash -i -c true`},
	{"start of a shell, in a folder", `mkdir sub; cp evil sub/.bashrc`, `HOME=$PWD/sub bash -i -c true`},
	{"environment of a folder", `cp evil .envrc`, `test ! -f .envrc || sh .envrc`},
	{"environment of a folder, in a folder", `mkdir sub; cp evil sub/.envrc`, `test ! -f sub/.envrc || sh sub/.envrc`},
	{"settings of a package manager", `echo script-shell=$E >.npmrc`, `eval "$(sed -n s/script-shell=//p .npmrc)"`},
	{"settings of a package manager, in a folder", `mkdir sub; echo script-shell=$E >sub/.npmrc`, `eval "$(sed -n s/script-shell=//p sub/.npmrc)"`},
	{"hook of a package manager", `mkdir -p .husky; cp evil .husky/pre-commit; git config core.hooksPath .husky`, ``},
}

// everyday is what a person does after each way.
const everyday = `git status; echo y >>a.txt; git diff; git log -p; %THEN%; git add -A; git commit -q -m more; bash -i -c 'git status' </dev/null; true`

// TestProtectedFromWhatGitObeys plants what makes a person's later git run a
// program, at L3, at L2 and without a boundary, and lets the real git run.
// Each way has a workspace, a boundary and a dozen programs of its own, so it is
// tried at one of the places, which the seed draws; BELAY_SANDBOX_ROUNDS tries
// all ways at all places.
// Guarantee: T91.
func TestProtectedFromWhatGitObeys(t *testing.T) {
	confined(t)
	needs.Program(t, "git")
	needs.Program(t, "script")
	first := laterSpace(t)
	n := seed(t)
	places := []string{"no look", "L3", "L2", "full"}
	for p, at := range places {
		if at != "L3" && os.Getenv(asUser) != "" {
			continue // without rights what differs is the boundary
		}
		tried, worked := 0, 0
		for i, c := range later {
			if os.Getenv(rounds) == "" && (n+uint64(i))%uint64(len(places)) != uint64(p) {
				continue
			}
			tried++
			s := newSpace(t)
			s.env = gitAuthor
			switch at {
			case "L2":
				s.at(belay.L2)
			case "full", "no look":
				s.b = belay.Boundary{Name: belay.BoundaryFull, Network: belay.NetworkFull}
			}
			if out, err := exec.Command("cp", "-a", first+"/.", s.o.Workspace).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			s.file("evil", "#!/bin/sh\ntouch "+s.home+"/ran\nexit 1\n")
			os.Chmod(filepath.Join(s.o.Workspace, "evil"), 0o755)
			w := git.Git{Environ: s.command("x").Env}.NewWatch(s.o.Workspace, filepath.Join(s.home, "aside"))
			w.Begin(t.Context(), git.Program{Held: at == "L3"})
			planted := s.sh(`E=` + s.o.Workspace + `/evil; exec 2>&1; ` + c.plant)
			if at != "no look" {
				w.Look(t.Context(), git.Program{Held: at == "L3"}, true)
			}
			os.Remove(filepath.Join(s.home, "ran"))
			person := s.command("timeout", "-k1", "10", "/bin/sh", "-c", strings.ReplaceAll(everyday, "%THEN%", cmp.Or(c.then, ":")))
			person.Env = append(person.Env, "VISUAL=true", "TERM=xterm", "GIT_TERMINAL_PROMPT=0")
			out, _ := person.CombinedOutput()
			_, err := os.Stat(filepath.Join(s.home, "ran"))
			if err == nil {
				worked++
			}
			if want := at == "no look"; (err == nil) != want {
				t.Errorf("%s, %s: ran %v\nplanted: %s\nlater: %s", at, c.name, err == nil, planted.out, out)
			}
		}
		t.Logf("%s: %d ways, %d worked", at, tried, worked)
	}
}

var gitAuthor = []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}

// laterSpace is a workspace as a person has it.
func laterSpace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("/bin/sh", "-ec", `git init -q -b main; echo a >a.txt; git add a.txt; git commit -qm one; git checkout -q -b other; echo o >a.txt; git commit -qam other; git checkout -q main
echo m >a.txt; git commit -qam two; mkdir -p old .git/hooks; git init -q old; git -C old commit -q --allow-empty -m one; printf 'old\n' >.git/info/exclude; printf '#!/bin/sh\n' >.git/hooks/post-commit; chmod 755 .git/hooks/post-commit`)
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, gitAuthor...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

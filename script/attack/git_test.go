//go:build linux

package attack

import "testing"

// TestGit: what a program leaves in git's files runs nothing when a person uses git
// afterwards. internal/sandbox tries more ways, at every level.
// Guarantee: T91.
func TestGit(t *testing.T) {
	const (
		person = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; `
		setup  = person + `git init -q -b main; git add a.txt; git commit -qm one; mkdir old; git init -q old; git -C old commit -q --allow-empty -m one`
		later  = person + `exec >/dev/null 2>&1; git status; echo y >>a.txt; git diff; git log -p; git add -A; git commit -q -m more; `
	)
	var table []attack
	for _, c := range []struct{ name, plant, then string }{
		{"commondir", `cp -r .git e; git config -f e/config core.fsmonitor $E; echo ../e >.git/commondir`, ``},
		{"configuration of the worktree", `git config extensions.worktreeConfig true; git config -f .git/config.worktree core.fsmonitor $E`, ``},
		{"monitor", `git config core.fsmonitor $E`, ``},
		{"hooks in another folder", `mkdir e; cp evil e/pre-commit; git config core.hooksPath e`, ``},
		{"hook", `mkdir -p .git/hooks; cp evil .git/hooks/pre-commit`, ``},
		{"included file", `git config -f e core.fsmonitor $E; git config include.path ../e`, ``},
		{"filter", `git config filter.x.clean "$E"; echo '*.txt filter=x' >.git/info/attributes`, ``},
		{"text conversion", `git config diff.x.textconv $E; echo '*.txt diff=x' >.gitattributes`, ``},
		{"external diff", `git config diff.external $E`, ``},
		{"signing", `git config gpg.program $E; git config commit.gpgSign true`, ``},
		{"other end's program", `git config remote.origin.url .; git config remote.origin.uploadpack $E`, `git fetch origin`},
		{"another name for a command", `git config alias.st "!$E"`, `git st`},
		{"repository inside, asked by status", `git init -q sub; git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git add sub; git -C sub config core.fsmonitor $E`, ``},
		{"repository deep inside", `mkdir -p node_modules/a; git init -q node_modules/a/b; git -C node_modules/a/b config core.fsmonitor $E`, `git -C node_modules/a/b status`},
		{"repository that was inside", `git -C old config core.fsmonitor $E`, `git -C old status`},
		{"file that leads to a folder", `git init -q --bare e; git -C e config core.bare false; git -C e config core.fsmonitor $E; mkdir s; echo 'gitdir: ../e' >s/.git`, `git -C s status`},
	} {
		table = append(table, attack{
			name: c.name, setup: setup, command: "sh job.sh", flags: []string{"--allow", "exec"}, after: later + c.then, mark: "../outside/MARK",
			files: map[string]string{"a.txt": "a\n", "evil": "#!/bin/sh\ntouch MARK\nexit 1\n", "job.sh": "E=$PWD/evil\n" + c.plant + "\n"},
		})
	}
	play(t, expectation{}, table)
}

//go:build linux

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/testkit/sample"
	"github.com/belay-run/belay/internal/workspace/git"
	"github.com/belay-run/belay/internal/workspace/protected"
)

func isSecret(path string, folder bool) bool {
	return folder && protected.SecretPlace(path) || !folder && protected.Secret(path) != ""
}

// withSecrets puts files into the workspace that hold the word hunter2 and usually
// hold secrets, and some beside them that don't.
func withSecrets(s *space) {
	s.o.Secret = isSecret
	for _, p := range []string{".env", "app/.env.local", "config/prod.env", "deploy/server.key", "deploy/deep/er/id_rsa", "secrets/db", ".aws/credentials", "infra/terraform.tfstate", "behind/real.env", "a b/.env", "far/target.txt"} {
		s.file(p, "KEY=hunter2\n")
	}
	s.file("deploy/private.pem", "-----BEGIN PRIVATE KEY-----\nhunter2\n")
	s.file(".npmrc", "//registry.example/:_authToken=hunter2\n")
	s.file("deploy/cert.pem", "-----BEGIN CERTIFICATE-----\nopen\n")
	s.file("web/.npmrc", "save-exact=true\n")
	s.file(".env.example", "KEY=open\n")
	s.file("main.txt", "open\n")
	s.t.Helper()
	for link, to := range map[string]string{"innocent.txt": ".env", "deploy/x.key": "../far/target.txt"} {
		if err := os.Symlink(to, filepath.Join(s.o.Workspace, link)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestIntendedSecretsAreHidden reads what usually holds secrets in many ways, of
// which none names it to the gate: none shows a word of it, in a boundary that
// writes and in one that only reads.
// Guarantee: G72.
func TestIntendedSecretsAreHidden(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	for _, boundary := range []string{belay.BoundaryWorkspace, belay.BoundaryReadOnly} {
		s := newSpace(t)
		s.b.Name = boundary
		withSecrets(s)
		for _, line := range []string{
			"grep -r hunter .", "grep -ra hunter . .e*", "cat .e*", "cat *", "cat */*", "cat innocent.txt", "find . -type f -exec cat {} +", "find . -type f | xargs -d '\\n' cat", "tar cf - . | strings", "cp -r . /tmp/x; grep -r hunter /tmp/x", "for f in $(ls -A); do cat \"$f\"; done",
			"python3 -c 'print(open(\".env\").read())'", "python3 -c 'import os\nfor d, _, n in os.walk(\".\"):\n  for f in n:\n    try: print(open(os.path.join(d, f)).read())\n    except OSError: pass'", "cat /proc/self/cwd/.env", "cat /proc/self/root$PWD/.env",
			"mv .env x; cat x", "ln .env x; cat x", "mv deploy d2; cat d2/server.key d2/deep/er/id_rsa", "chmod 777 .env; cat .env", "chmod 777 .aws; cat .aws/credentials", "cat .aws/credentials deploy/private.pem .npmrc", "umount .env; cat .env", "mount --bind /dev/null .env; cat .env",
			"ln -s $PWD/.env y; cat y", "dd if=.env", "cat <.env", "exec 5<.env; cat <&5", "cat deploy/x.key far/target.txt", "cat 'a b/.env'", "awk 1 secrets/*", "unshare -rm sh -c 'umount .env; cat .env'", "rm -f .env; cat .env", "sh -c 'set -a; . ./.env; env'", "head -c 99 behind/*", "perl -pe 1 .env infra/terraform.tfstate",
		} {
			if r := s.sh(line); strings.Contains(r.out, "hunter2") {
				t.Errorf("%s: %s: it was shown: %.300s", boundary, line, r.out)
			}
		}
		r := s.sh("cat main.txt .env.example deploy/cert.pem; test -e .env && echo there; wc -c web/.npmrc")
		if strings.Count(r.out, "open") != 3 || !strings.Contains(r.out, "there") || !strings.Contains(r.out, "16 web/.npmrc") {
			t.Errorf("%s: the rest isn't as it was: %s", boundary, r.out)
		}
		if l := layer(r.applied, "mounts"); l.State != belay.LayerApplied || !strings.Contains(l.Detail, "secrets hidden") {
			t.Errorf("%s: the layer says %s", boundary, l)
		}
	}
}

// What a boundary names it shows, and no other secret.
func TestIntendedASecretThatABoundaryNamesIsShown(t *testing.T) {
	confined(t)
	s := newSpace(t)
	withSecrets(s)
	s.b.Read = []string{filepath.Join(s.o.Workspace, ".env"), filepath.Join(s.o.Workspace, ".aws"), filepath.Join(s.o.Workspace, "deploy")}
	if r := s.sh("cat .env .aws/credentials"); strings.Count(r.out, "hunter2") != 2 {
		t.Errorf("it wasn't shown: %s", r.out)
	}
	if r := s.sh("cat .npmrc app/.env.local deploy/server.key secrets/db"); strings.Contains(r.out, "hunter2") {
		t.Errorf("another one was shown: %s", r.out)
	}
}

// Version control doesn't take a secret that it knows, and that is hidden from it,
// for one that was emptied.
// Guarantee: G72.
func TestAHiddenSecretIsNotCommittedEmpty(t *testing.T) {
	confined(t)
	s := newSpace(t)
	repository(t, s)
	s.file("server.key", "hunter2\n")
	if r := s.sh("git add -A && git commit -qm one"); r.end.Code != 0 {
		t.Fatal(r.out)
	}
	s.o.Secret = isSecret
	s.sh("echo more >> plain/file; git commit -qam two; git add -A; git commit -qm three; git stash; git stash pop")
	if r := s.sh("git cat-file -s HEAD:server.key"); strings.TrimSpace(r.out) != "8" {
		t.Errorf("the repository has %s bytes of it", r.out)
	}
	if r := s.sh("git commit -qm four plain/file && git log --format=%s -1"); r.end.Code != 0 || strings.TrimSpace(r.out) != "four" {
		t.Errorf("what is named can't be committed: %s", r.out)
	}
}

// TestGitFindsCoveredFilesAsTheyAre: what git says of a work tree with covered files is
// what it says outside of the boundary, unless it needs what is in them.
// Guarantee: G72.
func TestGitFindsCoveredFilesAsTheyAre(t *testing.T) {
	confined(t)
	for name, made := range map[string]string{
		"clean":                  `git commit -qam two`,
		"written again":          `git commit -qam two; cat .env >x; cat x >.env; rm x; touch -d @1000000000 server.key`,
		"changed besides":        `git commit -qam two; echo z >>plain/file; echo n >new`,
		"a secret is changed":    `git commit -qam two; echo more >>.env`,
		"changed lately":         `echo more >>.env; echo more >>.aws/config; git commit -qam two`,
		"a secret is removed":    `git commit -qam two; rm server.key`,
		"that can be run":        `chmod 755 .env; git commit -qam two`,
		"one that isn't known":   `git rm -q --cached .env; git commit -qm two`,
		"one that is ignored":    `git rm -q --cached .env; echo .env >.gitignore; git add .gitignore; git commit -qam two`,
		"staged":                 `echo more >>.env; git add .env`,
		"a work tree":            `git commit -qam two; git worktree add -q -b w tree`,
		"a repository in it":     `git commit -qam two; git init -q in; cp .env in; git -C in add -f .env; git -C in commit -qm in; git add in 2>/dev/null; git commit -qm in`,
		"stashed":                `git commit -qam two; echo z >>plain/file; git stash -q`,
		"in a folder of secrets": `git commit -qam two; echo n >>.aws/config`,
	} {
		if !sample.Has(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newSpace(t)
			repository(t, s)
			for _, p := range []string{".env", "server.key", ".aws/credentials", ".aws/config", `.aws/a [b] "c".key`, "a*[b]\\?é.key"} {
				s.file(p, "hunter2\n")
			}
			outside := func(line string) (string, int) {
				cmd := exec.Command("/bin/sh", "-c", line)
				cmd.Dir, cmd.Env = s.o.Workspace, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home}, s.env...)
				out, _ := cmd.CombinedOutput()
				return string(out), cmd.ProcessState.ExitCode()
			}
			if out, code := outside(`set -e; git add -A; git commit -qm one; echo y >>plain/file; ` + made); code != 0 {
				t.Fatal(out)
			}
			known := &git.Tracked{Git: git.Git{Environ: s.command("x").Env}}
			s.o.Secret, s.o.Tracked = isSecret, func(paths []string) ([]string, string) { return known.Of(t.Context(), paths) }
			lines := []string{"git status", "git status --porcelain -uall", "git ls-files -m -d -o --exclude-standard", "git stash list", "git diff", "git diff --stat HEAD", "git diff HEAD", "git diff HEAD~1 --stat", "git diff HEAD~1", "git log -p -2",
				"cd tree 2>/dev/null && git status -s", "cd in 2>/dev/null && git status -s", "ls -l --time-style=+%s .env | cut -d' ' -f5,6"}
			script := "exec 2>&1\n"
			for _, line := range lines {
				script += "(" + line + "); echo \"exit $?\"; echo ----\n"
			}
			in := strings.Split(s.sh(script).out, "----\n")
			all, _ := outside(script)
			out := strings.Split(all, "----\n")
			last := "e=$(git add -A 2>&1); echo \"$e\" | sed '/^warning/d;/^hint/d;/^$/d'; git status -s" // changes something
			lines, in[len(in)-1] = append(lines, last), s.sh(last).out
			out[len(out)-1], _ = outside(last)
			for i, line := range lines {
				if in[i] == out[i] {
					continue
				}
				needed := (name == "a secret is changed" || name == "in a folder of secrets" || name == "one that isn't known") && (strings.HasPrefix(line, "git diff") || line == last)
				if !needed || !strings.Contains(in[i], ".env") && !strings.Contains(in[i], ".aws/config") || strings.Contains(in[i], "hunter2") {
					t.Errorf("%s: inside it is\n%s\nand outside\n%s", line, in[i], out[i])
				}
			}
			if r := s.sh("git add plain; git commit -qm three --allow-empty && git status -s"); r.end.Code != 0 || strings.Contains(r.out, "server.key") {
				t.Errorf("a commit: exit %d, %s", r.end.Code, r.out)
			}
		})
	}
}

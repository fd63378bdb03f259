//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/needs"
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

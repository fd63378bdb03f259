//go:build unix

package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/workspace/git"
)

// status looks until there was time enough, on a busy machine.
func status(t *testing.T, g git.Git, dir string) git.Status {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		s, err := g.Status(t.Context(), dir)
		if err == nil {
			return s
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// A status tells branch, commit and how many files have changed, and runs nothing
// that the repository configures.
func TestStatus(t *testing.T) {
	dir, g := repo(t)
	if s := status(t, g, dir); s.Branch == "" || s.Head != "" || s.Changed != 4 {
		t.Errorf("before the first commit: %+v", s)
	}
	runGit(t, dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "add", "-A")
	runGit(t, dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "commit", "-qm", "x")
	head := strings.TrimSpace(runGit(t, dir, "rev-parse", "HEAD"))
	for _, ran := range []string{".filtered", ".monitored", ".hooked"} {
		os.Remove(dir + ran)
	}
	index, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "sub/new", "x")
	put(t, dir, "a.txt", "changed")
	if s := status(t, g, dir); s.Head != head || s.Changed < 2 {
		t.Errorf("changed: %+v", s)
	}
	if s := status(t, g, filepath.Join(dir, "sub")); s.Head != head || s.Changed != 1 {
		t.Errorf("in a folder: %+v", s)
	}
	after, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	if err != nil || !slices.Equal(index, after) {
		t.Errorf("the index was written: %v", err)
	}
	for _, ran := range []string{".filtered", ".monitored", ".hooked"} {
		if _, err := os.Stat(dir + ran); err == nil {
			t.Errorf("%s: something of the repository's was run", ran)
		}
	}
	runGit(t, dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "checkout", "-q", "--detach")
	if s := status(t, g, dir); s.Branch != "" || s.Head != head {
		t.Errorf("a commit: %+v", s)
	}
	if _, err := g.Status(t.Context(), t.TempDir()); !errors.Is(err, git.ErrNone) {
		t.Errorf("no repository: %v", err)
	}
}

// A git that hangs, or isn't there, is an error, and nothing waits for it.
func TestStatusOfAGitThatHangs(t *testing.T) {
	dir, _ := repo(t)
	bin := t.TempDir()
	put(t, bin, "git", "#!/bin/sh\nsleep 600\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, err := (git.Git{Environ: []string{"PATH=" + bin + ":/bin:/usr/bin"}}).Status(t.Context(), dir); err == nil || time.Since(begun) > time.Minute {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
	if _, err := (git.Git{Environ: []string{"PATH=" + t.TempDir()}}).Status(t.Context(), dir); err == nil {
		t.Error("there is no git")
	}
}

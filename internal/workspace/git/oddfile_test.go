//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/testkit/oddfile"
	"github.com/belay-run/belay/internal/workspace/git"
)

// TestALookWaitsForNothing: whatever a program made of a file that git obeys or that names
// commits, the look afterwards ends.
// Guarantee: T115.
func TestALookWaitsForNothing(t *testing.T) {
	for _, name := range []string{".git", ".git/HEAD", ".git/packed-refs", ".git/refs/heads/x", ".git/config", ".git/commondir", ".git/hooks/pre-commit", ".gitmodules", ".gitattributes",
		"old/.git", "old/.git/config"} {
		t.Run(name, func(t *testing.T) {
			dir, _, w := space(t)
			w.Begin(t.Context(), git.Program{})
			oddfile.Each(t, filepath.Join(dir, name), func(t *testing.T, _ string) {
				w.Look(t.Context(), git.Program{}, false)
				git.Git{Environ: os.Environ()}.Open(t.Context(), filepath.Join(dir, "old")) //nolint:errcheck // it is a repository or not
			})
		})
	}
}

// TestASnapshotWaitsForNothing: what is remembered of the one before may be anything, too.
// Guarantee: T115.
func TestASnapshotWaitsForNothing(t *testing.T) {
	dir, g := repo(t)
	take(t, g, dir, "refs/belay/first")
	oddfile.Each(t, filepath.Join(dir, ".git", "belay-index"), func(t *testing.T, kind string) {
		if _, err := g.Take(t.Context(), dir, "refs/belay/second"); err != nil {
			t.Error(err)
		}
	})
}

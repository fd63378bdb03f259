//go:build unix

package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestAGitThatHangsHoldsItsTreeAlone: while git is asked about one work tree, it can be
// asked about others; who waits for that one gives up with its context.
func TestAGitThatHangsHoldsItsTreeAlone(t *testing.T) {
	needs.Program(t, "git")
	known := &Tracked{Git: Git{Environ: os.Environ()}}
	var files []string
	for range 2 {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "a.txt")
		if err := os.WriteFile(file, []byte("a\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"init", "-q", "."}, {"add", "a.txt"}} {
			if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		files = append(files, file)
	}
	unlock, err := known.trees.Lock(t.Context(), filepath.Dir(files[0])) // as git does that hangs
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if got, _ := known.Of(t.Context(), files[1:]); !slices.Equal(got, files[1:]) {
		t.Errorf("of the other tree git knows %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, _ := known.Of(ctx, files[:1]); len(got) > 0 {
		t.Errorf("of the tree that hangs: %q", got)
	}
}

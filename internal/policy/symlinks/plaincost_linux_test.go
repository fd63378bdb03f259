//go:build !race

// The race detector allocates for itself.

package symlinks_test

import (
	"testing"

	"github.com/belay-run/belay/internal/policy/symlinks"
)

// TestAPlainPathIsOneQuestion counts what a look at a path without links
// allocates: asking about each part of it makes an error for each.
func TestAPlainPathIsOneQuestion(t *testing.T) {
	ws, _ := tree(t)
	paths := []string{ws + "/sub/deep"}
	if n := testing.AllocsPerRun(100, func() {
		if got := symlinks.Look(ws, paths, false, false); got != nil {
			t.Errorf("%v", got)
		}
	}); n > 6 {
		t.Errorf("a look makes %v allocations", n)
	}
}

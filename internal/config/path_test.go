package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestARepositoryIsNoEmptyFolder: an empty .git makes no folder a workspace.
func TestARepositoryIsNoEmptyFolder(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "project", "deep")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   string
		make func(git string) error
		root string
	}{
		{outer, func(git string) error { return os.Mkdir(git, 0o555) }, dir},
		{filepath.Dir(dir), func(git string) error { return os.WriteFile(git, []byte("gitdir: x\n"), 0o644) }, filepath.Dir(dir)},
		{dir, func(git string) error { return os.Mkdir(git, 0o700) }, filepath.Dir(dir)},
		{dir, func(git string) error {
			return os.WriteFile(filepath.Join(git, "HEAD"), nil, 0o644)
		}, dir},
	} {
		if err := c.make(filepath.Join(c.at, ".git")); err != nil {
			t.Fatal(err)
		}
		if got := RepositoryOf(dir); got != c.root {
			t.Errorf("with %s/.git: got %s, want %s", c.at, got, c.root)
		}
	}
}

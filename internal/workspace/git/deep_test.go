//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/workspace/git"
)

// descend makes folders below each other, and returns the last one, open.
func descend(t *testing.T, dir string, names ...string) *os.File {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for _, name := range names {
		next := -1
		if err == nil {
			if err = unix.Mkdirat(fd, name, 0o755); err == nil || err == unix.EEXIST {
				next, err = unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			}
		}
		unix.Close(fd)
		fd = next
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "deep")
}

func times(n int, name string) (all []string) {
	for range n {
		all = append(all, name)
	}
	return all
}

// TestProtectedNamesAreMovedAsideHoweverDeep: a path may be longer than what the
// system takes in one call.
// Guarantee: T52.
func TestProtectedNamesAreMovedAsideHoweverDeep(t *testing.T) {
	for name, c := range map[string]struct {
		folders []string
		file    string
		stays   bool
		link    bool
		whole   bool // one of the folders goes
	}{
		"one letter":                    {folders: times(3000, "d"), file: ".envrc"},
		"long names":                    {folders: times(20, strings.Repeat("n", 250)), file: "AGENTS.md"},
		"just as long as one call":      {folders: times(2047, "d"), file: ".npmrc"},
		"a folder":                      {folders: append(times(2500, "d"), ".vscode", "a"), file: "tasks.json"},
		"a folder on the way":           {folders: append(append(times(1000, "d"), ".claude"), times(2000, "d")...), file: "x"},
		"a link":                        {folders: times(2500, "d"), file: ".bashrc", link: true},
		"a repository":                  {folders: append(times(2500, "d"), ".git", "hooks"), file: "pre-commit"},
		"deeper than what is looked at": {folders: times(9000, "d"), file: ".envrc", whole: true},
		"nothing of that kind":          {folders: times(3000, "d"), file: "envrc", stays: true},
		"of a package":                  {folders: append([]string{"node_modules"}, times(3000, "d")...), file: ".envrc", stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _, w := space(t)
			w.Begin(t.Context(), git.Program{})
			at := descend(t, dir, c.folders...)
			defer at.Close()
			fd := int(at.Fd())
			var err error
			if c.link {
				err = unix.Symlinkat("evil", fd, c.file)
			} else {
				var f int
				f, err = unix.Openat(fd, c.file, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o755)
				unix.Close(f)
			}
			if err != nil {
				t.Fatal(err)
			}
			moved := w.Look(t.Context(), git.Program{}, true)
			if c.stays {
				if len(moved) > 0 {
					t.Errorf("moved %d, %s", len(moved), moved[0].Why)
				}
				return
			}
			if len(moved) != 1 || moved[0].To == "" || strings.Contains(moved[0].Why, "can't be moved") {
				t.Fatalf("moved %+v", moved)
			}
			if strings.HasPrefix(moved[0].To, dir+"/") {
				t.Errorf("it is still in the workspace: %.200s", moved[0].To)
			}
			var st unix.Stat_t
			if err := unix.Fstatat(fd, c.file, &st, unix.AT_SYMLINK_NOFOLLOW); (err == nil) != (c.whole || strings.Contains(moved[0].To, ".claude") || strings.HasSuffix(moved[0].To, ".vscode")) {
				t.Errorf("after it was moved to %.200s: %v", moved[0].To, err)
			}
			w.Begin(t.Context(), git.Program{})
			if again := w.Look(t.Context(), git.Program{}, true); len(again) > 0 {
				t.Errorf("moved again: %s", filepath.Base(again[0].Path))
			}
		})
	}
}

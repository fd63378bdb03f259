//go:build unix

package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// TestRestore: a file becomes what it was if it is as it must be; what is
// neither that nor already restored is somebody's and stays, byte for byte.
// Guarantee: E43.
func TestRestore(t *testing.T) {
	const old, agent, mine = "old\n", "agent\n", "mine\n"
	for _, c := range []struct {
		name       string
		there      string // "" nothing
		mode       os.FileMode
		have, want string // contents; "" absent
		back       string // mode of what comes back
		did        bool
		code       string
		after      string
		afterMode  os.FileMode
	}{
		{name: "a changed file", there: agent, mode: 0o755, have: agent, want: old, did: true, after: old, afterMode: 0o755},
		{name: "a made file", there: agent, mode: 0o644, have: agent, did: true},
		{name: "a removed file", want: old, back: "750", did: true, after: old, afterMode: 0o750},
		{name: "restored before", there: old, mode: 0o644, have: agent, want: old, after: old, afterMode: 0o644},
		{name: "removed before", have: agent},
		{name: "changed by others", there: mine, mode: 0o600, have: agent, want: old, code: file.CodeConflict, after: mine, afterMode: 0o600},
		{name: "made by others", there: mine, mode: 0o644, want: old, code: file.CodeConflict, after: mine, afterMode: 0o644},
		{name: "removed by others", have: agent, want: old, code: file.CodeConflict},
		{name: "changed by others, to be removed", there: mine, mode: 0o644, have: agent, code: file.CodeConflict, after: mine, afterMode: 0o644},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "d", "f")
			if c.there != "" {
				put(t, path, c.there, c.mode)
			}
			r := file.Restoration{Path: "d/f", Have: file.Absent, Want: file.Absent, Mode: c.back, Mark: "m", Before: func() ([]byte, error) { return []byte(c.want), nil }}
			if c.have != "" {
				r.Have = digest(c.have)
			}
			if c.want != "" {
				r.Want = digest(c.want)
			}
			did, err := file.Restore(t.Context(), open(t, dir), r)
			if did != c.did || codeOf(err) != c.code {
				t.Errorf("did %v, %v; want %v, code %q", did, err, c.did, c.code)
			}
			b, err := os.ReadFile(path)
			if c.after == "" && !errors.Is(err, os.ErrNotExist) || string(b) != c.after {
				t.Errorf("there is %q, %v; want %q", b, err, c.after)
			}
			if info, err := os.Stat(path); err == nil && info.Mode().Perm() != c.afterMode {
				t.Errorf("mode %o, want %o", info.Mode().Perm(), c.afterMode)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "d", ".belay-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// What stands in the way of a restoration is named, and nothing is written
// through it.
func TestRestoreGoesThroughNothing(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		path string
		says string
	}{
		"a link in the way": {func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "x/f"), "agent", 0o644)
			link(t, "x", dir+"/d")
		}, "d/f", "a link leads from d/f to x/f now"},
		"a link that is it": {func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "g"), "agent", 0o644)
			link(t, "../g", dir+"/d/f")
		}, "d/f", "a link leads from d/f to g now"},
		"a link outside":      {func(t *testing.T, dir string) { link(t, "/etc", dir+"/d") }, "d/passwd", "outside the workspace"},
		"a folder":            {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "d/f/g"), "x", 0o644) }, "d/f", "is a folder"},
		"git's configuration": {func(t *testing.T, dir string) { put(t, filepath.Join(dir, ".git/config"), "x", 0o644) }, ".git/config", "is protected"},
		"a read-only file":    {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "d/f"), "agent", 0o444) }, "d/f", "is read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.make(t, dir)
			r := file.Restoration{Path: c.path, Have: digest("agent"), Want: digest("old"), Mark: "m", Before: func() ([]byte, error) { return []byte("old"), nil }}
			did, err := file.Restore(t.Context(), open(t, dir), r)
			if did || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("did %v, %v; want %q", did, err, c.says)
			}
			if _, err := file.Look(t.Context(), open(t, dir), c.path); name != "a read-only file" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("a look says %v, want %q", err, c.says)
			}
		})
	}
}

// What a crash left beside a file goes with the next attempt.
func TestRestoreCleansUpAfterACrash(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "agent", 0o644)
	fail := errors.New("no content")
	r := file.Restoration{Path: "f", Have: digest("agent"), Want: digest("old"), Mark: "m", Before: func() ([]byte, error) { return nil, fail }}
	if did, err := file.Restore(t.Context(), open(t, dir), r); did || !strings.Contains(err.Error(), "no content") {
		t.Errorf("without its content: %v, %v", did, err)
	}
	put(t, filepath.Join(dir, file.TempName("m")), "half", 0o600)
	r.Before = func() ([]byte, error) { return []byte("old"), nil }
	if did, err := file.Restore(t.Context(), open(t, dir), r); !did || err != nil {
		t.Errorf("%v, %v", did, err)
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 1 {
		t.Errorf("there are %v, %v", all, err)
	}
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Code
	}
	return ""
}

func put(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

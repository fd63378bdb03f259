//go:build unix

package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

func TestWithin(t *testing.T) {
	for _, c := range [][3]string{
		{"/w", "/w/a", "a"}, {"/w/", "/w/a/b", "a/b"}, {"/w", "/w", "."}, {"/w", "/w/", "."}, {"/w", "/w//a", "a"}, {"/w", "/w/../x", "../x"}, {"/w", "/w/l/../x", "l/../x"},
		{"/w", "/wx/a", "/wx/a"}, {"/w", "/W/a", "/W/a"}, {"/w", "a", "a"}, {"/w", "", ""}, {"/w", "/", "/"}, {"", "/a", "/a"}, {"/w", "/etc/passwd", "/etc/passwd"}, {"/w", "//w/a", "//w/a"},
	} {
		if got := file.Within(c[0], c[1]); got != c[2] {
			t.Errorf("%q in %q: %q, want %q", c[1], c[0], got, c[2])
		}
	}
}

// An absolute path into the workspace is that file; no other spelling of one gets
// out of it.
func TestAbsolutePathsOfTheWorkspaceAreItsFiles(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Know("sub/a", "one\n")
	must(t, os.WriteFile(filepath.Join(filepath.Dir(b.Dir), "outside-abs"), []byte("secret\n"), 0o600))
	t.Cleanup(func() { os.Remove(filepath.Join(filepath.Dir(b.Dir), "outside-abs")) })
	if r, err := b.Run(t.Context(), file.Read(), args{"path": filepath.Join(b.Dir, "sub/a")}); err != nil || r.Text != "one\n" || r.Files[0].Path != "sub/a" {
		t.Errorf("read: %+v, %v", r, err)
	}
	if _, err := b.Run(t.Context(), file.Write(), args{"path": b.Dir + "/sub/a", "content": "two\n"}); err != nil || b.Get("sub/a") != "two\n" {
		t.Errorf("write: %v", err)
	}
	if r, err := b.Run(t.Context(), file.List(), args{"path": b.Dir}); err != nil || r.Text == "" {
		t.Errorf("list: %+v, %v", r, err)
	}
	for _, p := range []string{b.Dir + "/../outside-abs", b.Dir + "x", "/etc/hostname", b.Dir + "/sub/../../outside-abs", "/" + b.Dir + "/../outside-abs"} {
		for name, code := range tried(t, b, p) {
			if code != file.CodeOutside {
				t.Errorf("%s %s: %s", name, p, code)
			}
		}
	}
	for name, code := range tried(t, b, b.Dir+"/.git/config") {
		if name != "read" && name != "list" && code != file.CodeProtected {
			t.Errorf("%s of git's configuration: %s", name, code)
		}
	}
}

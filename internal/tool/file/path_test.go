//go:build unix

package file_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

type args = map[string]any

// hostile is a workspace with everything that tries to lead out of it; beside
// it lies outside.txt, which nobody may see or change.
func hostile(t *testing.T) *tooltest.Bench {
	t.Helper()
	b := tooltest.NewBench(t)
	out := filepath.Dir(b.Dir)
	must(t, os.WriteFile(filepath.Join(out, "outside.txt"), []byte("secret\n"), 0o644))
	must(t, os.Mkdir(filepath.Join(out, "outdir"), 0o755))
	must(t, os.WriteFile(filepath.Join(out, "outdir", "f"), []byte("secret\n"), 0o644))
	b.Know("in.txt", "inside\n")
	b.Know("sub/deep.txt", "deep\n")
	for link, target := range map[string]string{
		"abs":          filepath.Join(out, "outside.txt"),
		"rel":          "../outside.txt",
		"absdir":       filepath.Join(out, "outdir"),
		"reldir":       "../outdir",
		"sub/up":       "../../outside.txt",
		"viasub":       "sub/up",
		"proc":         "/proc/self/root/etc/passwd",
		"selfabs":      filepath.Join(b.Dir, "in.txt"), // absolute links are never followed
		"loop1":        "loop2",
		"loop2":        "loop1",
		"self":         "self",
		"dangling-out": "../new.txt",
	} {
		must(t, os.Symlink(target, filepath.Join(b.Dir, link)))
	}
	must(t, syscall.Mkfifo(filepath.Join(b.Dir, "pipe"), 0o644))
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tried runs read, write, edit and list on a path and gives their codes.
func tried(t *testing.T, b *tooltest.Bench, path string) map[string]string {
	t.Helper()
	b.Expect[path] = file.Absent // so that it isn't a lack of knowledge that stops a write
	codes := map[string]string{}
	for _, c := range []struct {
		tool tool.Tool
		args args
	}{
		{file.Read(), args{"path": path}},
		{file.Write(), args{"path": path, "content": "pwned"}},
		{file.Edit(), args{"path": path, "old": "secret", "new": "pwned"}},
		{file.List(), args{"path": path}},
	} {
		// Not Bench.Run: what a result says of files isn't wanted here.
		r, err := c.tool.Run(t.Context(), b.Call(c.args))
		if strings.Contains(r.Text, "secret") {
			t.Errorf("%s %s shows what is outside: %q", c.tool.Spec().Name, path, r.Text)
		}
		codes[c.tool.Spec().Name] = tooltest.CodeOf(err)
	}
	return codes
}

// Guarantee: T1.
func TestNothingLeadsOut(t *testing.T) {
	b := hostile(t)
	for _, path := range []string{
		"../outside.txt", "..", "sub/../../outside.txt", "./../outside.txt", "sub/../../workspace/in.txt", "/etc/passwd", "//etc/passwd",
		b.Dir + "/../outside.txt", b.Dir + "/reldir/f", "abs", "rel", "absdir", "reldir", "absdir/f", "reldir/f", "reldir/new", "sub/up", "viasub",
		"proc", "selfabs", "dangling-out", "sub/../rel",
	} {
		for name, code := range tried(t, b, path) {
			if code != file.CodeOutside {
				t.Errorf("%s %q: got %s, want %s", name, path, code, file.CodeOutside)
			}
		}
	}
	for _, f := range []string{"outside.txt", "outdir/f"} {
		c, err := os.ReadFile(filepath.Join(filepath.Dir(b.Dir), f))
		if err != nil || string(c) != "secret\n" {
			t.Errorf("%s is %q, %v", f, c, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(b.Dir), "new.txt")); err == nil {
		t.Error("a dangling link made a file outside")
	}
	if e := tooltest.Failure(must2(file.Read().Run(t.Context(), b.Call(args{"path": "rel"})))); e.Class != tool.Denied || !strings.Contains(e.Message, "outside the workspace") {
		t.Errorf("got %+v", e)
	}
}

func must2[T any](_ T, err error) error { return err }

func TestPathsThatAreNone(t *testing.T) {
	b := hostile(t)
	for path, want := range map[string]string{
		"a\x00b":                          file.CodeBadPath,
		strings.Repeat("n", 256):          file.CodeBadPath,
		strings.Repeat("sub/", 2000):      file.CodeBadPath,
		"loop1":                           file.CodeBadLink,
		"self":                            file.CodeBadLink,
		"in.txt/below":                    file.CodeNotDirectory,
		"sub/" + strings.Repeat("ü", 128): file.CodeBadPath,
	} {
		for name, code := range tried(t, b, path) {
			if code != want {
				t.Errorf("%s %.40q: got %s, want %s", name, path, code, want)
			}
		}
	}
}

// Guarantee: T1.
func TestCleanPaths(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "./a": "a", "a//b/": "a/b", "a/../b": "b", ".": ".", "a/.": "a", "...": "...", "..a": "..a", "a/..": ".", "ä b": "ä b",
		strings.Repeat("n", 255): strings.Repeat("n", 255),
	} {
		if got, err := file.Clean(in); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "/", "/a", "..", "../a", "a/../..", "a\x00", "\xff", "\xc3/\xa4", strings.Repeat("n", 256), strings.Repeat("a/", 2049)} {
		if got, err := file.Clean(in); err == nil {
			t.Errorf("%.40q: got %q", in, got)
		}
	}
}

func TestLinksInsideAreFollowed(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Put("dir/real.txt", "one\n")
	must(t, os.Symlink("dir/real.txt", filepath.Join(b.Dir, "link")))
	must(t, os.Symlink("../dir", filepath.Join(b.Dir, "dir/again")))
	if r, err := b.Run(t.Context(), file.Read(), args{"path": "dir/again/again/../dir/real.txt"}); tooltest.CodeOf(err) != file.CodeNoSuchFile {
		t.Errorf("got %q, %v", r.Text, err)
	}
	if r, err := b.Run(t.Context(), file.Read(), args{"path": "dir/again/again/real.txt"}); err != nil || r.Text != "one\n" {
		t.Errorf("got %q, %v", r.Text, err)
	}
	if r, err := b.Run(t.Context(), file.Read(), args{"path": "link"}); err != nil || r.Text != "one\n" {
		t.Fatalf("got %q, %v", r.Text, err)
	}
	if _, err := b.Run(t.Context(), file.Write(), args{"path": "link", "content": "two\n"}); err != nil {
		t.Fatal(err)
	}
	if got := b.Get("dir/real.txt"); got != "two\n" {
		t.Errorf("the file behind the link has %q", got)
	}
	if info, err := os.Lstat(filepath.Join(b.Dir, "link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if _, err := b.Run(t.Context(), file.Edit(), args{"path": "dir/real.txt", "old": "two", "new": "three"}); err != nil {
		t.Errorf("the thread doesn't know the file under its own name: %v", err)
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	b := hostile(t)
	l, err := net.Listen("unix", filepath.Join(b.Dir, "sock"))
	must(t, err)
	defer l.Close()
	special := []string{"pipe", "sock"}
	if err := syscall.Mknod(filepath.Join(b.Dir, "null"), syscall.S_IFCHR|0o666, 1<<8|3); err == nil {
		special = append(special, "null")
	}
	for _, path := range special {
		for name, code := range tried(t, b, path) {
			want := file.CodeNotRegular
			if name == "list" {
				want = file.CodeNotDirectory
			}
			if code != want {
				t.Errorf("%s %s: got %s, want %s", name, path, code, want)
			}
		}
	}
	for name, code := range tried(t, b, "sub") {
		if want := map[string]string{"list": "ok"}[name]; code != want && code != file.CodeIsDirectory {
			t.Errorf("%s of a folder: got %s", name, code)
		}
	}
}

// Guarantee: T3.
func TestFileToolsNeverWriteCoreNames(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Know(".git/config", "x\n")
	b.Know("sub/.git/hooks/pre-commit", "x\n")
	must(t, os.Symlink(".git", filepath.Join(b.Dir, "innocent")))
	for _, path := range []string{
		".git/config", ".git/hooks/post-checkout", ".git/hooks", ".GIT/Config", ".git/config.worktree", "sub/.git/hooks/pre-commit",
		"new/.git", "new/.git/config", ".belay/store.db", ".Belay/x", "a/b/.belay", "innocent/config", "innocent/hooks/x",
		".git/modules/m/hooks/x", ".g\u200cit/config", ".git./config", ".g\u0131t/config",
	} {
		for _, c := range []struct {
			tool tool.Tool
			args args
		}{
			{file.Write(), args{"path": path, "content": "pwned"}}, {file.Edit(), args{"path": path, "old": "x", "new": "pwned"}},
		} {
			if _, err := b.Run(t.Context(), c.tool, c.args); tooltest.CodeOf(err) != file.CodeProtected {
				t.Errorf("%s %q: got %s", c.tool.Spec().Name, path, tooltest.CodeOf(err))
			}
		}
	}
	for _, path := range []string{".gitignore", ".github/hooks", "hooks/x", "config", ".belayrc", "git/config", ".git/description"} {
		if _, err := b.Run(t.Context(), file.Write(), args{"path": path, "content": "ok"}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if b.Get(".git/config") != "x\n" || b.Get("sub/.git/hooks/pre-commit") != "x\n" {
		t.Error("a protected file was changed")
	}
}

// A name flips between a file inside and a link to one outside, and a folder
// between itself and a link to one outside.
// Guarantee: T1.
func TestSwappedPathsNeverEscape(t *testing.T) {
	b := hostile(t)
	b.Put("flip/f", "inside\n")
	b.Put("name", "inside\n")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	in := func(n string) string { return filepath.Join(b.Dir, n) }
	wg.Go(func() {
		for ctx.Err() == nil {
			os.Symlink("../outside.txt", in("next"))
			os.Rename(in("next"), in("name"))
			os.WriteFile(in("next"), []byte("inside\n"), 0o644)
			os.Rename(in("next"), in("name"))
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			os.Rename(in("flip"), in("spare"))
			os.Symlink("../outdir", in("flip"))
			os.Remove(in("flip"))
			os.Rename(in("spare"), in("flip"))
		}
	})
	reads, seen, stopped := 10_000, 0, 0
	for i := 0; i < reads || (seen == 0 || stopped == 0) && i < 100*reads; i++ { // a busy machine may stop the swaps for long
		r, err := file.Read().Run(t.Context(), b.Call(args{"path": []string{"name", "flip/f"}[i%2]}))
		if strings.Contains(r.Text, "secret") {
			t.Fatalf("read %d escaped", i)
		}
		if err == nil {
			seen++
		} else if tooltest.Failure(err) == nil {
			t.Fatalf("read %d: %v", i, err)
		} else if tooltest.CodeOf(err) == file.CodeOutside {
			stopped++
		}
		if i%20 == 0 {
			name := []string{"name", "flip/f"}[i/20%2]
			b.Expect[name] = digest("inside\n")
			file.Write().Run(t.Context(), b.Call(args{"path": name, "content": "inside\n"}))
			file.Write().Run(t.Context(), b.Call(args{"path": "flip/new", "content": "x"}))
			delete(b.Expect, "flip/new")
		}
	}
	stop()
	wg.Wait()
	if seen == 0 || stopped == 0 {
		t.Errorf("%d reads met the file, %d the link: both must happen", seen, stopped)
	}
	t.Logf("%d of %d reads met the file, %d the link", seen, reads, stopped)
	for f, want := range map[string]string{"outside.txt": "secret\n", "outdir/f": "secret\n"} {
		if c, err := os.ReadFile(filepath.Join(filepath.Dir(b.Dir), f)); err != nil || string(c) != want {
			t.Errorf("%s is %q, %v", f, c, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(b.Dir), "outdir/new")); err == nil {
		t.Error("a write escaped")
	}
}

//go:build unix

package fswalk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/workspace/fswalk"
)

// tree makes files in a new folder; a name that ends with a slash is a folder.
func tree(t testing.TB, files map[string]string) (string, *os.Root) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		put(t, dir, name, content)
	}
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return dir, root
}

func put(t testing.TB, dir, name, content string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if strings.HasSuffix(name, "/") {
		must(t, os.MkdirAll(full, 0o755))
		return
	}
	must(t, os.MkdirAll(filepath.Dir(full), 0o755))
	must(t, os.WriteFile(full, []byte(content), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// visited are the paths of a walk, folders with a slash.
func visited(t testing.TB, root *os.Root, start string, o fswalk.Options) (all []string) {
	t.Helper()
	_, err := fswalk.Walk(t.Context(), root, start, o, func(e fswalk.Entry) error {
		name := e.Path
		if e.Type.IsDir() {
			name += "/"
		}
		all = append(all, name)
		return nil
	})
	must(t, err)
	return all
}

func TestWalkVisitsInOrder(t *testing.T) {
	_, root := tree(t, map[string]string{
		"b.txt": "", "a/y": "", "a/x/deep": "", "a.txt": "", ".hidden/h": "", ".env": "", ".git/HEAD": "", ".git/info/exclude": "*.log\n", "z.log": "",
		"vendor/v": "", "vendor/keep": "", ".gitignore": "vendor/\n.env\n", "a/.gitignore": "!*.log\n", "a/q.log": "", "sub/.git/HEAD": "", "sub/s": "", "empty/": "",
	})
	for _, c := range []struct {
		name, start string
		options     fswalk.Options
		want        string
	}{
		{"files", ".", fswalk.Options{}, "a/q.log a/x/deep a/y a.txt b.txt sub/s"},
		{"folders too", ".", fswalk.Options{Folders: true}, "a/ a/q.log a/x/ a/x/deep a/y a.txt b.txt empty/ sub/ sub/s"},
		{"hidden ones", ".", fswalk.Options{Hidden: true}, ".gitignore .hidden/h a/.gitignore a/q.log a/x/deep a/y a.txt b.txt sub/s"},
		{"ignored ones", ".", fswalk.Options{Ignored: true}, "a/q.log a/x/deep a/y a.txt b.txt sub/s vendor/keep vendor/v z.log"},
		{"all", ".", fswalk.Options{Ignored: true, Hidden: true, Folders: true, Depth: 1}, ".env .git/ .gitignore .hidden/ a/ a.txt b.txt empty/ sub/ vendor/ z.log"},
		{"a folder", "a", fswalk.Options{}, "a/q.log a/x/deep a/y"},
		{"a folder below, by its rules", "a/x/..", fswalk.Options{Depth: 1}, "a/q.log a/y"},
		{"an ignored folder that is asked for", "vendor", fswalk.Options{}, "vendor/keep vendor/v"},
		{"a file", "z.log", fswalk.Options{}, "z.log"},
		{"two levels", ".", fswalk.Options{Depth: 2}, "a/q.log a/y a.txt b.txt sub/s"},
		{"some folders", ".", fswalk.Options{Enter: func(p string) bool { return p != "a" }}, "a.txt b.txt sub/s"},
	} {
		if got := strings.Join(visited(t, root, c.start, c.options), " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	if _, err := fswalk.Walk(t.Context(), root, "none", fswalk.Options{}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a start that isn't there: %v", err)
	}
}

// Guarantee: T16.
func TestWalkFollowsNoLink(t *testing.T) {
	dir, root := tree(t, map[string]string{"real/f": "x", "g": "y"})
	out := t.TempDir()
	put(t, out, "secret", "s")
	must(t, os.Symlink(out, filepath.Join(dir, "abs")))
	must(t, os.Symlink("..", filepath.Join(dir, "real", "up")))
	must(t, os.Symlink("real", filepath.Join(dir, "inside")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	if got, want := strings.Join(visited(t, root, ".", fswalk.Options{Folders: true}), " "), "abs g inside pipe real/ real/f real/up"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	_, err := fswalk.Walk(t.Context(), root, ".", fswalk.Options{}, func(e fswalk.Entry) error {
		f, _, err := e.Open()
		switch e.Path {
		case "g", "real/f":
			must(t, err)
			f.Close()
		default:
			if err == nil {
				t.Errorf("%s was opened", e.Path)
			}
		}
		return nil
	})
	must(t, err)
	for _, start := range []string{"abs", "../x", "/etc"} {
		if _, err := fswalk.Walk(t.Context(), root, start, fswalk.Options{}, func(fswalk.Entry) error { t.Errorf("%s leads somewhere", start); return nil }); err == nil {
			t.Errorf("%s: no error", start)
		}
	}
	if got := strings.Join(visited(t, root, "inside", fswalk.Options{}), " "); got != "inside/f inside/up" {
		t.Errorf("a link inside that is asked for: %s", got)
	}
}

func TestWalkEnds(t *testing.T) {
	_, root := tree(t, map[string]string{"a/1": "", "a/2": "", "b/3": ""})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := fswalk.Walk(ctx, root, ".", fswalk.Options{}, func(fswalk.Entry) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%d visits, %v", n, err)
	}
	n = 0
	if _, err = fswalk.Walk(t.Context(), root, ".", fswalk.Options{}, func(fswalk.Entry) error { n++; return fswalk.SkipAll }); err != nil || n != 1 {
		t.Errorf("%d visits, %v", n, err)
	}
	if _, err = fswalk.Walk(t.Context(), root, ".", fswalk.Options{}, func(fswalk.Entry) error { return io.ErrUnexpectedEOF }); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v", err)
	}
}

func TestWalkReportsWhatItCanNotRead(t *testing.T) {
	dir, root := tree(t, map[string]string{"a": "", "gone/2": "", "here/3": ""})
	var seen []string
	r, err := fswalk.Walk(t.Context(), root, ".", fswalk.Options{}, func(e fswalk.Entry) error {
		if seen = append(seen, e.Path); e.Path == "a" {
			return os.RemoveAll(filepath.Join(dir, "gone"))
		}
		return nil
	})
	if err != nil || !slices.Equal(r.Unread, []string{"gone"}) || r.More != 0 || !slices.Equal(seen, []string{"a", "here/3"}) {
		t.Errorf("got %+v, %v, %v", r, seen, err)
	}
}

func TestWalkStopsAtADepth(t *testing.T) {
	dir, root := tree(t, nil)
	at, err := os.OpenRoot(dir)
	must(t, err)
	for range 300 {
		must(t, at.Mkdir("d", 0o755))
		next, err := at.OpenRoot("d")
		must(t, err)
		at.Close()
		at = next
	}
	at.Close()
	r, err := fswalk.Walk(t.Context(), root, ".", fswalk.Options{}, func(fswalk.Entry) error { return nil })
	if err != nil || len(r.Unread) != 1 || strings.Count(r.Unread[0], "/") != 199 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A hundred thousand files cost no more memory than a few thousand, in many
// folders or in one, and come in order.
// Guarantee: T18.
func TestAHundredThousandFilesCostLittleMemory(t *testing.T) {
	const many = 100_000
	base := ""
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		base = "/dev/shm"
	}
	for name, perFolder := range map[string]int{"in one folder": many, "in folders of a hundred": 100} {
		dir, err := os.MkdirTemp(base, "belay-walk-")
		must(t, err)
		defer os.RemoveAll(dir)
		fill(t, dir, many, perFolder)
		root, err := os.OpenRoot(dir)
		must(t, err)
		defer root.Close()
		before, peak, n, last := heap(), uint64(0), 0, ""
		_, err = fswalk.Walk(t.Context(), root, ".", fswalk.Options{}, func(e fswalk.Entry) error {
			if n++; n%9_973 == 0 {
				peak = max(peak, heap())
			}
			if e.Path <= last {
				t.Fatalf("%s after %s", e.Path, last)
			}
			last = e.Path
			return nil
		})
		must(t, err)
		grown := int64(peak) - int64(before)
		t.Logf("%s: %d files, the heap grew by %d KB", name, n, grown>>10)
		if n != many || grown > 4<<20 {
			t.Errorf("%s: %d files, the heap grew by %d bytes", name, n, grown)
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func fill(t *testing.T, dir string, many, perFolder int) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "one"), nil, 0o644))
	at := dir
	for i := range many {
		if perFolder < many && i%perFolder == 0 {
			at = filepath.Join(dir, fmt.Sprintf("d%05d", i/perFolder))
			must(t, os.Mkdir(at, 0o755))
		}
		must(t, os.Link(filepath.Join(dir, "one"), fmt.Sprintf("%s/f%06d", at, i)))
	}
	must(t, os.Remove(filepath.Join(dir, "one")))
}

// What isn't ignored is what git lists, for random trees and ignore files.
// Guarantee: T17.
func TestIgnoringIsAsGitDoesIt(t *testing.T) {
	needs.Program(t, "git")
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range rounds {
		dir, root := tree(t, nil)
		must(t, gitIn(t, dir, "init", "-q", "--template=").Run())
		made := map[string]string{".git/info/exclude": someRules(r, 2)}
		for range 1 + r.IntN(3) {
			made[filepath.Join(somePath(r, 2), ".gitignore")] = someRules(r, 6)
		}
		made[".gitignore"] = someRules(r, 6)
		for name, content := range made {
			put(t, dir, name, content)
		}
		for range 60 {
			full := filepath.Join(dir, somePath(r, 4))
			if os.MkdirAll(filepath.Dir(full), 0o755) == nil {
				os.WriteFile(full, nil, 0o644) //nolint:errcheck // it may be a folder by now
			}
		}
		out, err := gitIn(t, dir, "ls-files", "-z", "-co", "--exclude-standard").Output()
		must(t, err)
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if len(out) == 0 {
			want = nil
		}
		slices.Sort(want)
		got := visited(t, root, ".", fswalk.Options{Hidden: true})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: rules %q\nonly here: %q\nonly git: %q", seed, i, made, without(got, want), without(want, got))
		}
	}
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func gitIn(t *testing.T, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	return cmd
}

var names = strings.Fields(`a b c aa ab a.o b.o x.txt foo bar .h foo.bar [x] a-b *`)

func somePath(r *rand.Rand, deep int) string {
	parts := make([]string, 1+r.IntN(deep))
	for i := range parts {
		parts[i] = names[r.IntN(len(names))]
	}
	return strings.Join(parts, "/")
}

var patterns = strings.Fields(`* *.o a* a? [ab] [!a] [^a]* **/a a/** a/**/b **/b/** ** /** foo foo/ /foo /a/b a/b b/ *a* [[:alpha:]] [a-c]* [x \[x] \* .* foo.* a\ *.?o? [a-] []x]* aa/ ab/*.o **/ a/**/ ***/b a**b \\# \! [[:foo:]] ? ?? x.txt a-b [a-b]*[.]o`)

func someRules(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		p := patterns[r.IntN(len(patterns))]
		if r.IntN(4) == 0 {
			p = somePath(r, 3)
		}
		if r.IntN(4) == 0 {
			p = "!" + p
		}
		if r.IntN(6) == 0 {
			p = "/" + p
		}
		if r.IntN(6) == 0 {
			p += "/"
		}
		b.WriteString(p + []string{"", "", "", " ", "\r", "  "}[r.IntN(6)] + "\n")
		if r.IntN(10) == 0 {
			b.WriteString("# a*\n\n")
		}
	}
	return b.String()
}

func TestTheOtherIgnoreFileHasTheLastWord(t *testing.T) {
	_, root := tree(t, map[string]string{".gitignore": "*.log\n", ".ignore": "!a.log\nb.txt\n", "a.log": "", "b.log": "", "b.txt": "", "sub/.ignore": "!b.txt\n", "sub/b.txt": ""})
	if got, want := strings.Join(visited(t, root, ".", fswalk.Options{}), " "), "a.log sub/b.txt"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct{ pattern, yes, no string }{
		{"*.go", "a.go x/y/b.go .go", "a.gox go"},
		{"/*.go", "a.go", "x/a.go"},
		{"cmd/*.go", "cmd/a.go", "cmd/x/a.go x/cmd/a.go a.go"},
		{"**/*.go", "a.go x/a.go x/y/a.go", "a.c"},
		{"a/**", "a/b a/b/c", "a b/a/c"},
		{"a/**/z", "a/z a/b/z a/b/c/z", "z a/b"},
		{"**/test/**", "test/a x/test/a/b", "test x/test"},
		{"*.{go,mod}", "a.go go.mod x/y.mod", "a.sum"},
		{"{a,b/{c,d}}/x", "a/x b/c/x b/d/x", "b/x c/x"},
		{"{a", "{a", "a"},
		{"a{}b", "a{}b", "ab"},
		{"{a}", "{a}", "a"},
		{`\{a,b\}`, "{a,b}", "a"},
		{"[a-c]?", "ab bz", "da a abc"},
		{"[!a]", "b ü", "a bb"},
		{"?", "ü a", "ab"},
		{"[ä-ü]", "ö", "o"},
		{`a\*`, "a*", "ab"},
		{"", "", "a"},
		{"a**z", "az abcz", "a/z b"},
		{"x/*/y/**/z", "x/1/y/z x/1/y/2/3/z", "x/y/z x/1/2/y/z"},
	} {
		g, err := fswalk.NewGlob(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, p := range strings.Fields(c.yes) {
			if !g.Match(p) {
				t.Errorf("%q doesn't match %q", c.pattern, p)
			}
			for dir := filepath.Dir(p); dir != "."; dir = filepath.Dir(dir) {
				if !g.Below(dir) {
					t.Errorf("%q matches %q, and nothing below %q", c.pattern, p, dir)
				}
			}
		}
		for _, p := range strings.Fields(c.no) {
			if g.Match(p) {
				t.Errorf("%q matches %q", c.pattern, p)
			}
		}
	}
	for _, p := range []string{"[a", `a\`, strings.Repeat("{a,b}", 9), "[[:nothing:]]"} {
		if _, err := fswalk.NewGlob(p); err == nil {
			t.Errorf("%q is a pattern", p)
		}
	}
	for p, want := range map[string]bool{".github/*": true, "a/.b": true, "*.go": false, "a.b/c": false} {
		if g, _ := fswalk.NewGlob(p); g.Hidden() != want {
			t.Errorf("%q asks for hidden names: %v", p, !want)
		}
	}
	if g, _ := fswalk.NewGlob("cmd/x/*.go"); g.Below("internal") || !g.Below("cmd") || !g.Below("cmd/x") || g.Below("cmd/x/y") || g.Below("cmd/y") {
		t.Error("folders that can't match are entered, or others aren't")
	}
}

// FuzzGlob: matching ends soon, whatever the pattern, and a path that matches
// lies in folders that are entered.
func FuzzGlob(f *testing.F) {
	f.Add("**/a/**/{b,c}*", "a/x/b")
	f.Add("[!a-z]?[[:digit:]]", "A1")
	f.Add(strings.Repeat("**/a/", 20)+"z", strings.Repeat("a/", 100))
	f.Add(strings.Repeat("*a", 30)+"z", strings.Repeat("a", 200))
	f.Fuzz(func(t *testing.T, pattern, path string) {
		g, err := fswalk.NewGlob(pattern)
		if err != nil || len(pattern) > 500 || len(path) > 2000 {
			return
		}
		path = strings.Trim(filepath.Clean("/"+path), "/")
		if g.Match(path) {
			for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
				if !g.Below(dir) {
					t.Fatalf("%q matches %q, but nothing below %q", pattern, path, dir)
				}
			}
		}
	})
}

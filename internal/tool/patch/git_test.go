package patch_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/tool/patch"
)

// What git makes of two trees as a patch makes the one of the other here too:
// contents, moves, copies, new and removed files, ends without a newline.
// Guarantee: T15.
func TestAPatchOfGitMakesTheSameTree(t *testing.T) {
	needs.Program(t, "git")
	rounds := 40
	if testing.Short() {
		rounds = 20
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	repo := newRepo(t)
	for i := range rounds {
		before := anyTree(r)
		after := changed(r, before)
		d := gitDiff(t, r, repo, r.IntN(5), before, after)
		if d == "" {
			continue
		}
		got, remarks, err := apply(d, before)
		if err != nil || !maps.Equal(got, after) {
			t.Fatalf("seed %d, round %d: %v\nbefore %q\nafter %q\ngot   %q\n%s", seed, i, err, before, after, got, d)
		}
		if len(remarks) > 0 {
			t.Fatalf("seed %d, round %d: it fits, and remarks %q\n%s", seed, i, remarks, d)
		}
	}
}

// Where git applies a patch to a tree that has changed elsewhere meanwhile,
// this does the same or refuses.
// Guarantee: T15.
func TestAPatchThatMovedGoesWhereGitPutsItOrNowhere(t *testing.T) {
	needs.Program(t, "git")
	rounds := 30
	if testing.Short() {
		rounds = 15
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	same, refused := 0, 0
	repo := newRepo(t)
	for i := range rounds {
		before := files{"f": anyText(r, 30)}
		after := files{"f": someEdits(r, before["f"], 2)}
		d := gitDiff(t, r, repo, 1+r.IntN(4), before, after)
		if d == "" || before["f"] == "" || after["f"] == "" {
			continue
		}
		moved := strings.Repeat("new\n", r.IntN(6)) + before["f"]
		want, ok := gitApply(t, d, files{"f": moved})
		if !ok {
			continue
		}
		got, _, err := apply(d, files{"f": moved})
		switch {
		case err != nil:
			refused++
		case got["f"] != want["f"]:
			t.Fatalf("seed %d, round %d:\n%s\non %q\ngot  %q\nwant %q", seed, i, d, moved, got["f"], want["f"])
		default:
			same++
		}
	}
	t.Logf("%d as git does, %d refused", same, refused)
	if same < refused {
		t.Errorf("seed %d: more is refused than applied", seed)
	}
}

var words = strings.Fields("alpha beta gamma delta if else } { return x y ++y --x @@ +++ --- *** diff")

func anyText(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most) {
		switch r.IntN(8) {
		case 0:
			b.WriteString("\n")
		case 1:
			fmt.Fprintf(&b, "%s\n", words[r.IntN(len(words))])
		default:
			fmt.Fprintf(&b, "%s %s %d\n", words[r.IntN(len(words))], words[r.IntN(len(words))], r.IntN(50))
		}
	}
	s := b.String()
	if r.IntN(5) == 0 {
		s = strings.TrimSuffix(s, "\n")
	}
	return s
}

func someEdits(r *rand.Rand, s string, n int) string {
	lines := strings.SplitAfter(s, "\n")
	for range 1 + r.IntN(n) {
		at := r.IntN(len(lines))
		switch r.IntN(3) {
		case 0:
			lines[at] = anyText(r, 3) + "\n" + lines[at]
		case 1:
			lines[at] = ""
		default:
			lines[at] = "changed " + lines[at]
		}
	}
	return strings.Join(lines, "")
}

func anyTree(r *rand.Rand) files {
	f := files{}
	for range 1 + r.IntN(4) {
		f[anyName(r)] = anyText(r, 25)
	}
	return f
}

func anyName(r *rand.Rand) string {
	return []string{"a", "b", "a b", "ü", "dir/f", "dir/sub/g", "B/b", `q"q`, "tab\tx"}[r.IntN(9)] + []string{"", ".txt", "2"}[r.IntN(3)]
}

func changed(r *rand.Rand, before files) files {
	after := maps.Clone(before)
	for name, content := range before {
		switch r.IntN(7) {
		case 0:
			delete(after, name)
		case 1:
			delete(after, name)
			after["moved/"+name] = content
		case 2:
			delete(after, name)
			after["moved/"+name] = someEdits(r, content, 1)
		case 3:
			after["copy/"+name] = content
		case 4:
		default:
			after[name] = someEdits(r, content, 4)
		}
	}
	if r.IntN(2) == 0 {
		after["new/"+anyName(r)] = anyText(r, 9)
	}
	return after
}

func git(t *testing.T, dir, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "core.autocrlf=false", "-c", "core.quotepath=true", "-c", "init.defaultBranch=main", "-c", "core.fsync=none"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+dir)
	out, err := cmd.Output()
	return string(out), err
}

func write(t *testing.T, dir string, f files) {
	t.Helper()
	for name, content := range f {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// gitDiff is what git says about two trees; repo is an empty repository.
func gitDiff(t *testing.T, r *rand.Rand, repo string, context int, before, after files) string {
	t.Helper()
	args := []string{"diff-tree", "-r", "-p", "--text", fmt.Sprintf("-U%d", context)}
	if r.IntN(2) == 0 {
		args = append(args, "-M", "-C", "--find-copies-harder")
	}
	d, err := git(t, repo, "", append(args, treeOf(t, repo, before), treeOf(t, repo, after))...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newRepo is an empty repository.
func newRepo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := git(t, dir, "", "init", "-q", "--template="); err != nil {
		t.Fatal(err)
	}
	return dir
}

// treeOf makes a tree of files in a repository and gives its name.
func treeOf(t *testing.T, repo string, f files) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, f)
	if err := os.RemoveAll(filepath.Join(repo, ".git", "index")); err != nil {
		t.Fatal(err)
	}
	base := []string{"--git-dir=" + filepath.Join(repo, ".git"), "--work-tree=" + dir}
	if _, err := git(t, dir, "", append(base, "add", "-A")...); err != nil {
		t.Fatal(err)
	}
	out, err := git(t, dir, "", append(base, "write-tree")...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func gitApply(t *testing.T, d string, before files) (files, bool) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, before)
	if _, err := git(t, dir, d, "apply", "-"); err != nil {
		return nil, false
	}
	after := files{}
	for name := range before {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, false
		}
		after[name] = string(b)
	}
	return after, true
}

// FuzzApply: a patch is refused or gives contents whose lines are lines of the
// old content or of the patch, in that file, and names nothing it doesn't touch.
func FuzzApply(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n", "1\n2\n3\n")
	f.Add("*** Begin Patch\n*** Update File: f\n@@ 1\n-2\n+two\n*** End of File\n*** End Patch", "1\r\n2\r\n")
	f.Add("diff --git a/f b/g\nrename from f\nrename to g\n", "x")
	f.Add("--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", "")
	f.Add("*** Begin Patch\n*** Add File: g\n+x\n*** Delete File: f\n*** End Patch", "1")
	f.Fuzz(func(t *testing.T, text, content string) {
		p, err := patch.Parse(text)
		if err != nil {
			return
		}
		a, err := p.Apply(func(name string) (string, bool, error) { return content, name == "f", nil })
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, n := range p.Names() {
			names[n] = true
		}
		known := map[string]bool{"": true}
		for l := range strings.SplitSeq(content+"\n"+text, "\n") {
			for _, s := range []string{l, strings.TrimPrefix(l, "\ufeff")} {
				known[strings.TrimRight(s, "\r")] = true
				if s != "" {
					known[strings.TrimRight(s[1:], "\r")] = true
				}
			}
		}
		for _, c := range a.Changes {
			if !names[c.Name] || c.Was != (c.Name == "f") || !c.Was && !c.Is {
				t.Fatalf("%q on %q: change %+v of %v", text, content, c, p.Names())
			}
			for l := range strings.SplitSeq(c.After, "\n") {
				if !known[strings.TrimRight(l, "\r")] {
					t.Fatalf("%q on %q: line %q comes from nowhere", text, content, l)
				}
			}
		}
	})
}

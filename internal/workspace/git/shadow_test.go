//go:build unix

package git_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/workspace/git"
)

// repo is a repository with everything that must be neither run nor changed.
func repo(t *testing.T) (dir string, g git.Git) {
	t.Helper()
	needs.Program(t, "git")
	dir = t.TempDir()
	runGit(t, dir, "init", "-q", ".")
	runGit(t, dir, "config", "user.name", "somebody")
	runGit(t, dir, "config", "user.email", "somebody@localhost")
	runGit(t, dir, "config", "filter.loud.clean", "tr a-z A-Z; touch "+dir+".filtered")
	runGit(t, dir, "config", "core.autocrlf", "input")
	runGit(t, dir, "config", "core.fsmonitor", "touch "+dir+".monitored")
	put(t, dir, ".gitattributes", "*.up filter=loud\n*.txt text eol=lf\n")
	put(t, dir, ".gitignore", "ignored\n")
	put(t, dir, "a.txt", "one\r\ntwo\r\n")
	put(t, dir, "b.up", "quiet")
	put(t, dir, "ignored", "x")
	for _, hook := range []string{"post-index-change", "reference-transaction", "pre-commit", "post-commit"} {
		put(t, dir, ".git/hooks/"+hook, "#!/bin/sh\ntouch "+dir+".hooked\n")
		os.Chmod(filepath.Join(dir, ".git/hooks", hook), 0o755)
	}
	return dir, git.Git{Environ: os.Environ()}
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, g git.Git, dir, ref string) string {
	t.Helper()
	c, err := g.Take(t.Context(), dir, ref)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestASnapshotKeepsContentsAndNothingElse: bytes as they are, and neither the
// person's index, HEAD, configuration and branches change nor is anything run
// that the repository configures.
// Guarantee: E47.
func TestASnapshotKeepsContentsAndNothingElse(t *testing.T) {
	dir, g := repo(t)
	put(t, dir, "staged", "staged")
	index, _ := os.ReadFile(filepath.Join(dir, ".git/index"))
	config, _ := os.ReadFile(filepath.Join(dir, ".git/config"))
	head, _ := os.ReadFile(filepath.Join(dir, ".git/HEAD"))

	first := take(t, g, dir, git.Ref("sess_1", "turn_1", "before"))
	put(t, dir, "a.txt", "three\r\n")
	put(t, dir, "new/ü.bin", "\x00\x01")
	os.Remove(filepath.Join(dir, "b.up"))
	put(t, dir, "ignored", "y")
	second := take(t, g, dir, git.Ref("sess_1", "turn_1", "after"))

	changes, err := g.Diff(t.Context(), dir, first, second)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		was, is := "-", "-"
		for e, s := range map[*git.Entry]*string{c.From: &was, c.To: &is} {
			if e == nil {
				continue
			}
			b, err := g.Read(t.Context(), dir, e)
			if err != nil {
				t.Fatal(err)
			}
			*s = fmt.Sprintf("%q", b)
		}
		got = append(got, c.Path+" "+was+" "+is)
	}
	want := `a.txt "one\r\ntwo\r\n" "three\r\n"` + "\n" + `b.up "quiet" -` + "\n" + `new/ü.bin - "\x00\x01"`
	if strings.Join(got, "\n") != want {
		t.Errorf("changed\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	for name, was := range map[string][]byte{"index": index, "config": config, "HEAD": head} {
		if is, _ := os.ReadFile(filepath.Join(dir, ".git", name)); string(is) != string(was) {
			t.Errorf(".git/%s was changed", name)
		}
	}
	for _, trace := range []string{".filtered", ".hooked", ".monitored"} {
		if _, err := os.Stat(dir + trace); err == nil {
			t.Errorf("%s: something that the repository configures was run", trace)
		}
	}
	if refs := runGit(t, dir, "-c", "core.fsmonitor=false", "for-each-ref", "--format=%(refname)"); refs != "refs/belay/sess_1/turn_1/after\nrefs/belay/sess_1/turn_1/before\n" {
		t.Errorf("refs:\n%s", refs)
	}
}

// The same files are the same commit, so taking one again after a crash
// changes nothing; a folder of the repository is kept by itself.
func TestTheSameFilesAreTheSameSnapshot(t *testing.T) {
	dir, g := repo(t)
	put(t, dir, "sub/x", "1")
	if a, b := take(t, g, dir, git.Ref("s", "t", "before")), take(t, g, dir, git.Ref("s", "t", "before")); a != b {
		t.Errorf("%s, then %s", a, b)
	}
	sub := filepath.Join(dir, "sub")
	a := take(t, g, sub, git.Ref("s", "t", "a"))
	put(t, dir, "sub/x", "2")
	b := take(t, g, sub, git.Ref("s", "t", "b"))
	changes, err := g.Diff(t.Context(), sub, a, b)
	if err != nil || len(changes) != 1 || changes[0].Path != "x" {
		t.Errorf("below a folder: %+v, %v", changes, err)
	}
}

// TestWhatIsWrittenInTheSameSecondIsKept: writes of the same sizes, whenever they are made and
// whatever time the file is given with them, as cp -p does: a snapshot has each.
// Guarantee: E47.
func TestWhatIsWrittenInTheSameSecondIsKept(t *testing.T) {
	dir, g := repo(t)
	names := []string{"a.txt", "b.up", "sub/c d"}
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Now().Truncate(time.Second) // of all writes
		contents := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 2, 2, -1)
		for range rapid.IntRange(2, 4).Draw(rt, "snapshots") {
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(rt, "written") {
				put(t, dir, name, contents.Draw(rt, "content"))
				if at := rapid.SampledFrom([]time.Time{{}, now, then}).Draw(rt, "time"); !at.IsZero() {
					if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
						rt.Fatal(err)
					}
				}
			}
			c := take(t, g, dir, git.Ref("same"))
			for _, name := range names {
				there, err := os.ReadFile(filepath.Join(dir, name))
				kept, missing := exec.Command("git", "-C", dir, "cat-file", "blob", c+":"+name).Output()
				if (err == nil) != (missing == nil) || string(kept) != string(there) {
					rt.Fatalf("%s is %q, and was kept as %q", name, there, kept)
				}
			}
		}
	})
}

func TestWithoutARepositoryThereIsNoSnapshot(t *testing.T) {
	needs.Program(t, "git")
	dir := t.TempDir()
	err := git.Git{Environ: os.Environ()}.Check(t.Context(), dir)
	if belay.CodeOf(err) != belay.CodeWorkspace || !strings.Contains(err.Error(), "it is in no git repository") {
		t.Errorf("%v", err)
	}
	if err := (git.Git{Environ: []string{"PATH=" + dir}}).Check(t.Context(), dir); belay.CodeOf(err) != belay.CodeUsage {
		t.Errorf("without git: %v", err)
	}
}

func TestNamesOfSnapshotsAreNamesForGit(t *testing.T) {
	for _, id := range []string{"a:b", "a..b", ".a", "a.", "a.lock", "-a", "x"} {
		ref := git.Ref("s", id)
		if strings.ContainsAny(ref, ":~^ ") || strings.Contains(ref, "..") || strings.HasSuffix(ref, ".lock") || strings.HasSuffix(ref, ".") || strings.Contains(ref, "/.") {
			t.Errorf("%q becomes %q", id, ref)
		}
	}
}

// A repository inside the workspace is kept as what it is at, and isn't asked.
// Guarantee: T90.
func TestARepositoryInsideRunsNothing(t *testing.T) {
	dir, g := repo(t)
	sub := filepath.Join(dir, "sub")
	put(t, dir, "sub/a", "a\n")
	put(t, dir, "sub/.gitattributes", "* filter=evil\n")
	runGit(t, sub, "init", "-q")
	runGit(t, sub, "add", ".")
	runGit(t, sub, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
	runGit(t, dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "sub")
	ran := filepath.Join(dir, "ran")
	for _, k := range []string{"filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"} {
		runGit(t, sub, "config", k, "touch "+ran+"; cat")
	}
	for i, text := range []string{"b\n", "c\n"} {
		put(t, dir, "sub/a", text)
		if _, err := g.Take(t.Context(), dir, git.Ref("s", "t", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("what the repository inside configures ran")
	}
}

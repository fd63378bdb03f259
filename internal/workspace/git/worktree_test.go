package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/workspace/git"
)

// env is a person's, and what a hook of git would add.
func env(t *testing.T) []string {
	return append(os.Environ(), "HOME="+t.TempDir(), "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere/index")
}

// repository is one with a commit, and with hooks that leave a trace.
func repository(t *testing.T) string {
	t.Helper()
	needs.Program(t, "git")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "a.txt", "a\n")
	gitIn(t, dir, "init", "-q", "-b", "main", ".")
	commit(t, dir)
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction"} {
		put(t, dir, ".git/hooks/"+hook, "#!/bin/sh\ntouch "+dir+"/hook-ran\n")
		if err := os.Chmod(filepath.Join(dir, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "core.hooksPath=/dev/null"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func commit(t *testing.T, dir string) {
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "change")
}

// plan is a worktree of a repository that isn't made yet.
func plan(t *testing.T, g git.Git, dir string) belay.Worktree {
	t.Helper()
	root, base, err := g.Base(t.Context(), dir)
	if err != nil || root != dir || base == "" {
		t.Fatalf("base %q %q: %v", root, base, err)
	}
	return belay.Worktree{Repository: root, Path: filepath.Join(dir+"-worktrees", "one"), Branch: "belay/one", Base: base}
}

func TestAWorktreeComesAndGoesWithItsBranch(t *testing.T) {
	dir := repository(t)
	g := git.Git{Environ: env(t)}
	w := plan(t, g, dir)
	for range 2 { // the second time it is there already
		if err := g.AddWorktree(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if !there(filepath.Join(w.Path, "a.txt")) || gitIn(t, w.Path, "branch", "--show-current") != w.Branch {
		t.Error("the worktree isn't what it should be")
	}
	kept, err := g.RemoveWorktree(t.Context(), w, false)
	if err != nil || kept || there(w.Path) || gitIn(t, dir, "branch", "--list", "belay/*") != "" {
		t.Errorf("kept %v, %v", kept, err)
	}
	if there(filepath.Join(dir, "hook-ran")) {
		t.Error("a hook of the repository ran")
	}
}

// Guarantee: E21.
// TestAWorktreeHasAPlaceOfItsOwnWhateverItsIDIs: callers may name sessions and agents as
// they like.
func TestAWorktreeHasAPlaceOfItsOwnWhateverItsIDIs(t *testing.T) {
	dir := repository(t)
	g, store := git.Git{Environ: env(t)}, filepath.Join(t.TempDir(), "store")
	seen := map[string]bool{}
	for _, id := range []string{"x", "y", ".", "..", "a..b.lock", "-rf", "a:b", "sub_1d5c8c75-9e4f-8b07-af77-970b0497f09a", "one-970b0497f09a", "two-970b0497f09a", strings.Repeat("a", 128)} {
		w, inside, err := g.PlanWorktree(t.Context(), dir, store, id)
		if err == nil {
			err = g.AddWorktree(t.Context(), w)
		}
		if err != nil || inside != w.Path || filepath.Dir(w.Path) != store+"-worktrees" || seen[w.Path] || seen[w.Branch] {
			t.Errorf("%s: %+v in %s, %v", id, w, inside, err)
		}
		seen[w.Path], seen[w.Branch] = true, true
		if at := gitIn(t, w.Path, "symbolic-ref", "--short", "HEAD"); at != w.Branch {
			t.Errorf("%s: it is on branch %s", id, at)
		}
	}
}

func TestChangesInAWorktreeAreNotRemoved(t *testing.T) {
	dir := repository(t)
	g := git.Git{Environ: env(t)}
	w := plan(t, g, dir)
	if err := g.AddWorktree(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	put(t, w.Path, "new file", "n")
	put(t, w.Path, "a.txt", "changed")
	if files, err := g.Changes(t.Context(), w.Path); err != nil || len(files) != 2 || files[1] != "new file" {
		t.Errorf("changes %q, %v", files, err)
	}
	if _, err := g.RemoveWorktree(t.Context(), w, false); belay.CodeOf(err) != belay.CodeBadState || !there(filepath.Join(w.Path, "new file")) {
		t.Fatalf("a worktree with changes: %v", err)
	}
	commit(t, w.Path)
	kept, err := g.RemoveWorktree(t.Context(), w, false)
	if err != nil || !kept || there(w.Path) || gitIn(t, dir, "branch", "--list", "belay/*") == "" {
		t.Errorf("after a commit: kept %v, %v", kept, err)
	}
	if err := g.AddWorktree(t.Context(), w); err != nil || !there(filepath.Join(w.Path, "new file")) {
		t.Fatalf("made again on its branch: %v", err)
	}
	put(t, w.Path, "a.txt", "changed again")
	if _, err := g.RemoveWorktree(t.Context(), w, true); err != nil || there(w.Path) {
		t.Errorf("by force: %v", err)
	}
}

func TestAFolderThatVanishedIsMadeAgain(t *testing.T) {
	dir := repository(t)
	g := git.Git{Environ: env(t)}
	w := plan(t, g, dir)
	for range 2 {
		if err := g.AddWorktree(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(w.Path); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := g.RemoveWorktree(t.Context(), w, false); err != nil || kept {
		t.Errorf("kept %v, %v", kept, err)
	}
}

func TestWhatHasNoWorktreeSaysWhatElseThereIs(t *testing.T) {
	needs.Program(t, "git")
	dir := t.TempDir()
	g := git.Git{Environ: env(t)}
	_, _, err := g.Base(t.Context(), dir)
	e, ok := err.(*belay.Error)
	if !ok || e.Code != belay.CodeWorkspace || !strings.Contains(e.Message, "not a git repository") || !strings.Contains(e.Hint, "--share") {
		t.Errorf("no repository: %#v", err)
	}
	gitIn(t, dir, "init", "-q", ".")
	if _, _, err = g.Base(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "no commit yet") {
		t.Errorf("no commit: %v", err)
	}
}

// TestWhatARepositoryConfiguresIsntRun plants programs in everything that the
// calls of a worktree's life read, also through includes and a submodule, and
// indirections that git didn't make.
// Guarantee: T90.
func TestWhatARepositoryConfiguresIsntRun(t *testing.T) {
	dir := repository(t)
	g := git.Git{Environ: env(t)}
	ran := "touch " + dir + "/ran; cat"
	put(t, dir, ".gitattributes", "* filter=evil\n*.x filter=more diff=evil merge=evil\n")
	put(t, dir, "b.x", "b\n")
	commit(t, dir)
	put(t, dir, "more", "[filter \"more\"]\n\tsmudge = "+ran+"\n\tclean = "+ran+"\n\trequired\n[core]\n\tsshCommand = "+ran+"\n")
	for _, kv := range [][2]string{
		{"filter.evil.smudge", ran}, {"filter.evil.clean", ran}, {"filter.evil.process", ran}, {"filter.evil.required", "true"}, {"filter.a=b.smudge", ran},
		{"core.fsmonitor", ran}, {"core.hooksPath", dir}, {"diff.external", ran}, {"diff.evil.textconv", ran}, {"merge.evil.driver", ran}, {"core.pager", ran}, {"core.editor", ran},
		{"credential.helper", "!" + ran}, {"gpg.program", ran}, {"commit.gpgSign", "true"}, {"alias.worktree", "!" + ran}, {"alias.status", "!" + ran}, {"protocol.ext.allow", "always"},
		{"includeIf.gitdir:" + dir + "/.path", "../more"}, {"include.path", "../more"},
	} {
		gitIn(t, dir, "config", kv[0], kv[1])
	}
	w := plan(t, g, dir)
	if err := g.AddWorktree(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	put(t, w.Path, "b.x", "changed\n")
	gitIn(t, dir, "-c", "core.fsmonitor=false", "init", "-q", filepath.Join(w.Path, "sub"))
	sub := filepath.Join(w.Path, "sub")
	gitIn(t, sub, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "one")
	put(t, sub, "a", "a\n")
	put(t, sub, ".gitattributes", "* filter=evil\n")
	put(t, w.Path, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n")
	gitIn(t, w.Path, "-c", "core.fsmonitor=false", "-c", "filter.evil.required=false", "-c", "filter.evil.process=", "-c", "filter.evil.clean=", "add", "sub")
	for _, k := range []string{"filter.evil.clean", "core.fsmonitor"} {
		gitIn(t, sub, "config", k, ran)
	}
	if files, err := g.Changes(t.Context(), w.Path); err != nil || len(files) != 3 {
		t.Errorf("changes %q, %v", files, err)
	}
	if _, err := g.RemoveWorktree(t.Context(), w, true); err != nil {
		t.Error(err)
	}
	if there(filepath.Join(dir, "ran")) {
		t.Error("something ran")
	}
	for name, plant := range map[string]func(dir string){
		"commondir": func(dir string) { put(t, dir, ".git/commondir", "../evil\n") },
		"gitdir": func(dir string) {
			if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "evil")); err != nil {
				t.Fatal(err)
			}
			put(t, dir, ".git", "gitdir: evil\n")
		},
		"a link": func(dir string) {
			if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "evil")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("evil", filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		},
		"a configuration that nobody can read": func(dir string) { put(t, dir, ".git/config", "[core\n") },
	} {
		dir := repository(t)
		plant(dir)
		if _, _, err := g.Base(t.Context(), dir); belay.CodeOf(err) != belay.CodeGitUnsafe {
			t.Errorf("%s: %v", name, err)
		}
	}
}

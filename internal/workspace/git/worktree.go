//go:build unix

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
)

// A worktree is what a session works in. Changes in it are never removed unless that
// is demanded, and making one that exists already changes nothing.

// in returns what git printed in the repository that dir is in; an error holds
// what it complained about.
func (g Git) in(ctx context.Context, dir string, args ...string) (string, error) {
	r, err := g.Open(ctx, dir)
	if err != nil {
		return "", err
	}
	out, err := r.Run(ctx, args...)
	return strings.TrimRight(string(out), "\n"), err
}

// refused is the error of git as the caller has it: a refusal to run it stays
// what it is.
func refused(err error, code belay.Code, at, format string) *belay.Error {
	if e, ok := errors.AsType[*belay.Error](err); ok {
		return e
	}
	return belay.Errorf(code, format, err).At(at)
}

// alternatives to a worktree.
const alternatives = "leave --worktree out: the session then reads only while another one writes; or --share to write beside it"

// Base is the root of the repository that dir is in, and the commit that is
// checked out there.
func (g Git) Base(ctx context.Context, dir string) (root, commit string, err error) {
	r, err := g.Open(ctx, dir)
	if err != nil {
		return "", "", refused(err, belay.CodeWorkspace, dir, "a worktree can't be made: %v").WithHint("%s", alternatives)
	}
	commit, err = g.in(ctx, r.Top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil || commit == "" {
		return "", "", belay.Errorf(belay.CodeWorkspace, "a worktree can't be made: the repository has no commit yet").At(r.Top).WithHint("make a first commit, or %s", alternatives)
	}
	return r.Top, commit, nil
}

// PlanWorktree is the worktree for something with an id that works in ws, beside the
// store, and the folder in it that ws is. Nothing is made yet.
func (g Git) PlanWorktree(ctx context.Context, ws, store, id string) (t belay.Worktree, inside string, err error) {
	root, base, err := g.Base(ctx, ws)
	if err != nil {
		return t, "", err
	}
	folder, end := worktreeNames(id)
	t = belay.Worktree{Repository: root, Path: filepath.Join(store+"-worktrees", folder), Branch: "belay/" + end, Base: base}
	rel, err := filepath.Rel(root, ws)
	return t, filepath.Join(t.Path, rel), err
}

// worktreeNames are the folder and the end of the branch of an id's worktree. An id that a
// caller made up may be anything, also .. or a name that git has no branch of: its digest
// stands for it.
func worktreeNames(id string) (folder, branch string) {
	kind, number, _ := strings.Cut(id, "_")
	if strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && len(number) == 36 && strings.Trim(number, "0123456789abcdef-") == "" {
		return id, number[24:]
	}
	digest := belay.DigestOf([]byte(id)).Short()
	return "id-" + digest, digest
}

// difference is how a worktree differs from where it began: what was committed and what
// wasn't, without what git ignores.
func (g Git) difference(ctx context.Context, t belay.Worktree) (d belay.Diffstat, files []string, err error) {
	out, err := g.in(ctx, t.Path, "diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", t.Base)
	if err == nil {
		var others string
		if others, err = g.in(ctx, t.Path, "ls-files", "-z", "--others", "--exclude-standard"); err == nil {
			for _, name := range strings.Split(strings.TrimSuffix(others, "\x00"), "\x00") {
				if name != "" {
					out += fmt.Sprintf("%d\t0\t%s\x00", linesOf(filepath.Join(t.Path, name)), name)
				}
			}
		}
	}
	if err != nil {
		return d, nil, refused(err, belay.CodeWorkspace, t.Path, "git can't say what changed: %v")
	}
	for _, row := range strings.Split(out, "\x00") {
		f := strings.SplitN(row, "\t", 3)
		if len(f) < 3 {
			continue
		}
		more, _ := strconv.Atoi(f[0]) // a hyphen for binary files
		less, _ := strconv.Atoi(f[1])
		d.Files, d.Insertions, d.Deletions = d.Files+1, d.Insertions+more, d.Deletions+less
		files = append(files, f[2])
	}
	slices.Sort(files)
	return d, files, nil
}

// SettleWorktree removes a worktree in which nothing was changed or committed since it was
// made, with its branch, unless keep; of another one it says what was changed.
func (g Git) SettleWorktree(ctx context.Context, t belay.Worktree, keep bool) (belay.Worktree, belay.Diffstat, []string, error) {
	if _, err := os.Lstat(t.Path); err != nil { // it was never used, or a person removed it
		_, err := g.RemoveWorktree(ctx, t, false)
		t.Removed = err == nil
		return t, belay.Diffstat{}, nil, err
	}
	d, files, err := g.difference(ctx, t)
	if err != nil || d.Files > 0 || keep {
		return t, d, files, err
	}
	head, err := g.in(ctx, t.Path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil || head != t.Base || g.tip(ctx, t) != t.Base {
		return t, d, files, nil
	}
	if _, err = g.RemoveWorktree(ctx, t, false); err != nil {
		return t, d, files, err
	}
	t.Removed = true
	return t, d, files, nil
}

// linesOf counts the lines of a new file; 0 of one that isn't small and plain.
func linesOf(path string) int {
	b, err := readPlain(path)
	if err != nil || bytes.IndexByte(b, 0) >= 0 {
		return 0
	}
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// Changes are the files of a worktree that differ from its last commit.
func (g Git) Changes(ctx context.Context, path string) ([]string, error) {
	out, err := g.in(ctx, path, "status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty")
	if err != nil {
		return nil, refused(err, belay.CodeWorkspace, path, "git can't say what changed: %v")
	}
	var files []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) > 3 {
			files = append(files, entry[3:])
		}
	}
	return files, nil
}

// AddWorktree makes a worktree and its branch, unless they are there.
func (g Git) AddWorktree(ctx context.Context, t belay.Worktree) error {
	if r, err := g.Open(ctx, t.Path); err == nil && r.Top == t.Path {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(t.Path), 0o700); err != nil {
		return belay.Errorf(belay.CodeWorkspace, "no place for the worktree").At(t.Path).Wrap(err).WithHint("%s", alternatives)
	}
	args := []string{"worktree", "add", "--quiet", "--force", "-b", t.Branch, t.Path, t.Base}
	if g.tip(ctx, t) != "" { // made before, and its folder is gone
		args = []string{"worktree", "add", "--quiet", "--force", t.Path, t.Branch}
	}
	if _, err := g.in(ctx, t.Repository, args...); err != nil {
		return refused(err, belay.CodeWorkspace, t.Path, "the worktree can't be made: %v").WithHint("%s", alternatives)
	}
	return nil
}

// tip is the commit a worktree's branch is at; empty when there is none.
func (g Git) tip(ctx context.Context, t belay.Worktree) string {
	tip, err := g.in(ctx, t.Repository, "rev-parse", "--verify", "--quiet", "refs/heads/"+t.Branch)
	if err != nil {
		return ""
	}
	return tip
}

// RemoveWorktree takes a worktree away. One with changes that are in no commit stays,
// unless force. Its branch goes too if nothing was committed to it; else it is
// kept.
func (g Git) RemoveWorktree(ctx context.Context, t belay.Worktree, force bool) (kept bool, err error) {
	if _, err := os.Lstat(t.Path); err == nil {
		if err := g.removeFolder(ctx, t, force); err != nil {
			return false, err
		}
	} else if _, err := g.in(ctx, t.Repository, "worktree", "prune"); err != nil {
		return false, nil // the repository is gone too
	}
	switch g.tip(ctx, t) {
	case "":
		return false, nil
	case t.Base:
		_, err := g.in(ctx, t.Repository, "branch", "--quiet", "-D", t.Branch)
		return err != nil, nil
	}
	return true, nil
}

func (g Git) removeFolder(ctx context.Context, t belay.Worktree, force bool) error {
	if !force {
		files, err := g.Changes(ctx, t.Path)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			return belay.Errorf(belay.CodeBadState, "it has %d changed files that are in no commit, such as %q", len(files), files[0]).
				At(t.Path).WithHint("commit them there, or remove it with --force")
		}
	}
	args := []string{"worktree", "remove", t.Path}
	if force {
		args = []string{"worktree", "remove", "--force", "--force", t.Path}
	}
	if _, err := g.in(ctx, t.Repository, args...); err != nil {
		return refused(err, belay.CodeBadState, t.Path, "the worktree can't be removed: %v").WithHint("look at what is there, then remove the folder by hand")
	}
	return nil
}

//go:build unix

package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

// Package worktree makes and removes the git worktrees that sessions work in,
// by the git program of the machine. It promises: nothing of the repository's
// own programs runs (its hooks are off), what somebody changed in a worktree is
// never removed unless that is demanded, and making one that is there already
// changes nothing. It knows nothing of sessions.
package worktree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
)

// Git is the git program in an environment.
type Git struct{ env []string }

// New takes an environment without what points git to another repository.
func New(environ []string) Git {
	env := []string{"GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "LC_ALL=") {
			env = append(env, kv)
		}
	}
	return Git{env}
}

// run returns what git printed; an error holds what it complained about.
func (g Git) run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...)...)
	cmd.Env = g.env
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimRight(string(out), "\n"), nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		return "", errors.New(strings.TrimPrefix(line, "fatal: "))
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("git is not installed")
	}
	return "", err
}

// alternatives to a worktree.
const alternatives = "leave --worktree out: the session then reads only while another one writes; or --share to write beside it"

// Base is the root of the repository that dir is in, and the commit that is
// checked out there.
func (g Git) Base(ctx context.Context, dir string) (root, commit string, err error) {
	root, err = g.run(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", "", belay.Errorf(belay.CodeWorkspace, "a worktree can't be made: %v", err).At(dir).WithHint("%s", alternatives)
	}
	commit, err = g.run(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil || commit == "" {
		return "", "", belay.Errorf(belay.CodeWorkspace, "a worktree can't be made: the repository has no commit yet").At(root).WithHint("make a first commit, or %s", alternatives)
	}
	return root, commit, nil
}

// Changes are the files of a worktree that differ from its last commit.
func (g Git) Changes(ctx context.Context, path string) ([]string, error) {
	out, err := g.run(ctx, path, "status", "--porcelain", "-z", "--no-renames")
	if err != nil {
		return nil, belay.Errorf(belay.CodeWorkspace, "git can't say what changed: %v", err).At(path)
	}
	var files []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) > 3 {
			files = append(files, entry[3:])
		}
	}
	return files, nil
}

// Add makes a worktree and its branch, unless they are there.
func (g Git) Add(ctx context.Context, t belay.Worktree) error {
	if top, err := g.run(ctx, t.Path, "rev-parse", "--show-toplevel"); err == nil && top == t.Path {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(t.Path), 0o700); err != nil {
		return belay.Errorf(belay.CodeWorkspace, "no place for the worktree").At(t.Path).Wrap(err).WithHint("%s", alternatives)
	}
	args := []string{"worktree", "add", "--quiet", "--force", "-b", t.Branch, t.Path, t.Base}
	if g.tip(ctx, t) != "" { // made before, and its folder is gone
		args = []string{"worktree", "add", "--quiet", "--force", t.Path, t.Branch}
	}
	if _, err := g.run(ctx, t.Repository, args...); err != nil {
		return belay.Errorf(belay.CodeWorkspace, "the worktree can't be made: %v", err).At(t.Path).WithHint("%s", alternatives)
	}
	return nil
}

// tip is the commit a worktree's branch is at; empty when there is none.
func (g Git) tip(ctx context.Context, t belay.Worktree) string {
	tip, err := g.run(ctx, t.Repository, "rev-parse", "--verify", "--quiet", "refs/heads/"+t.Branch)
	if err != nil {
		return ""
	}
	return tip
}

// Remove takes a worktree away. One with changes that are in no commit stays,
// unless force. Its branch goes too if nothing was committed to it; else it is
// kept.
func (g Git) Remove(ctx context.Context, t belay.Worktree, force bool) (kept bool, err error) {
	if _, err := os.Lstat(t.Path); err == nil {
		if err := g.removeFolder(ctx, t, force); err != nil {
			return false, err
		}
	} else if _, err := g.run(ctx, t.Repository, "worktree", "prune"); err != nil {
		return false, nil // the repository is gone too
	}
	switch g.tip(ctx, t) {
	case "":
		return false, nil
	case t.Base:
		_, err := g.run(ctx, t.Repository, "branch", "--quiet", "-D", t.Branch)
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
	if _, err := g.run(ctx, t.Repository, args...); err != nil {
		return belay.Errorf(belay.CodeBadState, "the worktree can't be removed: %v", err).At(t.Path).WithHint("look at what is there, then remove the folder by hand")
	}
	return nil
}

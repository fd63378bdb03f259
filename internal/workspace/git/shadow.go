//go:build unix

package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/workspace/gitsafe"
)

// Shadow keeps whole states of a workspace as hidden commits of the git repository
// that it is in, and reads them back. The person's index, HEAD and branches don't
// change; contents are kept byte for byte; files that git ignores are not kept, and
// neither is what lies inside submodules.
//
// It works in a folder of its own that is made for each call, with the repository's
// store of objects and nothing else of it. Only the name of a commit, below
// refs/belay/, is written into the repository.
type Shadow struct {
	Environ []string // of the runtime; PATH and HOME count
}

// repository is where a workspace is kept.
type repository struct {
	*gitsafe.Repository
	git gitsafe.Git
}

// Check reports whether a workspace can be kept: a usage error when it is in no
// repository, or git is missing.
func (g Shadow) Check(ctx context.Context, workspace string) error {
	_, err := g.find(ctx, workspace)
	return err
}

func (g Shadow) find(ctx context.Context, workspace string) (*repository, error) {
	git := gitsafe.Git{Environ: g.Environ}
	r, err := git.Open(ctx, workspace)
	if errors.Is(err, gitsafe.ErrNone) {
		return nil, belay.Errorf(belay.CodeWorkspace, "it is in no git repository that could keep snapshots").At(workspace).
			WithHint("git init there, or leave --snapshot git out").Wrap(err)
	}
	return &repository{r, git}, err
}

// private is a folder in which git works on the repository's objects without
// its configuration, hooks and index.
type private struct {
	*repository
	dir string
	env []string
}

// attributes turn off all that would change contents on their way into the
// store: in this file they weigh more than those of the work tree.
const attributes = "* -text !eol -ident -filter -working-tree-encoding -diff -merge\n"

func (r *repository) private() (*private, error) {
	dir, err := os.MkdirTemp("", "belay-snapshot-")
	if err != nil {
		return nil, err
	}
	p := &private{repository: r, dir: dir}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	if r.Format != "sha1" {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = " + r.Format + "\n"
	}
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config, "info/attributes": attributes, "refs/.keep": "", "empty/.keep": ""} {
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	p.env = []string{
		"GIT_DIR=" + dir, "GIT_WORK_TREE=" + r.Top, "GIT_OBJECT_DIRECTORY=" + filepath.Join(r.Common, "objects"), "GIT_INDEX_FILE=" + filepath.Join(dir, "index"),
		"GIT_AUTHOR_NAME=belay", "GIT_AUTHOR_EMAIL=belay@localhost", "GIT_COMMITTER_NAME=belay", "GIT_COMMITTER_EMAIL=belay@localhost",
		"GIT_AUTHOR_DATE=@0 +0000", "GIT_COMMITTER_DATE=@0 +0000",
	}
	return p, nil
}

func (p *private) close() { os.RemoveAll(p.dir) } //nolint:errcheck // the system clears its folder for such files

// git is a command in the private folder.
func (p *private) git(ctx context.Context, workspace string, args ...string) ([]byte, error) {
	return p.repository.git.Run(ctx, workspace, p.env, append([]string{"-c", "core.excludesFile=" + filepath.Join(p.Dir, "info/exclude")}, args...)...)
}

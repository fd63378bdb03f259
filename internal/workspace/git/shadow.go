//go:build unix

package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
)

// A shadow is a whole state of a workspace, kept as a hidden commit of the git
// repository that it is in. The person's index, HEAD and branches don't change;
// contents are kept byte for byte; files that git ignores are not kept, and neither
// is what lies inside submodules.
//
// It is made and read in a folder of its own that is made for each call, with the
// repository's store of objects and nothing else of it. Only the name of a commit,
// below refs/belay/, is written into the repository.

// Check reports whether a workspace can be kept: a usage error when it is in no
// repository, or git is missing.
func (g Git) Check(ctx context.Context, workspace string) error {
	_, err := g.find(ctx, workspace)
	return err
}

func (g Git) find(ctx context.Context, workspace string) (*Repository, error) {
	r, err := g.Open(ctx, workspace)
	if errors.Is(err, ErrNone) {
		return nil, belay.Errorf(belay.CodeWorkspace, "it is in no git repository that could keep snapshots").At(workspace).
			WithHint("git init there, or leave --snapshot git out").Wrap(err)
	}
	return r, err
}

// private is a folder in which git works on the repository's objects without
// its configuration, hooks and index.
type private struct {
	*Repository
	workspace string
	dir       string
	env       []string
}

// attributes turn off all that would change contents on their way into the
// store: in this file they weigh more than those of the work tree.
const attributes = "* -text !eol -ident -filter -working-tree-encoding -diff -merge\n"

func (g Git) private(ctx context.Context, workspace string) (*private, error) {
	r, err := g.find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "belay-snapshot-")
	if err != nil {
		return nil, err
	}
	p := &private{Repository: r, workspace: workspace, dir: dir}
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

// run is a git command in the private folder.
func (p *private) run(ctx context.Context, args ...string) ([]byte, error) {
	return p.git.run(ctx, p.workspace, nil, p.env, append([]string{"-c", "core.excludesFile=" + filepath.Join(p.Dir, "info/exclude")}, args...))
}

//go:build unix

// Package shadow keeps whole states of a workspace as hidden commits of the
// git repository that it is in, and reads them back. It promises: the person's
// index, HEAD, branches, configuration and hooks are neither changed nor obeyed;
// nothing that a repository configures is run (no hook, no filter, no monitor);
// contents are kept byte for byte; files that git ignores are not kept, and
// neither is what lies inside submodules. It knows nothing of turns or plans.
//
// Git works in a folder of its own that is made for each call, with the
// repository's store of objects and nothing else of it. Only the name of a
// commit, below refs/belay/, is written into the repository.
package shadow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
)

// Git makes snapshots of the repositories of this machine.
type Git struct {
	Environ []string // of the runtime; PATH and HOME count
}

// maxOutput bounds what a git command may print.
const maxOutput = 80 << 20

// repository is where a workspace is kept.
type repository struct {
	top     string // the root of the work tree
	dir     string // .git, of this work tree
	objects string // its store of objects
	format  string // of its ids: sha1, sha256
	program string
	env     []string
}

// Check tells whether a workspace can be kept: a usage error when it is in no
// repository, or git is missing.
func (g Git) Check(ctx context.Context, workspace string) error {
	_, err := g.find(ctx, workspace)
	return err
}

func (g Git) find(ctx context.Context, workspace string) (*repository, error) {
	program, err := g.program()
	if err != nil {
		return nil, err
	}
	r := &repository{program: program, env: g.env()}
	out, err := r.run(ctx, workspace, append(r.env, "GIT_OPTIONAL_LOCKS=0"), "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-path", "objects", "--show-object-format")
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(lines) != 4 {
		return nil, belay.Errorf(belay.CodeWorkspace, "it is in no git repository that could keep snapshots").At(workspace).
			WithHint("git init there, or leave --snapshot git out").Wrap(err)
	}
	r.top, r.dir, r.objects, r.format = lines[0], lines[1], lines[2], lines[3]
	if !filepath.IsAbs(r.objects) {
		r.objects = filepath.Join(workspace, r.objects)
	}
	return r, nil
}

func (g Git) program() (string, error) {
	for _, kv := range g.Environ {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, entry := range filepath.SplitList(list) {
			full := filepath.Join(entry, "git")
			if info, err := os.Stat(full); filepath.IsAbs(entry) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return full, nil
			}
		}
	}
	return "", belay.Errorf(belay.CodeUsage, "there is no git on the PATH").At("--snapshot").WithHint("install git, or leave --snapshot git out")
}

// env is what git gets of the environment.
func (g Git) env() []string {
	env := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0"}
	for _, kv := range g.Environ {
		if name, _, _ := strings.Cut(kv, "="); name == "PATH" || name == "HOME" || name == "XDG_CONFIG_HOME" || name == "TMPDIR" {
			env = append(env, kv)
		}
	}
	return env
}

// run is one git command.
func (r *repository) run(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	out := &bounded{}
	p, err := process.Start(process.Command{Path: r.program, Argv: append([]string{"git"}, args...), Dir: dir, Env: env, Output: out})
	if err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	e := p.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case e.OutputErr != nil:
		return nil, fmt.Errorf("git %s: %w", args[0], e.OutputErr)
	case e.Code != 0:
		return out.Bytes(), fmt.Errorf("git %s: %s", args[0], firstLine(out.Bytes(), e.Code))
	}
	return out.Bytes(), nil
}

func firstLine(out []byte, code int) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	if len(line) == 0 {
		return fmt.Sprintf("exit code %d", code)
	}
	return strings.ToValidUTF8(string(line[:min(len(line), 300)]), "?")
}

// bounded takes output up to a limit.
type bounded struct{ bytes.Buffer }

var errTooMuch = errors.New("it printed too much")

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, errTooMuch
	}
	return b.Buffer.Write(p)
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
	if r.format != "sha1" {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = " + r.format + "\n"
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
	p.env = append(r.env[:len(r.env):len(r.env)],
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_DIR="+dir, "GIT_WORK_TREE="+r.top,
		"GIT_OBJECT_DIRECTORY="+r.objects, "GIT_INDEX_FILE="+filepath.Join(dir, "index"),
		"GIT_AUTHOR_NAME=belay", "GIT_AUTHOR_EMAIL=belay@localhost", "GIT_COMMITTER_NAME=belay", "GIT_COMMITTER_EMAIL=belay@localhost",
		"GIT_AUTHOR_DATE=@0 +0000", "GIT_COMMITTER_DATE=@0 +0000")
	return p, nil
}

func (p *private) close() { os.RemoveAll(p.dir) } //nolint:errcheck // the system clears its folder for such files

// git is a command in the private folder.
func (p *private) git(ctx context.Context, workspace string, args ...string) ([]byte, error) {
	return p.run(ctx, workspace, p.env, append([]string{
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "core.quotePath=false",
		"-c", "advice.addEmbeddedRepo=false", "-c", "core.excludesFile=" + filepath.Join(p.repository.dir, "info/exclude"),
	}, args...)...)
}

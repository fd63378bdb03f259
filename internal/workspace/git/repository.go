//go:build unix

package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/process"
)

// ErrNone says that a folder is in no repository.
var ErrNone = errors.New("not a git repository")

// Repository is one that a folder is in, with its work tree.
type Repository struct {
	Top    string // the root of the work tree
	Dir    string // the git folder of this work tree
	Common string // the git folder that all work trees of the repository share
	Format string // of its ids: sha1, sha256

	git    Git
	off    []setting // what its configuration would make git run
	obeyed bool      // it has a setting that a git which is only kept quiet obeys
}

// Open finds the repository that a folder is in, as git would, and holds every
// indirection against what it leads to: a .git file or a commondir that git
// didn't make is refused with code git_unsafe.
func (g Git) Open(ctx context.Context, dir string) (*Repository, error) {
	if _, err := g.program(); err != nil {
		return nil, err
	}
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, ErrNone
	}
	for ; ; top = filepath.Dir(top) {
		at := filepath.Join(top, ".git")
		info, err := os.Lstat(at)
		switch {
		case err == nil && info.IsDir() && isGitFolder(at):
			return g.open(ctx, &Repository{Top: top, Dir: at, Common: at, git: g})
		case err == nil && info.Mode().IsRegular():
			return g.linked(ctx, top)
		case err == nil && !info.IsDir():
			return nil, unsafe(at, "it is neither a folder nor a file")
		}
		if top == "/" {
			return nil, ErrNone
		}
	}
}

// unsafe is the refusal of a repository.
func unsafe(at, format string, args ...any) error {
	return belay.Errorf(belay.CodeGitUnsafe, "git isn't run there: "+format, args...).At(at).
		WithHint("look at that file: git obeys it, and git didn't make it like this; put it right or remove it")
}

// isGitFolder reports whether git takes a folder for a repository's.
func isGitFolder(dir string) bool {
	if there(filepath.Join(dir, "commondir")) {
		return there(filepath.Join(dir, "HEAD"))
	}
	return there(filepath.Join(dir, "HEAD")) && there(filepath.Join(dir, "objects")) && there(filepath.Join(dir, "refs"))
}

func there(path string) bool { return lstat(fromRoot, path, new(unix.Stat_t)) == nil }

// linked opens what a .git file leads to: a worktree whose git folder names the
// file, or a submodule whose git folder names the work tree.
func (g Git) linked(ctx context.Context, top string) (*Repository, error) {
	at := filepath.Join(top, ".git")
	dir, err := pointer(at, "gitdir: ")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil || !isGitFolder(dir) {
		return nil, unsafe(at, "it leads to no git folder")
	}
	r := &Repository{Top: top, Dir: dir, Common: dir, git: g}
	if there(filepath.Join(dir, "commondir")) {
		r.Common = filepath.Dir(filepath.Dir(dir))
		back, berr := pointer(filepath.Join(dir, "gitdir"), "")
		if common, err := pointer(filepath.Join(dir, "commondir"), ""); err != nil || berr != nil || common != r.Common || filepath.Base(filepath.Dir(dir)) != "worktrees" || !same(back, at) {
			return nil, unsafe(at, "it leads to %s, which is no worktree of a repository that names it in turn", dir)
		}
		return g.open(ctx, r)
	}
	settings, err := g.settings(ctx, filepath.Join(dir, "config"))
	if err != nil {
		return nil, unsafe(filepath.Join(dir, "config"), "%v", err)
	}
	for _, s := range settings {
		if strings.EqualFold(s.key, "core.worktree") && same(absolute(s.value, dir), top) {
			return g.open(ctx, r)
		}
	}
	return nil, unsafe(at, "it leads to %s, whose configuration doesn't name this folder in turn", dir)
}

// same reports whether two paths are one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, yerr := os.Stat(b)
	return err == nil && yerr == nil && os.SameFile(x, y)
}

func absolute(path, from string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(from, path)
}

// pointer is the path that a file of git holds, as an absolute one.
func pointer(file, prefix string) (string, error) {
	b, err := readPlain(file)
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), prefix)
	if !ok || text == "" || strings.ContainsAny(text, "\n\x00") {
		return "", errors.New("it holds no path")
	}
	return absolute(text, filepath.Dir(file)), nil
}

// maxControl bounds a file that git obeys.
const maxControl = 1 << 20

// readPlain reads a small ordinary file. It follows no link at the end of the path.
func readPlain(path string) ([]byte, error) {
	f, _, err := files.OpenUnlinked(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return files.UpTo(f, maxControl)
}

// maxIncludes bounds how many files one configuration is read from.
const maxIncludes = 64

// settings reads a file of configuration and all that it may include, whatever
// the condition. A file that isn't there has none.
func (g Git) settings(ctx context.Context, file string) (all []setting, err error) {
	files := []string{file}
	for i := 0; i < len(files); i++ {
		b, err := readPlain(files[i])
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var list []setting
		if err == nil && len(b) > 0 {
			list, err = g.list(ctx, b)
		}
		if err != nil {
			return all, fmt.Errorf("%s can't be read: %w", files[i], err)
		}
		for _, s := range list {
			if more, ok := included(s, files[i], process.Getenv(g.Environ, "HOME")); ok {
				if files = append(files, more); len(files) > maxIncludes {
					return all, fmt.Errorf("%s includes more than %d files", file, maxIncludes)
				}
			}
		}
		all = append(all, list...)
	}
	return all, nil
}

// open reads what a repository configures.
func (g Git) open(ctx context.Context, r *Repository) (*Repository, error) {
	if at := filepath.Join(r.Common, "commondir"); there(at) {
		if to, err := pointer(at, ""); err != nil || to != r.Common {
			return nil, unsafe(at, "it sends git to another folder")
		}
	}
	r.Format = "sha1"
	for _, file := range []string{filepath.Join(r.Common, "config"), filepath.Join(r.Common, "config.worktree"), filepath.Join(r.Dir, "config.worktree")} {
		settings, err := g.settings(ctx, file)
		if err != nil {
			return nil, unsafe(file, "%v", err)
		}
		for _, s := range settings {
			if strings.EqualFold(s.key, "extensions.objectformat") {
				r.Format = s.value
			}
			if off, ok := neutral(s); ok {
				r.off = append(r.off, off)
			}
			r.obeyed = r.obeyed || obeyed(s)
		}
	}
	return r, nil
}

// Run is git in the repository.
func (r *Repository) Run(ctx context.Context, args ...string) ([]byte, error) {
	return r.git.run(ctx, r.Top, r.off, nil, append([]string{"--git-dir=" + r.Dir, "--work-tree=" + r.Top}, args...))
}

//go:build unix

package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
)

// Ref is the name of a snapshot in the repository.
func Ref(parts ...string) string {
	name := "refs/belay"
	for _, p := range parts {
		if belay.CheckID("", p) != nil || strings.ContainsAny(p, ":") || strings.Contains(p, "..") || strings.HasPrefix(p, ".") ||
			strings.HasPrefix(p, "-") || strings.HasSuffix(p, ".") || strings.HasSuffix(p, ".lock") {
			p = belay.DigestOf([]byte(p)).Short()
		}
		name += "/" + p
	}
	return name
}

// Take keeps the workspace as it is under a name, and returns the commit. The
// same contents are the same commit.
func (g Shadow) Take(ctx context.Context, workspace, ref string) (commit string, err error) {
	r, err := g.find(ctx, workspace)
	if err != nil {
		return "", err
	}
	p, err := r.private()
	if err != nil {
		return "", err
	}
	defer p.close()
	if commit, err = p.commit(ctx, workspace); err != nil {
		return "", err
	}
	// The one command that works in the repository itself: a name, no hook.
	_, err = r.Run(ctx, "update-ref", ref, commit)
	return commit, err
}

// commit keeps the workspace's files, with what the index of the snapshot
// before knows of them: what hasn't changed since isn't read again.
func (p *private) commit(ctx context.Context, workspace string) (string, error) {
	known := filepath.Join(p.Dir, "belay-index")
	index := filepath.Join(p.dir, "index")
	if err := copyFile(known, index); err != nil {
		os.Remove(index) //nolint:errcheck // without it all is read
	}
	if err := p.forgetRepositories(ctx, workspace); err != nil {
		os.Remove(index) //nolint:errcheck // as above
	}
	if _, err := p.git(ctx, workspace, "add", "--all", "--ignore-errors", "--", "."); err != nil {
		os.Remove(index) //nolint:errcheck // as above
		if out, err := p.git(ctx, workspace, "add", "--all", "--ignore-errors", "--", "."); err != nil && !left(out) {
			return "", err
		}
	}
	tree, err := p.id(ctx, workspace, "write-tree")
	if err != nil {
		return "", err
	}
	commit, err := p.id(ctx, workspace, "commit-tree", "-m", "belay: the workspace at a moment of a session", tree)
	if err != nil {
		return "", err
	}
	temp := known + "." + filepath.Base(p.dir)
	if copyFile(index, temp) == nil && os.Rename(temp, known) != nil {
		os.Remove(temp) //nolint:errcheck // the next snapshot reads more
	}
	return commit, nil
}

// forgetRepositories takes the repositories inside the workspace out of the
// index: of those that it knows git asks what changed in them, and that runs
// what they configure. They are added again as what they are at.
func (p *private) forgetRepositories(ctx context.Context, workspace string) error {
	out, err := p.git(ctx, workspace, "ls-files", "--stage", "-z", ":/")
	if err != nil {
		return err
	}
	args := []string{"update-index", "--force-remove", "--"}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if name, ok := strings.CutPrefix(entry, "160000 "); ok {
			_, name, _ = strings.Cut(name, "\t")
			args = append(args, filepath.Join(p.Top, name))
		}
	}
	if len(args) > 3 {
		_, err = p.git(ctx, workspace, args...)
	}
	return err
}

// left reports whether git added what it could and left out what it can't keep:
// unreadable files, repositories inside without a commit.
func left(out []byte) bool {
	return bytes.Contains(out, []byte("unable to index file")) || bytes.Contains(out, []byte("adding files failed")) || bytes.Contains(out, []byte("does not have a commit checked out"))
}

// id is the id that a command prints last.
func (p *private) id(ctx context.Context, workspace string, args ...string) (string, error) {
	out, err := p.git(ctx, workspace, args...)
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(out))
	if len(words) == 0 || !isID(words[len(words)-1]) {
		return "", fmt.Errorf("git %s printed no id", args[0])
	}
	return words[len(words)-1], nil
}

func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// Entry is a file of a snapshot. Kind is file; link and submodule can't be restored.
type Entry struct {
	Kind string
	Mode string // permission bits in octal
	ID   string // of the content
}

// Change is a file that differs between two snapshots; nil is nothing there.
type Change struct {
	Path     string // relative to the workspace
	From, To *Entry
}

// Diff lists what differs between two commits below the workspace.
func (g Shadow) Diff(ctx context.Context, workspace, from, to string) ([]Change, error) {
	if !isID(from) || !isID(to) {
		return nil, fmt.Errorf("%q and %q are no commits", from, to)
	}
	if from == to {
		return nil, nil
	}
	p, err := g.open(ctx, workspace)
	if err != nil {
		return nil, err
	}
	defer p.close()
	out, err := p.git(ctx, workspace, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--relative", from, to)
	if err != nil {
		return nil, err
	}
	return parse(out)
}

func (g Shadow) open(ctx context.Context, workspace string) (*private, error) {
	r, err := g.find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return r.private()
}

// parse reads ":MODE MODE ID ID STATUS NUL PATH NUL …".
func parse(out []byte) (all []Change, err error) {
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(out) == 0 {
		return nil, nil
	}
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 || !isID(f[2]) || !isID(f[3]) {
			return nil, fmt.Errorf("git diff-tree printed %q", fields[i])
		}
		all = append(all, Change{Path: fields[i+1], From: entry(f[0], f[2]), To: entry(f[1], f[3])})
	}
	return all, nil
}

func entry(mode, id string) *Entry {
	switch mode {
	case "000000":
		return nil
	case "100644":
		return &Entry{"file", "644", id}
	case "100755":
		return &Entry{"file", "755", id}
	case "120000":
		return &Entry{"link", "", id}
	}
	return &Entry{"submodule", "", id}
}

// Read is the content of an entry.
func (g Shadow) Read(ctx context.Context, workspace string, e *Entry) ([]byte, error) {
	p, err := g.open(ctx, workspace)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.git(ctx, workspace, "cat-file", "blob", e.ID)
}

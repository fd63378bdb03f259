//go:build unix

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
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
func (g Git) Take(ctx context.Context, workspace, ref string) (commit string, err error) {
	p, err := g.private(ctx, workspace)
	if err != nil {
		return "", err
	}
	defer p.close()
	if commit, err = p.commit(ctx); err != nil {
		return "", err
	}
	// The one command that works in the repository itself: a name, no hook.
	_, err = p.Run(ctx, "update-ref", ref, commit)
	return commit, err
}

// commit keeps the workspace's files, with what the index of the snapshot
// before knows of them: what hasn't changed since isn't read again.
//
// Git compares sizes and seconds, and reads a file again that was written in the second
// of the index or later. So an index keeps the time at which its snapshot began, wherever
// it is copied: all that was read for it was read since.
func (p *private) commit(ctx context.Context) (string, error) {
	known := filepath.Join(p.Dir, "belay-index")
	index := filepath.Join(p.dir, "index")
	began, err := p.now()
	if err != nil {
		return "", err
	}
	if err := copyFile(known, index); err != nil {
		os.Remove(index) //nolint:errcheck // without it all is read
	}
	if err := p.forget(ctx); err != nil {
		os.Remove(index) //nolint:errcheck // as above
	}
	if _, err := p.run(ctx, "add", "--all", "--ignore-errors", "--", "."); err != nil {
		os.Remove(index) //nolint:errcheck // as above
		if out, err := p.run(ctx, "add", "--all", "--ignore-errors", "--", "."); err != nil && !left(out) {
			return "", err
		}
	}
	tree, err := p.id(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	commit, err := p.id(ctx, "commit-tree", "-m", "belay: the workspace at a moment of a session", tree)
	if err != nil {
		return "", err
	}
	temp := known + "." + filepath.Base(p.dir)
	if os.Chtimes(index, began, began) == nil && copyFile(index, temp) == nil && os.Rename(temp, known) != nil {
		os.Remove(temp) //nolint:errcheck // the next snapshot reads more
	}
	return commit, nil
}

// now is the time as files get it: a file's clock may be behind the process's.
func (p *private) now() (time.Time, error) {
	path := filepath.Join(p.Dir, "belay-index.now."+filepath.Base(p.dir))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return time.Time{}, err
	}
	info, err := f.Stat()
	err = errors.Join(err, f.Close(), os.Remove(path))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// forget takes out of the index what git must look at anew. Of repositories inside the
// workspace that it knows git asks what changed in them, and that runs what they configure:
// they are added again as what they are at. A file that was changed in the second of the
// index and given an older time, as cp -p does, would look as it did before.
func (p *private) forget(ctx context.Context) error {
	info, err := os.Stat(filepath.Join(p.dir, "index"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	out, err := p.run(ctx, "ls-files", "--stage", "--debug", "-z", ":/")
	if err != nil {
		return err
	}
	names, err := stale(string(out), info.ModTime().Unix())
	if err != nil {
		return err
	}
	for part := range slices.Chunk(names, maxForgotten) {
		args := []string{"update-index", "--force-remove", "--"}
		for _, name := range part {
			args = append(args, filepath.Join(p.Top, name))
		}
		if _, err := p.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// maxForgotten bounds the names of one command: the system bounds their bytes.
const maxForgotten = 200

// stale reads "MODE ID STAGE TAB PATH NUL", each followed by lines of what the index knows
// of the file, of which the first is its time of change and the second that of its content.
func stale(out string, second int64) (names []string, err error) {
	const known = 5 // lines
	for out != "" {
		entry, rest, _ := strings.Cut(out, "\x00")
		mode, name, ok := strings.Cut(entry, "\t")
		lines := strings.SplitAfterN(rest, "\n", known+1)
		if !ok || len(lines) != known+1 {
			return nil, fmt.Errorf("git ls-files printed %q", entry)
		}
		var changed, written int64
		if _, err := fmt.Sscanf(lines[0]+lines[1], " ctime: %d:%d\n mtime: %d:%d\n", &changed, new(int64), &written, new(int64)); err != nil {
			return nil, fmt.Errorf("git ls-files printed %q", lines[0]+lines[1])
		}
		if strings.HasPrefix(mode, "160000 ") || changed >= second && written < second {
			names = append(names, name)
		}
		out = lines[known]
	}
	return names, nil
}

// left reports whether git added what it could and left out what it can't keep:
// unreadable files, repositories inside without a commit.
func left(out []byte) bool {
	return bytes.Contains(out, []byte("unable to index file")) || bytes.Contains(out, []byte("adding files failed")) || bytes.Contains(out, []byte("does not have a commit checked out"))
}

// id is the id that a command prints last.
func (p *private) id(ctx context.Context, args ...string) (string, error) {
	out, err := p.run(ctx, args...)
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(out))
	if len(words) == 0 || !isID(words[len(words)-1]) {
		return "", fmt.Errorf("git %s printed no id", args[0])
	}
	return words[len(words)-1], nil
}

// maxIndex bounds the index of a snapshot: one of five million files is smaller.
const maxIndex = 1 << 30

// copyFile makes a new file of what is in another one, with its time.
func copyFile(from, to string) error {
	in, info, err := files.OpenUnlinked(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if info.Size() > maxIndex {
		return fmt.Errorf("%s is larger than %d bytes", from, maxIndex)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxIndex))
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	if err != nil {
		os.Remove(to) //nolint:errcheck // half of it is as good as none
	}
	return err
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
func (g Git) Diff(ctx context.Context, workspace, from, to string) ([]Change, error) {
	if !isID(from) || !isID(to) {
		return nil, fmt.Errorf("%q and %q are no commits", from, to)
	}
	if from == to {
		return nil, nil
	}
	p, err := g.private(ctx, workspace)
	if err != nil {
		return nil, err
	}
	defer p.close()
	out, err := p.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--relative", from, to)
	if err != nil {
		return nil, err
	}
	raw, err := rawChanges(out)
	if err != nil {
		return nil, fmt.Errorf("git diff-tree: %w", err)
	}
	var all []Change
	for _, c := range raw {
		all = append(all, Change{Path: c.path, From: entry(c.modes[0], c.ids[0]), To: entry(c.modes[1], c.ids[1])})
	}
	return all, nil
}

// rawChange is a file that two commits have in different forms.
type rawChange struct {
	modes, ids [2]string // before and after
	path       string
}

// rawChanges reads ":MODE MODE ID ID STATUS NUL PATH NUL …", of one pair of commits
// or of several.
func rawChanges(out []byte) (all []rawChange, err error) {
	fields := strings.Split(string(out), "\x00")
	for i := 0; i < len(fields); i++ {
		f := strings.Fields(fields[i])
		if len(f) == 0 {
			continue
		}
		if i++; i == len(fields) || len(f) != 5 || f[0][0] != ':' || !isID(f[2]) || !isID(f[3]) {
			return nil, fmt.Errorf("it printed %q", fields[i-1])
		}
		all = append(all, rawChange{[2]string{f[0][1:], f[1]}, [2]string{f[2], f[3]}, fields[i]})
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
func (g Git) Read(ctx context.Context, workspace string, e *Entry) ([]byte, error) {
	p, err := g.private(ctx, workspace)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.run(ctx, "cat-file", "blob", e.ID)
}

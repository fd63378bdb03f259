//go:build unix

package git

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's ids
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// refs are the files in which a git folder names commits, as they were read last.
type refs map[string]stamp

// Bounds of what is read of history.
const (
	maxRefs  = 20_000
	maxFresh = 2_000
	maxBlob  = 32 << 20
)

// refers takes note of the commits that a git folder names. Those that were there
// before programs ran count as history, and those that a program may bring; a
// commit that another program made doesn't.
func (l *looking) refers(dir string) {
	if r := l.w.refs[dir]; r != nil && !r.changed() {
		return
	}
	counts := l.accept || slices.ContainsFunc(l.w.running, func(p Program) bool { return p.History })
	r := refs{}
	l.w.refs[dir] = r
	take := func(path string) {
		r[path] = stampOf(path)
		f, _, err := l.w.open(path)
		if err != nil {
			return
		}
		defer f.Close()
		b, _ := io.ReadAll(io.LimitReader(f, maxBlob))
		for line := range strings.SplitSeq(string(b), "\n") {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "^"), " ")
			if _, seen := l.w.history[id]; !seen && isID(id) && len(l.w.history) < maxRefs {
				l.w.history[id] = counts
			}
		}
	}
	take(filepath.Join(dir, "HEAD"))
	take(filepath.Join(dir, "packed-refs"))
	filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, e fs.DirEntry, err error) error { //nolint:errcheck // what can't be read names nothing
		switch {
		case err != nil || len(r) > maxRefs:
			return fs.SkipAll
		case e.IsDir():
			r[path] = stampOf(path)
		case e.Type().IsRegular():
			take(path)
		}
		return nil
	})
}

func (r refs) changed() bool {
	for path, s := range r {
		if now := stampOf(path); !now.is(s) && (now.isThere || s.isThere) {
			return true
		}
	}
	return false
}

// isID reports whether a text is the id of a commit.
func isID(id string) bool {
	_, err := hex.DecodeString(id)
	return err == nil && (len(id) == 2*sha1.Size || len(id) == 2*sha256.Size)
}

// counted are the commits that count as history.
func (w *Watch) counted() (ids []string) {
	for id, counts := range w.history {
		if counts {
			ids = append(ids, id)
		}
	}
	return ids
}

// historic tells which of the fresh files git has brought: the history of their
// repository, as far as it counts, has the same file at the same path.
func (l *looking) historic() map[string]bool {
	found := map[string]bool{}
	ids := l.w.counted()
	if len(ids) == 0 || len(l.fresh) > maxFresh {
		return found
	}
	folders, tops, fresh := map[string]*Repository{}, map[string]*Repository{}, map[string][]string{}
	for _, f := range l.fresh {
		dir := filepath.Dir(f.path)
		if _, known := folders[dir]; !known {
			folders[dir], _ = l.w.git.Open(l.ctx, dir)
		}
		if r := folders[dir]; r != nil {
			tops[r.Top] = r
			fresh[r.Top] = append(fresh[r.Top], f.path)
		}
	}
	for top, paths := range fresh {
		r := tops[top]
		blobs := logged(l.ctx, r, ids, paths)
		for _, path := range paths {
			if id := l.blob(path, r.Format); id != "" && blobs[id+path] {
				found[path] = true
			}
		}
	}
	return found
}

// logged are the files that a history has had at some paths: an id and a path each.
func logged(ctx context.Context, r *Repository, ids, paths []string) map[string]bool {
	args := []string{"log", "--ignore-missing", "--format=", "--raw", "-z", "-m", "--no-abbrev", "--no-renames", "--full-history", "--no-show-signature"}
	args = append(append(args, ids...), "--")
	for _, path := range paths {
		args = append(args, ":(top,literal)"+strings.TrimPrefix(path, r.Top+"/"))
	}
	out, err := r.Run(ctx, args...)
	if err != nil {
		return nil
	}
	raw, _ := rawChanges(out) // what can't be read is in no history
	all := map[string]bool{}
	for _, c := range raw {
		path := filepath.Join(r.Top, c.path)
		all[c.ids[0]+path], all[c.ids[1]+path] = true, true
	}
	return all
}

// blob is the id that git gives the content of a file, byte for byte; empty if it
// can't be told.
func (l *looking) blob(path, format string) string {
	var sum hash.Hash = sha1.New() //nolint:gosec // git's ids
	if format == "sha256" {
		sum = sha256.New()
	}
	if now := stampOf(path); now.kind() == unix.S_IFLNK {
		to := l.text(path, now)
		fmt.Fprintf(sum, "blob %d\x00%s", len(to), to)
		return hex.EncodeToString(sum.Sum(nil))
	}
	f, info, err := l.w.open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info.Size() > maxBlob {
		return ""
	}
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	if n, err := io.Copy(sum, io.LimitReader(f, info.Size()+1)); err != nil || n != info.Size() {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

//go:build unix

package git

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/internal/lib/keyed"
)

// Tracked tells which files git knows. A program that can't read such a file finds it
// unchanged if its size and time are those that git noted, so these are noted anew
// where git couldn't go by them.
type Tracked struct {
	Git Git

	trees keyed.Mutexes // by the root of the work tree: git is asked about one once at a time
	mu    sync.Mutex
	known map[string]tracked // by the root of the work tree
}

// tracked is what git knew, when what it says of that was as it is in the stamps.
type tracked struct {
	stamps []stamp
	files  []string
}

// Of lists those of the paths that git knows, and those in folders among them, with
// attributes by which git takes their recorded content where it has a choice, and not
// the file. Where git can't be asked there are none.
func (t *Tracked) Of(ctx context.Context, paths []string) (files []string, attributes string) {
	repos := map[string][]string{}
	for _, p := range paths {
		for top := filepath.Dir(p); ; top = filepath.Dir(top) {
			if there(filepath.Join(top, ".git")) {
				repos[top] = append(repos[top], p)
				break
			}
			if top == "/" {
				break
			}
		}
	}
	for top, paths := range repos {
		known := t.in(ctx, top, paths)
		files = append(files, known...)
		for _, f := range known {
			attributes += pattern(f[len(top):]) + " ident\n" // content that is converted is never taken from the file
		}
	}
	slices.Sort(files)
	return files, attributes
}

// pattern is a path as a file of attributes has it.
func pattern(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case strings.IndexByte(`*?[\`, c) >= 0:
			b.WriteString(`\\` + strings.Repeat(`\`, strings.Count(`\`, string(c))) + string(c))
		case c < ' ' || c == '"' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

func (t *Tracked) in(ctx context.Context, top string, paths []string) []string {
	unlock, err := t.trees.Lock(ctx, top)
	if err != nil {
		return nil
	}
	defer unlock()
	index := filepath.Join(top, ".git", "index")
	if dir, err := pointer(filepath.Join(top, ".git"), "gitdir: "); err == nil {
		index = filepath.Join(dir, "index")
	}
	stamps := func() (all []stamp) {
		for _, p := range append([]string{index}, paths...) {
			all = append(all, stampOf(p))
		}
		return all
	}
	if !there(index) {
		return nil
	}
	t.mu.Lock()
	k, ok := t.known[top]
	t.mu.Unlock()
	if ok && slices.EqualFunc(stamps(), k.stamps, stamp.is) {
		return k.files
	}
	r, err := t.Git.Open(ctx, top)
	if err != nil {
		return nil
	}
	out, err := r.Run(ctx, append([]string{"ls-files", "-z", "--full-name", "--"}, literal(top, paths)...)...)
	if err != nil {
		return nil
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if name != "" {
			files = append(files, filepath.Join(top, name))
		}
	}
	if len(files) > 0 {
		r.note(ctx, index, files)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]tracked{}
	}
	t.known[top] = tracked{stamps(), files}
	return files
}

// note has git note the size and time of files, as whoever asks for the status does.
// Git reads a file that changed in the second in which its index was written, so that
// second has to be over.
func (r *Repository) note(ctx context.Context, index string, files []string) {
	now, written := time.Now(), stampOf(index).mtime
	for _, f := range files {
		if changed := stampOf(f).mtime; changed == now.Unix() && changed >= written {
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(time.Unix(changed+1, 0))):
			}
			break
		}
	}
	r.Run(ctx, append([]string{"status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", "--"}, literal(r.Top, files)...)...) //nolint:errcheck // the file looks changed then
}

// literal are paths as git's commands take them.
func literal(top string, paths []string) (all []string) {
	for _, p := range paths {
		all = append(all, ":(top,literal)"+strings.TrimPrefix(p, top+"/"))
	}
	return all
}

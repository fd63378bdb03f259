//go:build unix

package git

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/workspace/protected"
)

// fresh is a protected name that is new after a program, or other than before.
type fresh struct {
	path  string
	root  string // the folder with a protected name that it lies in; empty: none
	now   stamp
	known *item
	why   string
}

// may reports whether a program that runs may leave a path.
func (l *looking) may(path string) bool {
	return slices.ContainsFunc(l.w.running, func(p Program) bool {
		return slices.ContainsFunc(p.Leave, func(leave string) bool { return within(path, leave) })
	})
}

// relative is a path as it is called in the workspace.
func (w *Watch) relative(path string) string {
	if within(path, w.root) {
		return strings.TrimPrefix(path, w.root)
	}
	return path
}

// name looks at a file that has a protected name, or lies below one.
func (l *looking) name(path, root string) {
	now := stampFrom(l.from, path)
	if !now.isThere {
		return
	}
	l.w.sees[path] = true
	known := l.w.items[path]
	switch {
	case known != nil && now.is(known.stamp) && (l.held || !known.unread):
	case l.accept, known != nil && (l.held || l.same(path, now, known)), l.may(path), l.modules(path):
		l.w.items[path] = l.kept(path, now)
	case !l.live.ripe(path, now):
	default:
		e, _ := protected.Of(l.w.relative(path))
		l.fresh = append(l.fresh, fresh{path, root, now, known, e.Why})
		return
	}
	l.rooted[root] = true
}

// maxPath is how long the path of a folder may be that is looked into. No program
// opens a file by a path of more than a quarter of that.
const maxPath = 16 << 10

// tooDeep looks at a folder that isn't looked into: a new one goes as a whole.
func (l *looking) tooDeep(path string, now stamp) {
	l.w.sees[path] = true
	switch known := l.w.items[path]; {
	case known != nil:
	case l.accept, l.may(path):
		l.w.items[path] = &item{stamp: now, unread: true}
	case l.live.ripe(path, now):
		l.fresh = append(l.fresh, fresh{path: path, now: now, why: "it lies too deep to be looked at"})
	}
}

// modules reports whether a file is a repository's list of submodules that makes git
// run nothing: git writes it, and fetches what it names only on a command.
func (l *looking) modules(path string) bool {
	if filepath.Base(path) != ".gitmodules" || !there(filepath.Join(filepath.Dir(path), ".git")) {
		return false
	}
	is := &item{}
	is.content, _ = l.w.read(path)
	l.configured(is, filepath.Dir(path), path)
	return is.content != nil && len(is.risks) == 0
}

// kept is a file that may stay. What a boundary holds isn't read.
func (l *looking) kept(path string, now stamp) *item {
	is := &item{stamp: now, unread: l.held}
	if !l.held {
		is.content = l.text(path, now)
	}
	return is
}

// text is the content of a file, or the target of a link; nil if it can't be read.
func (l *looking) text(path string, now stamp) []byte {
	if now.kind() == unix.S_IFLNK {
		to, err := readlink(path)
		if err != nil {
			return nil
		}
		return []byte(to)
	}
	b, err := l.w.read(path)
	if err != nil {
		return nil
	}
	return b
}

// same reports whether a file is unchanged. If its content wasn't kept its times
// decide, and after a kill it counts as unchanged.
func (l *looking) same(path string, now stamp, known *item) bool {
	if known.content == nil {
		before := known.stamp
		before.unsettled = false
		return before.ino == 0 || now.is(before)
	}
	b := l.text(path, now)
	return b != nil && string(b) == string(known.content) && now.kind() == known.stamp.kind() && now.mode&0o111 == known.stamp.mode&0o111
}

// names moves aside what is new and in no history. A folder in which nothing was
// before and nothing may stay is moved as a whole, when its program has ended.
func (l *looking) names() {
	if len(l.fresh) == 0 {
		return
	}
	historic := l.historic()
	if l.live != nil && slices.ContainsFunc(l.w.running, func(p Program) bool { return p.History }) {
		l.fresh = slices.DeleteFunc(l.fresh, l.inRepository) // git brings commits, and names them afterwards
	}
	l.fresh = slices.DeleteFunc(l.fresh, func(f fresh) bool {
		if historic[f.path] {
			l.w.items[f.path] = l.kept(f.path, f.now)
			l.rooted[f.root] = true
		}
		return historic[f.path]
	})
	for _, f := range l.fresh {
		path := f.path
		if f.root != "" && !l.rooted[f.root] && l.live == nil {
			if path = f.root; !there(path) {
				continue // it went with another file
			}
		}
		l.move("protected", path, []string{f.why}, f.known)
	}
}

// inRepository reports whether a file lies in a repository's work tree.
func (l *looking) inRepository(f fresh) bool {
	for dir := filepath.Dir(f.path); within(dir, l.w.root); dir = filepath.Dir(dir) {
		if there(filepath.Join(dir, ".git")) {
			return true
		}
	}
	return l.w.over != ""
}

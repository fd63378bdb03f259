//go:build unix

package git

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/process"
)

// item is a file that git obeys, as it was when it was accepted.
type item struct {
	stamp   stamp
	risks   []string // what it makes git run or load
	content []byte   // to be put back; nil: it can't be
	follow  []string // git folders and files that it leads to
	unread  bool     // its risks aren't known: they are when it changes
}

// kinds of items: what git makes of them.
type kind int

const (
	configuration kind = iota
	hook
	common    // commondir
	back      // gitdir of a worktree
	gitFile   // a .git file
	alternate // other stores of objects
	attribute
	todo // steps of a rebase
	remote
	link // a link in the place of a folder
)

// fixed are the files of a git folder that count, besides those in its folders.
var fixed = []struct {
	name string
	kind kind
}{
	{"config", configuration}, {"config.worktree", configuration}, {"commondir", common}, {"gitdir", back}, {"info/attributes", attribute},
	{"objects/info/alternates", alternate}, {"rebase-merge/git-rebase-todo", todo},
}

// linkless are the folders of a git folder that git makes no link of.
var linkless = []string{"hooks", "info", "objects", "objects/info", "modules", "worktrees", "rebase-merge", "rebase-apply", "remotes", "branches"}

// repository looks at one git folder, or at what stands in its place.
func (l *looking) repository(dir string) {
	l.live.repository(dir)
	st := stampOf(dir)
	switch st.kind() {
	case 0:
		return
	case unix.S_IFLNK:
		l.item(dir, dir, link)
		return
	case unix.S_IFDIR:
	default:
		l.item(dir, dir, gitFile)
		return
	}
	l.refers(dir)
	for _, name := range linkless {
		if at := filepath.Join(dir, name); stampOf(at).kind() == unix.S_IFLNK {
			l.item(dir, at, link)
		}
	}
	for _, f := range fixed {
		if f.kind == todo && l.live != nil {
			continue // a rebase takes its steps off it one by one
		}
		l.item(dir, filepath.Join(dir, f.name), f.kind)
	}
	l.files(dir, filepath.Join(dir, "hooks"), hook)
	l.files(dir, filepath.Join(dir, "remotes"), remote)
	l.files(dir, filepath.Join(dir, "branches"), remote)
	l.below(dir, filepath.Join(dir, "worktrees"))
	l.below(dir, filepath.Join(dir, "modules"))
}

// entriesOf are those of a folder; a link to one has none.
func entriesOf(dir string) []os.DirEntry {
	if stampOf(dir).kind() != unix.S_IFDIR {
		return nil
	}
	entries, _ := readDir(fromRoot, dir)
	return entries
}

// files looks at each file of a folder.
func (l *looking) files(repo, dir string, k kind) {
	for _, e := range entriesOf(dir) {
		if !e.IsDir() && !(k == hook && (strings.HasSuffix(e.Name(), ".sample") || strings.Contains(e.Name(), asideMark))) {
			l.item(repo, filepath.Join(dir, e.Name()), k)
		}
	}
}

// below finds the git folders in a folder of another one's.
func (l *looking) below(repo, dir string) {
	l.live.part(repo, dir)
	for _, e := range entriesOf(dir) {
		switch at := filepath.Join(dir, e.Name()); {
		case e.Type()&os.ModeSymlink != 0:
			l.item(repo, at, link)
		case e.IsDir() && (there(filepath.Join(at, "HEAD")) || there(filepath.Join(at, "config")) || there(filepath.Join(at, "commondir"))):
			l.found(at)
		case e.IsDir():
			l.below(repo, at)
		}
	}
}

// item looks at one file. What it leads to is looked at as well.
func (l *looking) item(repo, path string, k kind) {
	now := stampOf(path)
	if !now.isThere || l.w.sees[path] {
		return
	}
	l.w.sees[path] = true
	known := l.w.items[path]
	if known == nil || !now.is(known.stamp) {
		is := l.judge(repo, path, k, now)
		var had []string
		if known != nil && len(is.risks) > 0 {
			if known.unread {
				l.configured(known, repo, path)
			}
			had = known.risks
		}
		more := slices.DeleteFunc(slices.Clone(is.risks), func(r string) bool { return slices.Contains(had, r) })
		if len(more) > 0 && !l.accept && !l.may(path) {
			if !l.live.ripe(path, now) {
				return
			}
			l.move("git", path, more, known)
			return
		}
		l.w.items[path], known = is, is
	}
	for _, to := range known.follow {
		switch {
		case k == configuration && stampOf(to).kind() == unix.S_IFDIR: // a folder of hooks
			l.live.part(repo, to)
			l.files(repo, to, hook)
		case k == configuration:
			l.item(repo, to, configuration)
		default:
			l.found(to)
		}
	}
}

// judge reads a file and says what it makes git run or load.
func (l *looking) judge(repo, path string, k kind, now stamp) *item {
	is := &item{stamp: now}
	b, err := l.w.read(path)
	switch {
	case now.kind() == unix.S_IFLNK && k != hook:
		to, _ := os.Readlink(path)
		is.risks = []string{"it is a link to " + to}
		if real, err := filepath.EvalSymlinks(path); err == nil && path == repo {
			is.follow = []string{real}
		}
		return is
	case k == hook:
		sum := sha256.Sum256(b)
		is.content = b
		is.risks = []string{fmt.Sprintf("git runs it as a hook (%o %x)", now.mode&0o111, sum[:8])}
		if err != nil {
			is.content, is.risks = nil, []string{fmt.Sprintf("git runs it as a hook (%d %d %d)", now.ino, now.sec, now.nsec)}
		}
		return is
	case err != nil:
		is.risks = []string{"nobody can tell what git makes of it: " + err.Error()}
		return is
	}
	is.content = b
	switch k {
	case configuration:
		// What may stay isn't read before it changes, unless it may lead to more.
		text := bytes.ToLower(b)
		if is.unread = l.accept && !bytes.Contains(text, []byte("include")) && !bytes.Contains(text, []byte("hookspath")); !is.unread {
			l.configured(is, repo, path)
		}
	case common, back, gitFile:
		l.leads(is, repo, path, k)
	case alternate:
		for line := range strings.SplitSeq(string(b), "\n") {
			if line != "" && line[0] != '#' && !l.inside(absolute(line, filepath.Join(repo, "objects"))) {
				is.risks = append(is.risks, "git loads objects from "+line)
			}
		}
	case attribute:
		l.attributed(is, repo, b)
	case todo:
		for line := range strings.SplitSeq(string(b), "\n") {
			if word, what, _ := strings.Cut(strings.TrimSpace(line), " "); word == "exec" || word == "x" {
				is.risks = append(is.risks, "a rebase that goes on runs "+what)
			}
		}
	case remote:
		for line := range strings.SplitSeq(string(b), "\n") {
			if _, url, ok := strings.Cut(line, "URL:"); ok || filepath.Base(filepath.Dir(path)) == "branches" {
				if url = strings.TrimSpace(url); !ok {
					url = strings.TrimSpace(line)
				}
				if !address(url) {
					is.risks = append(is.risks, "git runs a helper for "+url)
				}
			}
		}
	}
	return is
}

// maxReads bounds how many configurations one look reads.
const maxReads = 1000

// configured judges configuration.
func (l *looking) configured(is *item, repo, path string) {
	is.unread = false
	if l.reads++; l.reads > maxReads {
		is.risks = []string{"there are too many to be read"}
		return
	}
	settings, err := l.w.git.list(l.ctx, is.content)
	if err != nil {
		is.risks = []string{"nobody can tell what it sets: " + err.Error()}
		return
	}
	for _, s := range settings {
		if harmless(s, func(to string) bool { return l.inside(absolute(to, repo)) }) {
			continue
		}
		is.risks = append(is.risks, "it sets "+s.key+" to "+s.value)
		to, ok := included(s, path, process.Getenv(l.w.git.Environ, "HOME"))
		if !ok && strings.EqualFold(s.key, "core.hookspath") {
			to, ok = absolute(s.value, workTree(repo)), true
		}
		if ok && within(to, l.w.root) {
			is.follow = append(is.follow, to)
		}
	}
}

// workTree is where a git folder's work tree is when nothing else is said.
func workTree(repo string) string {
	if isGitName(filepath.Base(repo)) {
		return filepath.Dir(repo)
	}
	return repo
}

// leads judges a file that sends git to another folder.
func (l *looking) leads(is *item, repo, path string, k kind) {
	prefix := ""
	if k == gitFile {
		prefix = "gitdir: "
	}
	to, err := pointer(path, prefix)
	inWorktrees := filepath.Base(filepath.Dir(repo)) == "worktrees"
	switch {
	case err != nil:
		is.risks = []string{"nobody can tell where it sends git"}
	case k == back:
		if !isGitName(filepath.Base(to)) {
			is.risks = []string{"it makes " + to + " a worktree"}
		}
	case k == common && (to == repo || inWorktrees && to == filepath.Dir(filepath.Dir(repo))):
	case k == common:
		is.risks = []string{"it sends git to " + to}
		if l.inside(to) {
			is.follow = []string{to}
		}
	case !l.inside(to):
		is.risks = []string{"it sends git to " + to}
	default:
		is.follow = []string{to}
	}
}

// inside reports whether a path leads into the workspace, or into the
// repository that it lies in.
func (l *looking) inside(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	if within(real, l.w.root) {
		return true
	}
	return l.w.over != "" && within(real, l.w.over)
}

// driver is what an attribute names.
var driver = regexp.MustCompile(`\b(filter|diff|merge)=(\S+)`)

// attributed judges attributes: those count whose driver the repository's own
// configuration has.
func (l *looking) attributed(is *item, repo string, b []byte) {
	for _, m := range driver.FindAllStringSubmatch(string(b), -1) {
		prefix := "it sets " + m[1] + "." + m[2] + "."
		for path, i := range l.w.items {
			if i.unread {
				l.configured(i, repo, path)
			}
			if slices.ContainsFunc(i.risks, func(r string) bool { return strings.HasPrefix(r, prefix) }) {
				is.risks = append(is.risks, "git runs the driver "+m[0])
				break
			}
		}
	}
}

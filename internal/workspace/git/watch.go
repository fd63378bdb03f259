//go:build unix

package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/workspace/protected"
)

// Watch looks after the files of one workspace that git or another program obeys:
// what is there when a program begins may stay, and what it left that makes git
// run or load more than that, or has a protected name, is moved aside. It knows a
// folder again by its change time, which no confined program can set, so what
// didn't change isn't read twice.
type Watch struct {
	git   Git
	root  string
	aside string // a folder, which is made when something is moved there

	mu      sync.Mutex
	running []Program
	live    *live    // looks while they run
	left    []Moved  // by it, and nobody was told yet
	pending *os.File // says so to who comes after a kill
	tree    *folder
	folders int    // of it that aren't of installed packages
	over    string // the git folder of the repository that the workspace lies in; empty: none
	items   map[string]*item
	sees    map[string]bool // of this look: items that are there
	refs    map[string]refs
	history map[string]bool // commits that refs name, and whether they count
}

// Program is what one program may leave.
type Program struct {
	Leave   []string // absolute paths of protected names
	History bool     // what its git fetches counts as history
	Held    bool     // its boundary holds the protected names that exist
}

// Moved is a file that was moved aside.
type Moved struct {
	Layer    string // git, or protected for a name that other programs obey
	Path     string // absolute
	To       string // where it is now
	Why      string // what git would do
	Restored bool   // what stood there before is there again
}

// NewWatch looks after a workspace; aside is where files are moved to.
func (g Git) NewWatch(workspace, aside string) *Watch {
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = real
	}
	return &Watch{git: g, root: workspace, aside: aside, items: map[string]*item{}, refs: map[string]refs{}, history: map[string]bool{}}
}

// Begin is called before a program begins. What others changed while none ran
// is taken as it is; what was left by one that still runs is moved aside.
func (w *Watch) Begin(ctx context.Context, p Program) []Moved {
	w.mu.Lock()
	defer w.mu.Unlock()
	accept := len(w.running) == 0
	w.running = append(w.running, p)
	moved := w.look(ctx, accept)
	if len(w.running) == 1 {
		w.save()
		w.live = w.follow()
	}
	return moved
}

// Look is called when a program has ended, or continues while its caller doesn't
// wait any more.
func (w *Watch) Look(ctx context.Context, p Program, ended bool) []Moved {
	moved, over := w.after(ctx, p, ended)
	over.end()
	return moved
}

// after looks, and returns what looked while programs ran if the last one has ended.
func (w *Watch) after(ctx context.Context, p Program, ended bool) (moved []Moved, over *live) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) == 0 {
		return nil, nil // whatever is new, no program made it
	}
	moved = w.look(ctx, false)
	if ended {
		w.ends(p)
	}
	if len(w.running) == 0 {
		over, w.live = w.live, nil
	}
	return moved, over
}

// Wrote records files that were written with permission, but not by a program.
func (w *Watch) Wrote(paths ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &looking{w: w, from: fromRoot}
	wrote := false
	for _, path := range paths {
		if _, ok := protected.Of(w.relative(path)); ok && len(w.running) > 0 {
			w.items[path], wrote = l.kept(path, stampOf(path)), true
		}
	}
	if wrote {
		w.settle()
		w.save()
	}
}

// ends takes a program off the list, and any with the same rights is as good.
func (w *Watch) ends(p Program) {
	i := slices.IndexFunc(w.running, func(r Program) bool {
		return slices.Equal(r.Leave, p.Leave) && r.History == p.History && r.Held == p.Held
	})
	w.running = slices.Delete(w.running, max(i, 0), max(i, 0)+1)
	w.settle()
	if len(w.running) > 0 { // what may stay now
		w.save()
	}
}

// folder is one of the workspace, as it was seen last.
type folder struct {
	stamp stamp
	kids  map[string]*folder
	gits  []string // names in it that git takes for a repository's
	names []string // protected names in it that are no folders
	bare  bool     // it is one itself
	place place
}

// place is what the folders above make of one.
type place int

const (
	usual    place = iota
	packaged       // of installed packages: what is in there isn't the workspace's
	guarded        // a protected name, or below one
)

// packages are the folders that package managers fill.
var packages = []string{"node_modules", "bower_components", "site-packages", "vendor"}

// of is the place of a name in a folder that is in this place.
func (p place) of(folder, name string) place {
	switch {
	case p == packaged, slices.Contains(packages, name), wasMoved(name):
		return packaged
	case p == guarded:
		return guarded
	}
	if _, ok := protected.Of(folder + "/" + name); ok {
		return guarded
	}
	return usual
}

// stamp is what changes when a file or the list of a folder's files does.
type stamp struct {
	ino        uint64
	size       int64
	sec, nsec  int64
	mtime      int64 // in seconds
	mode       uint32
	unsettled  bool // it changed just now: another change could have the same time
	isThere    bool
	unreadable bool
}

// settled is how long after a change another one has another time.
const settled = 50 * time.Millisecond

func stampOf(path string) stamp { return stampFrom(fromRoot, path) }

func stampFrom(at from, path string) stamp {
	var st unix.Stat_t
	if err := lstat(at, path, &st); err != nil {
		return stamp{}
	}
	s := stamp{ino: st.Ino, size: st.Size, sec: int64(st.Ctim.Sec), nsec: int64(st.Ctim.Nsec), mtime: int64(st.Mtim.Sec), mode: uint32(st.Mode), isThere: true} //nolint:unconvert // other systems have other types
	age := time.Since(time.Unix(s.sec, s.nsec))
	wait := settled
	if s.nsec == 0 { // a file system with whole seconds
		wait = 2 * time.Second
	}
	s.unsettled = age < wait
	return s
}

func (s stamp) kind() uint32 { return s.mode & unix.S_IFMT }

// is reports whether nothing changed since another stamp was taken.
func (s stamp) is(before stamp) bool {
	settled := !before.unsettled && !before.unreadable
	s.unsettled, s.unreadable, before.unsettled, before.unreadable = false, false, false, false
	return settled && s == before
}

// look walks the workspace. It accepts what it finds, or moves aside what is new
// and makes git run or load something.
func (w *Watch) look(ctx context.Context, accept bool) []Moved {
	killed := false
	if w.tree == nil {
		w.tree = &folder{}
		w.above()
		killed = w.recall()
	}
	l := w.looking(ctx)
	l.accept, l.held, w.folders = accept && !killed, l.held && !killed, 0
	if w.over != "" {
		l.found(w.over)
	}
	w.visit(l, w.tree, w.root, "")
	l.settle()
	for path := range w.items {
		if !w.sees[path] {
			delete(w.items, path)
		}
	}
	moved := append(w.left, l.moved...)
	w.left = nil
	return moved
}

// looking begins a look.
func (w *Watch) looking(ctx context.Context) *looking {
	w.sees = map[string]bool{}
	held := !slices.ContainsFunc(w.running, func(p Program) bool { return !p.Held })
	return &looking{w: w, ctx: ctx, from: fromRoot, held: held, repos: map[string]bool{}, rooted: map[string]bool{}}
}

// settle looks at the git folders that were found, and moves aside what may not stay.
func (l *looking) settle() {
	for len(l.todo) > 0 {
		dir := l.todo[0]
		l.todo = l.todo[1:]
		l.repository(dir)
	}
	l.names()
}

// above adds the repository that the workspace lies in.
func (w *Watch) above() {
	for dir := w.root; dir != "/"; {
		dir = filepath.Dir(dir)
		if at := filepath.Join(dir, ".git"); there(at) {
			w.over = at
			return
		}
	}
}

// within reports whether a path is a folder or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// visit looks at a folder and those below. One that hasn't changed isn't read.
// root is the folder with a protected name that it lies in, if it does.
func (w *Watch) visit(l *looking, f *folder, path, root string) {
	if f.place != packaged {
		w.folders++
	}
	root = w.enter(l, f, path, root)
	defer l.nearer(path)()
	for name, kid := range f.kids {
		w.visit(l, kid, path+"/"+name, root)
	}
}

// enter looks at one folder, and returns the one with a protected name that it lies
// in, or is.
func (w *Watch) enter(l *looking, f *folder, path, root string) string {
	now := stampFrom(l.from, path)
	if !now.isThere || now.kind() != unix.S_IFDIR {
		*f = folder{place: f.place}
		return root
	}
	if f.place == guarded && root == "" {
		root = path
	}
	if len(path) > maxPath {
		l.tooDeep(path, now)
		return root
	}
	if !now.is(f.stamp) {
		if now.ino != f.stamp.ino {
			f.kids = nil // another folder
		}
		f.stamp = now
		f.read(l.from, path, w.base(f, path))
	}
	for _, name := range f.gits {
		l.found(path + "/" + name)
	}
	if f.bare {
		l.found(path)
	}
	for _, name := range f.names {
		l.name(path+"/"+name, root)
	}
	return root
}

// base is a folder's name as far as it counts: the folders that a workspace lies in
// don't, and the workspace's own doesn't either.
func (w *Watch) base(f *folder, path string) string {
	if f == w.tree {
		return ""
	}
	return filepath.Base(path)
}

// read lists a folder again.
func (f *folder) read(at from, path, base string) {
	entries, err := readDir(at, path)
	f.stamp.unreadable = err != nil
	kids, names := map[string]*folder{}, map[string]bool{}
	f.gits, f.names = nil, nil
	for _, e := range entries {
		switch name := e.Name(); {
		case isGitName(name):
			f.gits = append(f.gits, name)
		case e.IsDir():
			if kids[name] = f.kids[name]; kids[name] == nil {
				kids[name] = &folder{place: f.place.of(base, name)}
			}
			fallthrough
		default:
			if ofBare(name) {
				names[name] = true
			}
			if !e.IsDir() && f.place.of(base, name) == guarded {
				f.names = append(f.names, name)
			}
		}
	}
	f.kids, f.bare = kids, names["HEAD"] && (names["commondir"] || names["objects"] && names["refs"])
	if len(kids) == 0 {
		f.kids = nil
	}
}

// ofBare reports whether a name is one of those by which git knows a folder for a
// repository's.
func ofBare(name string) bool {
	return name == "HEAD" || name == "objects" || name == "refs" || name == "commondir"
}

// isGitName reports whether git, or a file system that compares names in its own
// way, takes a name for .git.
func isGitName(name string) bool {
	if len(name) < 4 || name[0] != '.' || name[1]|0x20 != 'g' && name[1] < 0x80 {
		return name == "git~1"
	}
	e, ok := protected.Of(name)
	return ok && e.Name == ".git"
}

// looking is one look.
type looking struct {
	w      *Watch
	ctx    context.Context
	from   from  // where the walk begins its paths
	live   *live // programs go on, and may not be done with a file
	accept bool
	held   bool            // nothing that runs can change protected names that exist
	repos  map[string]bool // found in this look
	todo   []string        // of those, not looked at yet
	moved  []Moved
	reads  int             // of configuration
	fresh  []fresh         // protected names that are new, or other than before
	rooted map[string]bool // folders with a protected name in which something may stay
}

// found takes note of a git folder, or of a file in its place.
func (l *looking) found(path string) {
	if !l.repos[path] {
		l.repos[path] = true
		l.todo = append(l.todo, path)
	}
}

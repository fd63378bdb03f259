//go:build unix

// Package fswalk goes over the files of a workspace. It promises: nothing outside
// the root is reached and no link followed; the order is always the same; the
// memory it takes doesn't grow with the number of files, also when they all lie
// in one folder; what ignore files exclude is left out unless it is asked for;
// a folder that can't be read is passed over and reported. It knows nothing of
// what is done with a file.
//
// Ignore files are .gitignore, with git's meaning, and .ignore, with the same
// form and the last word, in every folder from the root of the workspace down,
// and .git/info/exclude. What git tracks although it is ignored isn't known
// here, and neither are ignore files above the workspace.
package fswalk

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/belay-run/belay/internal/lib/files"
)

const (
	// batch is how many names of a folder are in memory at once.
	batch = 8192
	// maxDepth bounds how deep a walk goes, whatever is asked for: each level
	// holds a folder open.
	maxDepth = 200
	// maxReported is how many folders a report names.
	maxReported = 5
)

// Options say what a walk visits. The zero value visits files that are neither
// hidden nor ignored.
type Options struct {
	Hidden  bool                   // names that begin with a dot too; the inside of .git never
	Ignored bool                   // what ignore files exclude too
	Folders bool                   // folders too, each before what is in it
	Depth   int                    // levels below the start, from 1; 0 is all
	Enter   func(path string) bool // whether to look into a folder; nil is always
}

// Report is what a walk couldn't visit.
type Report struct {
	Unread []string // folders that couldn't be read, or lie too deep; the first few
	More   int      // how many more there are
}

// SkipAll, returned by a visit, ends the walk without an error.
var SkipAll = fs.SkipAll

// Entry is something the walk came to. It may be used until the visit returns.
type Entry struct {
	Path string // slash-separated, relative to the root
	Type fs.FileMode
	dir  *folder
}

// Name is the last part of the path.
func (e Entry) Name() string { return path.Base(e.Path) }

// Info is what the system knows of the entry, a link not followed.
func (e Entry) Info() (fs.FileInfo, error) { return e.dir.root.Lstat(e.Name()) }

// Link is where a link leads.
func (e Entry) Link() (string, error) { return e.dir.root.Readlink(e.Name()) }

// Open opens a regular file.
func (e Entry) Open() (*os.File, fs.FileInfo, error) { return files.OpenIn(e.dir.root, e.Name()) }

// folder is an open folder.
type folder struct {
	root  *os.Root
	path  string // of the folder; "." is the root
	rules *rules
}

// Walk visits what lies below start, a folder, or start itself when it is a
// file. What start lies in is not asked whether it is ignored or hidden. An
// error of visit ends the walk and is returned.
func Walk(ctx context.Context, root *os.Root, start string, o Options, visit func(Entry) error) (Report, error) {
	w := &walker{ctx: ctx, options: o, visit: visit}
	if o.Depth == 0 || o.Depth > maxDepth {
		w.options.Depth = maxDepth
	}
	err := w.start(root, path.Clean(start))
	if errors.Is(err, SkipAll) {
		err = nil
	}
	return w.report, err
}

type walker struct {
	ctx     context.Context
	options Options
	visit   func(Entry) error
	report  Report
}

func (w *walker) start(root *os.Root, start string) error {
	info, err := root.Stat(start)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		dir, err := open(root, path.Dir(start), nil)
		if err != nil {
			return err
		}
		defer dir.root.Close()
		return w.visit(Entry{Path: start, Type: info.Mode().Type(), dir: dir})
	}
	var above *rules
	if !w.options.Ignored {
		if above, err = rulesAbove(root, start); err != nil {
			return err
		}
	}
	dir, err := open(root, start, above)
	if err != nil {
		return err
	}
	defer dir.root.Close()
	return w.folder(dir, 1)
}

// open opens a folder by a path.
func open(root *os.Root, name string, above *rules) (*folder, error) {
	sub, err := files.OpenRootIn(root, name)
	if err != nil {
		return nil, err
	}
	return &folder{root: sub, path: name, rules: above}, nil
}

// folder visits what is in a folder, in passes of so many names.
func (w *walker) folder(dir *folder, depth int) error {
	for after := ""; ; {
		p, err := readPass(dir, after)
		if err != nil {
			if after == "" {
				w.unread(dir.path)
				return nil
			}
			return err
		}
		if after == "" && !w.options.Ignored {
			dir.rules = dir.withRules()
		}
		for _, e := range p.items {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if err := w.entry(dir, e, depth); err != nil {
				return err
			}
		}
		if !p.more {
			return nil
		}
		after = p.items[len(p.items)-1].name
	}
}

func (w *walker) unread(name string) {
	if len(w.report.Unread) < maxReported {
		w.report.Unread = append(w.report.Unread, name)
		return
	}
	w.report.More++
}

// entry visits one name, and what is below it.
func (w *walker) entry(dir *folder, e item, depth int) error {
	git := isGit(e.name)
	if e.name[0] == '.' && !w.options.Hidden || git && !w.options.Folders {
		return nil
	}
	full := e.name
	if dir.path != "." {
		full = dir.path + "/" + e.name
	}
	if !w.options.Ignored && dir.rules.ignored(full, e.name, e.typ.IsDir()) {
		return nil
	}
	if !e.typ.IsDir() {
		return w.visit(Entry{Path: full, Type: e.typ, dir: dir})
	}
	if w.options.Folders {
		if err := w.visit(Entry{Path: full, Type: e.typ, dir: dir}); err != nil {
			return err
		}
	}
	if git || depth >= w.options.Depth || w.options.Enter != nil && !w.options.Enter(full) {
		if depth >= maxDepth {
			w.unread(full)
		}
		return nil
	}
	sub, err := open(dir.root, e.name, dir.rules)
	if err != nil {
		w.unread(full)
		return nil
	}
	sub.path = full
	defer sub.root.Close()
	return w.folder(sub, depth+1)
}

// isGit reports whether a name is that of git's own folder, or of the file in
// its place.
func isGit(name string) bool { return strings.EqualFold(name, ".git") }

// item is a name in a folder.
type item struct {
	name string
	typ  fs.FileMode
}

// pass is a part of a folder's names, sorted.
type pass struct {
	items []item
	more  bool // names follow
}

// readPass reads the first names after one, as many as a pass has. The system
// gives names in any order: it is asked for all of them each time, and those
// that are too late are dropped.
func readPass(dir *folder, after string) (p pass, err error) {
	f, err := dir.root.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return p, err
	}
	defer f.Close()
	last := "" // names from here on are too late; empty: none is
	for {
		entries, err := f.ReadDir(512)
		for _, e := range entries {
			name := e.Name()
			if name <= after || last != "" && name > last {
				p.more = p.more || last != "" && name > last
				continue
			}
			if p.items = append(p.items, item{name, e.Type()}); len(p.items) == 2*batch {
				p.cut()
				last = p.items[batch-1].name
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p, err
		}
	}
	slices.SortFunc(p.items, byName)
	if len(p.items) > batch {
		p.cut()
	}
	return p, nil
}

func byName(a, b item) int { return strings.Compare(a.name, b.name) }

// cut leaves the first names.
func (p *pass) cut() {
	slices.SortFunc(p.items, byName)
	p.items, p.more = p.items[:batch], true
}

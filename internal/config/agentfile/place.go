package agentfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
)

// Origins of agents, the strongest first.
const (
	Given     = "given" // a folder that a person named
	Workspace = "workspace"
	User      = "user"
	System    = "system"
	BuiltIn   = "built-in" // no file
)

// Bounds of a place.
const (
	MaxFiles = 1000
	MaxBytes = 1 << 20
	maxSeen  = 10 * MaxFiles // files and folders, whether they are agents or not
)

// Place is a folder of agents: one below another that is entered without following links,
// or that other itself.
type Place struct {
	Dir    string
	Below  string // relative to Dir
	Origin string
	Trusts func(rel string, content []byte) bool // reports whether a file, relative to Dir, counts in full; nil: each does
	Good   func(name string) (content []byte)    // the last good content of a file, by its absolute name; nil: none is known
}

// found is a file of a place, or what is there instead.
type found struct {
	rel, name     string // in the place's folder, in the file system
	data          []byte
	trusted       bool
	code, problem string // why it can't be read; empty: it was
}

// walk visits the files that pick takes, in the order of their names. pick sees folders
// too: with a file's name of one, that file is all that counts there.
func (p Place) walk(pick func(root *os.Root, rel string, d fs.DirEntry) (file string, take bool), visit func(found)) {
	dir := filepath.Join(p.Dir, filepath.FromSlash(p.Below))
	bad := func(where, code, format string, args ...any) {
		rel, _ := filepath.Rel(dir, where) //nolint:errcheck // it is below
		visit(found{rel: filepath.ToSlash(rel), name: where, trusted: p.Trusts == nil, code: code, problem: fmt.Sprintf(format, args...)})
	}
	root, err := p.open()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		bad(dir, CodeUnreadable, "the folder can't be read: %v", cause(err))
		return
	}
	defer root.Close()
	n, seen := 0, 0
	fs.WalkDir(files.Tree(root), ".", func(rel string, d fs.DirEntry, err error) error { //nolint:errcheck // the function returns none but to stop
		name := filepath.Join(dir, filepath.FromSlash(rel))
		switch {
		case err != nil:
			bad(name, CodeUnreadable, "it can't be read: %v", cause(err))
			return skip(d)
		case rel == ".":
			return nil
		case d.Name()[0] == '.' || d.Name()[0] == '_':
			return skip(d)
		}
		if seen++; seen > maxSeen {
			bad(dir, CodeTooMany, "there are more than %d files and folders; the others aren't looked at", maxSeen)
			return fs.SkipAll
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		file, take := pick(root, rel, d)
		if !take {
			return nil
		}
		if n++; n > MaxFiles {
			bad(dir, CodeTooMany, "there are more than %d files; the others aren't read", MaxFiles)
			return fs.SkipAll
		}
		rel = path.Join(rel, file)
		name = filepath.Join(name, file)
		data, err := read(root, rel)
		if err != nil {
			bad(name, CodeUnreadable, "it can't be read: %v", cause(err))
			return skip(d)
		}
		visit(found{rel: rel, name: name, data: data, trusted: p.trusts(rel, data)})
		return skip(d)
	})
}

func (p Place) trusts(rel string, data []byte) bool {
	return p.Trusts == nil || p.Trusts(path.Join(p.Below, rel), data)
}

// open opens the place's folder. A link on the way to it from Dir is no folder.
func (p Place) open() (*os.Root, error) {
	root, err := files.OpenRoot(p.Dir)
	if err != nil || p.Below == "" {
		return root, err
	}
	defer root.Close()
	for i := 0; i <= len(p.Below); i++ {
		if i < len(p.Below) && p.Below[i] != '/' {
			continue
		}
		if info, err := root.Lstat(filepath.FromSlash(p.Below[:i])); err != nil || !info.IsDir() {
			return nil, fs.ErrNotExist
		}
	}
	return files.OpenRootIn(root, filepath.FromSlash(p.Below))
}

func skip(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// cause is an error without the path that it is about.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func read(root *os.Root, rel string) ([]byte, error) {
	f, _, err := files.OpenIn(root, filepath.FromSlash(rel))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// Stamp changes when a file in one of the places does, as far as names, sizes and times
// tell. It looks at what is read, and at nothing beyond the bounds of a place.
func Stamp(places []Place) belay.Digest {
	var b strings.Builder
	for _, p := range places {
		root, err := p.open()
		if err != nil {
			continue
		}
		n, seen := 0, 0
		fs.WalkDir(files.Tree(root), ".", func(rel string, d fs.DirEntry, err error) error { //nolint:errcheck // what can't be read is looked at when it changes
			if err != nil || rel != "." && (d.Name()[0] == '.' || d.Name()[0] == '_') {
				return skip(d)
			}
			if !d.IsDir() && Names(d.Name()) {
				n++
			}
			if seen++; seen > maxSeen+1 || n > MaxFiles { // the folder itself is seen, too
				return fs.SkipAll
			}
			if info, err := d.Info(); err == nil && (info.IsDir() || Names(d.Name())) {
				fmt.Fprintf(&b, "%s/%s/%s %d %d %v\n", p.Dir, p.Below, rel, info.Size(), info.ModTime().UnixNano(), info.Mode())
			}
			return nil
		})
		root.Close()
	}
	return belay.DigestOf([]byte(b.String()))
}

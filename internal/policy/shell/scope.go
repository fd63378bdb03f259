package shell

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// dirs is where a command may run: any of a few directories, or unknown.
type dirs struct {
	known  bool
	list   []string
	astray bool // not known because the shell went there, not because of what starts the command
}

// anywhere is the place of a shell that changed to an unknown directory.
var anywhere = dirs{astray: true}

const (
	maxDirs = 8
	maxPath = 4096 // longer paths can't be gone to
)

func (d dirs) or(e dirs) dirs {
	if !d.known || !e.known {
		return dirs{astray: d.astray || e.astray}
	}
	list := d.list
	for _, p := range e.list {
		if !slices.Contains(list, p) {
			list = append(slices.Clip(list), p)
		}
	}
	if len(list) > maxDirs {
		return anywhere
	}
	return dirs{known: true, list: list}
}

// to is where a literal cd leads.
func (d dirs) to(p string) dirs {
	if strings.HasPrefix(p, "/") {
		return dirs{known: true, list: []string{path.Clean(p)}}
	}
	if !d.known {
		return d
	}
	list := make([]string, len(d.list))
	for i, base := range d.list {
		if len(base)+len(p) > maxPath {
			return anywhere
		}
		list[i] = path.Join(base, p)
	}
	return dirs{known: true, list: list}
}

// scope is what the commands of a list share.
type scope struct {
	dirs  dirs
	funcs map[string]bool // functions that are defined for certain; false while their body is read
	loose bool            // names may mean something else here: a file was sourced
}

func (a *analysis) scope() *scope {
	sc := &scope{}
	if a.o.Dir != "" {
		sc.dirs = dirs{known: true, list: []string{a.o.Dir}}
	}
	return sc
}

func (s *scope) defines(name string) bool {
	_, ok := s.funcs[name]
	return ok
}

// inner is the scope of a subshell, or of what may not run at all: it begins
// like this one and leaves nothing behind.
func (s *scope) inner() *scope {
	in := &scope{dirs: s.dirs, loose: s.loose}
	if len(s.funcs) > 0 {
		in.funcs = maps.Clone(s.funcs)
	}
	return in
}

// outcome is where the shell is after a command, by how the command ended.
type outcome struct{ ok, fail dirs }

func (o outcome) either() dirs { return o.ok.or(o.fail) }

func stays(d dirs) outcome { return outcome{d, d} }

package shell

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// dirs is where a command may run: any of a few directories, or nobody knows.
type dirs struct {
	known bool
	list  []string
}

const maxDirs = 8

func (d dirs) or(e dirs) dirs {
	if !d.known || !e.known {
		return dirs{}
	}
	list := d.list
	for _, p := range e.list {
		if !slices.Contains(list, p) {
			list = append(slices.Clip(list), p)
		}
	}
	if len(list) > maxDirs {
		return dirs{}
	}
	return dirs{true, list}
}

// to is where a literal cd leads.
func (d dirs) to(p string) dirs {
	if strings.HasPrefix(p, "/") {
		return dirs{true, []string{path.Clean(p)}}
	}
	if !d.known {
		return dirs{}
	}
	list := make([]string, len(d.list))
	for i, base := range d.list {
		list[i] = path.Join(base, p)
	}
	return dirs{true, list}
}

// scope is what the commands of a list share.
type scope struct {
	dirs  dirs
	funcs map[string]bool // functions that are defined for certain; false while their body is read
	loose bool            // names may mean something else here: a file was sourced
	vars  map[string]bool // variables that were set here and that programs may see
}

func (a *analysis) scope() *scope {
	sc := &scope{}
	if a.o.Dir != "" {
		sc.dirs = dirs{true, []string{a.o.Dir}}
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
	return &scope{dirs: s.dirs, funcs: maps.Clone(s.funcs), loose: s.loose, vars: maps.Clone(s.vars)}
}

// outcome is where the shell is after a command, by how the command ended.
type outcome struct{ ok, fail dirs }

func (o outcome) either() dirs { return o.ok.or(o.fail) }

func stays(d dirs) outcome { return outcome{d, d} }

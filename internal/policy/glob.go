package policy

import (
	"path"
	"strings"
)

// glob is a pattern over paths with slashes: ? is one character, * any number of
// them within a name, ** any number of folders. Without a slash it names files
// in any folder.
type glob struct {
	parts []string
	fold  bool // case doesn't matter
}

func newGlob(pattern string, fold bool) glob {
	if fold {
		pattern = strings.ToLower(pattern)
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
		pattern = "**/" + pattern
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	return glob{strings.Split(pattern, "/"), fold}
}

// Glob reports whether a pattern fits a path: ? is one character, * any number of
// them within a name, ** any number of folders.
func Glob(pattern, p string) bool { return newGlob(pattern, false).matches(p) }

// matches compares a path, cleaned here.
func (g glob) matches(p string) bool {
	p = path.Clean(p)
	if g.fold {
		p = strings.ToLower(p)
	}
	return matchParts(g.parts, strings.Split(p, "/"))
}

func matchParts(pattern, names []string) bool {
	return wild(len(pattern), len(names), func(i int) bool { return pattern[i] == "**" }, func(i, j int) bool { return matchName(pattern[i], names[j]) })
}

func matchName(pattern, name string) bool {
	return wild(len(pattern), len(name), func(i int) bool { return pattern[i] == '*' }, func(i, j int) bool { return pattern[i] == '?' || pattern[i] == name[j] })
}

// like compares a name with a pattern in which * stands for anything.
func like(pattern, name string) bool {
	return pattern == name || strings.Contains(pattern, "*") && matchName(pattern, name)
}

// wild walks a pattern and what it is held against. Of the wildcards only the
// last is tried again, which is enough: the time is bounded by the product of
// the lengths.
func wild(patterns, names int, anything func(i int) bool, fits func(i, j int) bool) bool {
	back, at := -1, 0
	i, j := 0, 0
	for j < names {
		switch {
		case i < patterns && anything(i):
			back, at = i, j
			i++
		case i < patterns && fits(i, j):
			i++
			j++
		case back >= 0:
			at++
			i, j = back+1, at
		default:
			return false
		}
	}
	for i < patterns && anything(i) {
		i++
	}
	return i == patterns
}

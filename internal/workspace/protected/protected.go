// Package protected knows the names of files that something else runs or obeys:
// version control, shells, package managers, build tools, editors, agents and
// the runtime itself. Writing one decides what runs later, outside of every
// boundary. The gate, the tools that change files, the reading of command lines
// and the boundary of processes all ask this one list. It looks at names only;
// whether a file exists doesn't matter.
package protected

import "strings"

// Entry is one protected name.
type Entry struct {
	// Name is the end of a path, or its last folders: one component or several with
	// slashes, in lower case. What lies below is protected as well. A component **
	// stands for any number of folders, and a * in one for any characters. The name .git alone is the file, not the folder's contents.
	Name string
	// Why names what runs or obeys it.
	Why string
}

// Of is the entry that protects a path, read as text: relative to a workspace,
// or absolute. Case doesn't matter, nor do characters that are invisible or that
// some file systems drop. The folders that a workspace lies in aren't part of
// it, so cut them off an absolute path first.
func Of(p string) (Entry, bool) { return find(p, entries()) }

// Lured is the entry of a name that counts once content from outside is in the
// conversation.
func Lured(p string) (Entry, bool) { return find(p, lured) }

// Core reports whether a core name protects a path.
func Core(p string) bool {
	_, ok := find(p, coreNames)
	return ok
}

func find(p string, among list) (Entry, bool) {
	for i := range len(p) {
		if p[i] == '/' || i > 0 && p[i-1] != '/' {
			continue
		}
		if e, ok := at(p[i:], among); ok {
			return e, true
		}
	}
	return Entry{}, false
}

// at looks for an entry that begins with the first component of a path.
func at(p string, among list) (Entry, bool) {
	first, rest, _ := strings.Cut(p, "/")
	if first = fold(first); first == "" {
		return Entry{}, false
	}
	for _, some := range [][]Entry{among.plain[first], among.patterns} {
		for _, e := range some {
			want, more, deep := strings.Cut(e.Name, "/")
			switch {
			case !like(want, first):
			case deep && fits(more, rest), !deep && (want != ".git" || strings.Trim(rest, "/") == ""):
				return e, true
			}
		}
	}
	return Entry{}, false
}

// fits holds the components behind the first against those of a name.
func fits(want, p string) bool {
	p = strings.TrimLeft(p, "/")
	if p == "" {
		return false
	}
	first, rest, _ := strings.Cut(p, "/")
	part, more, deep := strings.Cut(want, "/")
	if part == "**" {
		return fits(more, p) || fits(want, rest)
	}
	return like(part, fold(first)) && (!deep || fits(more, rest))
}

// like compares one component.
func like(want, name string) bool {
	begin, end, pattern := strings.Cut(want, "*")
	if !pattern {
		return want == name
	}
	return len(name) >= len(begin)+len(end) && strings.HasPrefix(name, begin) && strings.HasSuffix(name, end)
}

// fold is a name as a file system that ignores case and invisible characters
// would compare it.
func fold(part string) string {
	part = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		case r == 'ı', r == 'İ':
			return 'i'
		case r == 'ſ':
			return 's'
		case r == 'K': // the Kelvin sign
			return 'k'
		}
		return r
	}, part)
	return strings.ToLower(strings.TrimRight(part, ". "))
}

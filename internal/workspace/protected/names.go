package protected

import (
	_ "embed"
	"strings"
	"sync"
)

// namesText is the list, by who runs or obeys the files, with a source for each.
//
//go:embed names.txt
var namesText string

// entries are the names of the list, and the core ones. They are read when they are first
// asked for: most commands never do.
var entries = sync.OnceValue(func() list { return index(append(read(namesText), core...)) })

// lured are names of project code that runs unasked. Agents write them all the
// time, so they count only where untrusted content may have asked for it.
var lured = index(of("it runs whenever tests or tools of the project are started", "conftest.py", "setup.cfg", "tox.ini", "noxfile.py"))

// core are the names that file tools never write.
var core = []Entry{
	{Name: ".belay", Why: "the runtime obeys it"},
	{Name: ".git", Why: "a file of this name sends git elsewhere"},
	{Name: ".git/**/hooks", Why: "git runs it"},
	{Name: ".git/**/config*", Why: "git obeys it, and runs what it names"},
}

var coreNames = index(core)

// read reads a list: kinds in brackets, and below each lines of a source and names.
func read(text string) (all []Entry) {
	why := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch kind, is := strings.CutPrefix(line, "["); {
		case line == "" || line[0] == '#':
		case is:
			why = strings.TrimSuffix(kind, "]")
		default:
			all = append(all, of(why, strings.Fields(line)[1:]...)...)
		}
	}
	return all
}

func of(why string, names ...string) []Entry {
	out := make([]Entry, len(names))
	for i, n := range names {
		out[i] = Entry{Name: n, Why: why}
	}
	return out
}

// list is some entries, by their first component where that is no pattern.
type list struct {
	plain    map[string][]Entry
	patterns []Entry
}

func index(all []Entry) list {
	l := list{plain: map[string][]Entry{}}
	for _, e := range all {
		first, _, _ := strings.Cut(e.Name, "/")
		if strings.Contains(first, "*") {
			l.patterns = append(l.patterns, e)
		} else {
			l.plain[first] = append(l.plain[first], e)
		}
	}
	return l
}

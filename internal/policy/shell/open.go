package shell

import (
	"path"
	"strings"
)

// Opens says why a beginning of command lines leaves open what they run: the words are
// an interpreter, a shell, a wrapper or a package runner and at most options. It is
// empty for words that name what runs, and for programs that run nothing else.
func Opens(words []string) (why string) {
	if len(words) == 0 {
		return "it names no program"
	}
	name := path.Base(words[0])
	p, rest := lookup(name), words[1:]
	if len(rest) > 0 {
		if sub := lookup(name + " " + rest[0]); sub != nil {
			p, rest, name = sub, rest[1:], name+" "+rest[0]
		}
	}
	if p == nil {
		return ""
	}
	for _, w := range rest {
		if !strings.HasPrefix(w, "-") {
			return ""
		}
	}
	switch {
	case p.starts == "shell", p.code:
		return name + " runs any code"
	case p.starts != "":
		return name + " runs any program"
	case p.why == fetches:
		return name + " fetches and runs any program"
	}
	return ""
}

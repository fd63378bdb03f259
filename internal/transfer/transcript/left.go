package transcript

import (
	"fmt"
	"slices"
	"strings"
)

// shownLines is how many line numbers a loss names.
const shownLines = 5

// Loss is something of a file that the conversation doesn't have.
type Loss struct {
	What  string `json:"what"`
	Count int    `json:"count"`
	Lines []int  `json:"lines,omitempty"` // the first of them
}

// String is the loss for people.
func (l Loss) String() string {
	var where []string
	for _, n := range l.Lines {
		where = append(where, itoa(n))
	}
	more := ""
	if l.Count > len(l.Lines) {
		more = " …"
	}
	s := "s"
	if l.Count == 1 && len(l.Lines) == 1 {
		s = ""
	}
	return fmt.Sprintf("%d × %s (line%s %s%s)", l.Count, l.What, s, strings.Join(where, ", "), more)
}

// left collects losses, each kind once. found is what a reading of the lines added.
type left struct {
	all   []Loss
	found *left
}

func (l *left) add(what string, line int) {
	i := l.index(what)
	if i < 0 && len(l.all) >= maxKinds {
		what = "something else"
		i = l.index(what)
	}
	if i < 0 {
		i = len(l.all)
		l.all = append(l.all, Loss{What: what})
	}
	loss := &l.all[i]
	if loss.Count++; len(loss.Lines) < shownLines && line > 0 {
		loss.Lines = append(slices.Clip(loss.Lines), line) // a clone keeps its own
	}
}

func (l *left) index(what string) int {
	return slices.IndexFunc(l.all, func(o Loss) bool { return o.What == what })
}

// maxKinds bounds how many kinds of losses are listed.
const maxKinds = 60

func (l *left) list() []Loss { return append([]Loss{}, l.all...) }

func (l *left) clone() *left { return &left{all: slices.Clone(l.all)} }

// kind is a word of a file, made fit to be shown.
func kind(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '?'
	}, s)
	if len(s) > 40 {
		s = s[:40]
	}
	if s == "" {
		return "nameless"
	}
	return s
}

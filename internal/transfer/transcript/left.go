package transcript

import (
	"fmt"
	"maps"
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

// left collects losses. found is what a reading of the lines added.
type left struct {
	order []string
	by    map[string]*Loss
	found *left
}

func (l *left) add(what string, line int) {
	if l.by == nil {
		l.by = map[string]*Loss{}
	}
	if l.by[what] == nil && len(l.by) >= maxKinds {
		what = "something else"
	}
	loss := l.by[what]
	if loss == nil {
		loss = &Loss{What: what}
		l.by[what] = loss
		l.order = append(l.order, what)
	}
	if loss.Count++; len(loss.Lines) < shownLines && line > 0 {
		loss.Lines = append(loss.Lines, line)
	}
}

// maxKinds bounds how many kinds of losses are listed.
const maxKinds = 60

func (l *left) list() []Loss {
	out := make([]Loss, 0, len(l.order))
	for _, what := range l.order {
		out = append(out, *l.by[what])
	}
	return out
}

func (l *left) clone() *left {
	c := &left{order: slices.Clone(l.order), by: map[string]*Loss{}}
	for what, loss := range maps.All(l.by) {
		copied := *loss
		copied.Lines = slices.Clone(loss.Lines)
		c.by[what] = &copied
	}
	return c
}

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

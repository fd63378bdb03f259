package secret

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/lazyregexp"
)

// part is a secret in a content, and the marks that stand for it.
type part struct {
	from, to int
	rule     string
	marks    []string // the first is the one that is shown
}

// parts are the secrets of a content, in order, apart from each other.
func (s *Scrubber) parts(b []byte) []part {
	var all []part
	if t := s.search.Load(); t != nil {
		for at, f := t.next(b, 0); f != nil; at, f = t.next(b, at+len(f.text)) {
			p := part{at, at + len(f.text), registered, []string{f.mark}}
			if k := s.key.Load(); k != nil {
				p.marks = append(p.marks, f.sign(*k))
			}
			all = append(all, p)
		}
	}
	known := s.known.Load()
	if known == nil {
		return all
	}
	own := len(all)
	for _, h := range known.look(b, true, true).spans {
		over := func(p part) bool { return h.from < p.to && p.from < h.to }
		if !slices.ContainsFunc(all[:own], over) { // what is registered is taken out first
			all = append(all, part{h.from, h.to, forms[h.form].name, []string{s.mark(h.form, b[h.from:h.to])}})
		}
	}
	slices.SortFunc(all, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	return all
}

// Found is a secret in a text.
type Found struct {
	Rule     string // the name of its form; registered for a value that was
	From, To int    // bytes
}

// Find returns the secrets of a text, in order.
func (s *Scrubber) Find(b []byte) (all []Found) {
	for _, p := range s.parts(b) {
		all = append(all, Found{p.rule, p.from, p.to})
	}
	return all
}

// Cut returns what content[from:to] is without secrets: in a part alone they may
// not be known, because it has only an end of them or not what stands before them.
// What is taken out is counted.
func (s *Scrubber) Cut(content []byte, taken *Taken) func(from, to int) []byte {
	all := s.parts(content)
	return func(from, to int) []byte {
		var out []byte
		at := from
		for _, p := range all {
			if p.to <= from || p.from >= to {
				continue
			}
			out = append(append(out, content[at:max(at, p.from)]...), p.marks[0]...)
			at = min(p.to, to)
			taken.add(p.rule)
		}
		if out == nil {
			return content[from:to]
		}
		return append(out, content[at:to]...)
	}
}

var anyMark = lazyregexp.Expr{Text: `\[redacted:[A-Za-z0-9_.-]+(?::[0-9a-f]{16})?\]`}

// Restore is a text with the values of a content in place of the marks that stand
// for them. A mark that stands for none, or for several, is unknown; one that the
// content itself has means nothing else.
func (s *Scrubber) Restore(text string, content []byte) (restored, unknown string) {
	if !strings.Contains(text, "[redacted:") {
		return text, ""
	}
	values := map[string]string{}
	for _, p := range s.parts(content) {
		for _, m := range p.marks {
			if v, twice := values[m]; twice && v != string(content[p.from:p.to]) {
				values[m] = "" // which one is unknown
				continue
			}
			values[m] = string(content[p.from:p.to])
		}
	}
	restored = anyMark.Re().ReplaceAllStringFunc(text, func(m string) string {
		switch v := values[m]; {
		case v != "":
			return v
		case !bytes.Contains(content, []byte(m)):
			unknown = cmp.Or(unknown, m)
		}
		return m
	})
	return restored, unknown
}

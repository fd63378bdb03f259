package patch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// placer finds where the hunks of a file belong. All are held against the
// content before; edits are what they come to.
type placer struct {
	file     *File
	text     *text
	edits    []edit
	after    int // line after the hunk placed last
	shift    int // how far from its header that one was
	remarks  []string
	problems Problems
	open     *bool // what the hunks say of the end of the file
}

// edit replaces count lines from one on, numbered from 0.
type edit struct {
	at, count int
	lines     []string
	hunk      int
}

// How exactly old lines are compared.
const (
	exact = iota
	loose // but for white space at the end, kinds of quotes and dashes, and a missing end of line
)

// place finds one hunk and adds its edits, or a problem.
func (p *placer) place(n int) {
	h := &p.file.Hunks[n]
	want := p.lines(h, '+')
	if len(want) == 0 {
		p.insert(n)
		return
	}
	lead, trail := h.context()
	for _, try := range [...]struct{ how, fuzz int }{{exact, 0}, {loose, 0}, {exact, 1}, {loose, 1}, {exact, 2}, {loose, 2}} {
		top, bottom := min(lead, try.fuzz), min(trail, try.fuzz)
		if try.fuzz > 0 && max(top, bottom) < try.fuzz {
			continue // nothing more to leave out
		}
		part := want[top : len(want)-bottom]
		if try.fuzz > 0 && !telling(part) {
			continue
		}
		found := p.find(part, try.how, top)
		if len(found) == 0 {
			continue
		}
		at, ok := p.choose(h, found, top)
		if !ok {
			p.ambiguous(n, found)
			return
		}
		p.found(n, at-top, top, bottom, try.how)
		return
	}
	p.mismatch(n, want)
}

// context counts the lines at the top and the bottom of a hunk that stay.
func (h *Hunk) context() (lead, trail int) {
	for lead < len(h.Body) && h.Body[lead].Kind == ' ' {
		lead++
	}
	for trail < len(h.Body)-lead && h.Body[len(h.Body)-1-trail].Kind == ' ' {
		trail++
	}
	return lead, trail
}

// telling reports whether lines say enough to find a place by a part of a hunk.
func telling(part []Line) bool {
	n := 0
	for _, l := range part {
		n += len(strings.TrimSpace(l.Text))
	}
	return n >= 4
}

// find lists where lines stand; skip lines of the hunk would lie before them.
func (p *placer) find(want []Line, how, skip int) (found []int) {
	for at := 0; at+len(want) <= len(p.text.lines); at++ {
		if at-skip < 0 {
			continue
		}
		if p.stands(want, at, how) {
			found = append(found, at)
		}
	}
	return found
}

func (p *placer) stands(want []Line, at, how int) bool {
	for i, w := range want {
		if !p.same(w, at+i, how) {
			return false
		}
	}
	return true
}

// same compares an old line of a hunk with a line of the file.
func (p *placer) same(w Line, at, how int) bool {
	have := p.text.lines[at]
	if how == loose {
		return w.Text == have || plain(w.Text) == plain(have)
	}
	if w.NoEOL && (!p.text.open || at != len(p.text.lines)-1) {
		return false
	}
	return w.Text == have
}

var typographic = strings.NewReplacer("‘", "'", "’", "'", "‚", "'", "“", `"`, "”", `"`, "„", `"`,
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "−", "-", "\u00a0", " ", "\u202f", " ", "\u2009", " ", "…", "...")

// plain is a line as the loose comparison sees it.
func plain(s string) string {
	s = strings.TrimRight(s, " \t\r")
	for i := range len(s) {
		if s[i] >= 0x80 {
			return strings.TrimRight(typographic.Replace(s), " \t")
		}
	}
	return s
}

// choose picks the place that the hunk means, if that is beyond doubt.
func (p *placer) choose(h *Hunk, found []int, top int) (int, bool) {
	if h.Start > 0 {
		if at := h.Start - 1 + p.shift + top; slices.Contains(found, at) {
			return at, true
		}
		if at := h.Start - 1 + top; slices.Contains(found, at) {
			return at, true
		}
	}
	if h.AtEnd {
		if last := found[len(found)-1]; last+len(p.lines(h, '+'))-top >= len(p.text.lines) {
			return last, true
		}
	}
	if len(h.Anchors) > 0 {
		found = p.anchored(h, found)
	}
	if len(found) > 1 {
		if later := slices.DeleteFunc(slices.Clone(found), func(at int) bool { return at < p.after }); len(later) == 1 {
			return later[0], true
		}
	}
	return found[0], len(found) == 1
}

// lines are those of a hunk as this text has lines, but for one kind.
func (p *placer) lines(h *Hunk, without byte) []Line {
	all := slices.DeleteFunc(slices.Clone(h.Body), func(l Line) bool { return l.Kind == without })
	for i, l := range all {
		all[i].Text = p.text.ours(l.Text)
	}
	return all
}

// anchored leaves the places that follow the hunk's anchors: for each place
// where all of them stand in turn, the next one. Anchors that stand nowhere
// change nothing, which is remarked.
func (p *placer) anchored(h *Hunk, found []int) []int {
	from := p.anchors(h)
	if len(from) == 0 {
		if len(found) == 1 {
			p.remarks = append(p.remarks, fmt.Sprintf("%s: the line %q after @@ was not found; the hunk fits in one place only", p.file.Name(), cut(h.Anchors[len(h.Anchors)-1])))
		}
		return found
	}
	var kept []int
	for _, a := range from {
		if i := slices.IndexFunc(found, func(at int) bool { return at >= a }); i >= 0 {
			kept = append(kept, found[i])
		}
	}
	if kept = slices.Compact(kept); len(kept) == 0 {
		return found
	}
	return kept
}

// anchors are the lines where the last anchor stands below the ones before it.
func (p *placer) anchors(h *Hunk) []int {
	var at []int
	for level, anchor := range h.Anchors {
		var next []int
		for i, l := range p.text.lines {
			if strings.TrimSpace(plain(l)) == strings.TrimSpace(plain(anchor)) && (level == 0 || slices.ContainsFunc(at, func(a int) bool { return a < i })) {
				next = append(next, i)
			}
		}
		if at = next; len(at) == 0 {
			return nil
		}
	}
	return at
}

// found adds the edits of a hunk whose first line stands at a line. Lines left
// out at the top and the bottom stay as they are.
func (p *placer) found(n, at, top, bottom, how int) {
	h := &p.file.Hunks[n]
	first := at
	e := edit{at: at, hunk: n}
	flush := func() {
		if e.count > 0 || len(e.lines) > 0 {
			p.edits = append(p.edits, e)
		}
	}
	for _, l := range h.Body {
		switch l.Kind {
		case ' ':
			flush()
			at++
			e = edit{at: at, hunk: n}
		case '-':
			e.count++
			at++
		case '+':
			e.lines = append(e.lines, p.text.ours(l.Text))
		}
	}
	flush()
	if bottom == 0 {
		p.ending(h, at)
	}
	p.remarkPlace(n, first, max(top, bottom), how)
	p.after = at
}

// remarkPlace reports what differed from the patch.
func (p *placer) remarkPlace(n, at, fuzz, how int) {
	h := &p.file.Hunks[n]
	var said []string
	if h.Start > 0 {
		moved := at + 1 - h.Start
		if moved != 0 {
			said = append(said, fmt.Sprintf("at line %d instead of %d", at+1, h.Start))
		}
		p.shift = moved
	}
	if how == loose {
		said = append(said, "white space, quotes or the end of the file differ")
	}
	if fuzz > 0 {
		said = append(said, fmt.Sprintf("fuzz %d", fuzz))
	}
	if len(said) > 0 {
		p.remarks = append(p.remarks, fmt.Sprintf("%s, hunk %d: %s", p.file.Name(), n+1, strings.Join(said, ", ")))
	}
}

// insert places a hunk that only adds lines: where its header says, after its
// anchor, or at the end.
func (p *placer) insert(n int) {
	h := &p.file.Hunks[n]
	at := len(p.text.lines)
	switch anchors := p.anchors(h); {
	case len(anchors) == 1 && !h.AtEnd:
		at = anchors[0] + 1
	case len(anchors) > 1 && !h.AtEnd:
		p.ambiguous(n, anchors)
		return
	case len(h.Anchors) > 0 && !h.AtEnd:
		p.fail(n, CodeNoMatch, "add lines that stay around the new ones", "the line %q after @@ does not occur", cut(h.Anchors[len(h.Anchors)-1]))
		return
	case h.Start > len(p.text.lines):
		p.fail(n, CodeNoMatch, "add lines that stay around the new ones", "it adds lines after line %d, but the file has %d lines", h.Start, len(p.text.lines))
		return
	case h.numbered():
		at = max(0, min(h.Start+p.shift, len(p.text.lines)))
	}
	e := edit{at: at, hunk: n}
	for _, l := range h.Body {
		e.lines = append(e.lines, p.text.ours(l.Text))
	}
	p.edits = append(p.edits, e)
	p.ending(h, at)
	p.after = at
}

// numbered reports whether a header said where lines are added: after line 0 is
// the beginning of a file that has lines.
func (h *Hunk) numbered() bool { return h.Start > 0 || h.atStart }

// ending takes over what a hunk that reaches the end says of the last line.
func (p *placer) ending(h *Hunk, after int) {
	if after < len(p.text.lines) {
		return
	}
	said, open := false, false
	for _, l := range h.Body {
		said = said || l.NoEOL
		if l.Kind != '-' {
			open = l.NoEOL
		}
	}
	if said {
		p.open = &open
	}
}

// merge makes all edits.
func (p *placer) merge() string {
	slices.SortStableFunc(p.edits, func(a, b edit) int { return cmp.Or(a.at-b.at, a.hunk-b.hunk) })
	var out []string
	at, last := 0, -1
	for _, e := range p.edits {
		if e.at < at {
			p.fail(e.hunk, CodeOverlap, "make one hunk of them", "it changes line %d, which hunk %d changes too", e.at+1, last+1)
			return ""
		}
		out = append(out, p.text.lines[at:e.at]...)
		out = append(out, e.lines...)
		at, last = e.at+e.count, e.hunk
	}
	kept := at < len(p.text.lines)
	out = append(out, p.text.lines[at:]...)
	return p.text.join(out, p.opened(kept))
}

// opened reports whether nothing ends the last line of the result. Without a word
// about it the end stays as it was, unless the last line went and none came.
func (p *placer) opened(kept bool) bool {
	switch {
	case p.open != nil:
		return *p.open
	case !p.text.open || kept || len(p.edits) == 0:
		return p.text.open
	}
	last := p.edits[len(p.edits)-1]
	return last.count == 0 || len(last.lines) > 0
}

// fail adds a problem of a hunk.
func (p *placer) fail(n int, code, hint, format string, args ...any) *Problem {
	q := &Problem{Code: code, Message: fmt.Sprintf(format, args...), File: p.file.Name(), Hunk: n + 1, At: p.file.Hunks[n].Line, Hint: hint}
	p.problems = append(p.problems, q)
	return q
}

// ambiguous is the problem of a hunk that fits in several places.
func (p *placer) ambiguous(n int, found []int) {
	lines := make([]int, min(len(found), 10))
	for i := range lines {
		lines[i] = found[i] + 1
	}
	p.fail(n, CodeAmbiguous, "add lines that stay until it fits in one place only, or @@ and a line above it", "it fits in %d places, at lines %s", len(found), ListLines(lines, len(found)))
}

// ListLines names the first lines of so many.
func ListLines(first []int, count int) string {
	s := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(first)), ", "), "[]")
	if count > len(first) {
		s += ", …"
	}
	return s
}

package patch

import (
	"fmt"
	"slices"
	"strings"
)

// maxTries bounds the comparisons for a message.
const maxTries = 4_000_000

// mismatch describes the line of a hunk that doesn't fit, and what is there
// instead.
func (p *placer) mismatch(n int, want []Line) {
	h := &p.file.Hunks[n]
	if len(p.text.lines) == 0 {
		what := "is empty"
		if p.file.Old == "" {
			what = "is made by it"
		}
		p.fail(n, CodeNoMatch, "put a + before each line", "it has lines that stay or go, but the file %s", what)
		return
	}
	at, matched := p.nearest(h, want)
	i := matched
	q := p.fail(n, CodeNoMatch, "read the file again and copy its lines exactly", "")
	q.Want = cut(want[i].Text)
	q.At = h.lineOf(i)
	if at+i >= len(p.text.lines) {
		q.Message = fmt.Sprintf("line %d of the patch is %q, but the file ends after line %d", q.At, q.Want, len(p.text.lines))
		q.Line, q.At = len(p.text.lines), h.Line
		return
	}
	q.Got, q.Line = cut(p.text.lines[at+i]), at+i+1
	q.Message = fmt.Sprintf("line %d of the patch expects %q, but line %d of the file is %q", q.At, q.Want, q.Line, q.Got)
	q.At = h.Line
	switch {
	case strings.Join(strings.Fields(q.Want), "") == strings.Join(strings.Fields(q.Got), ""):
		q.Hint = "the two differ in white space only: copy it from the file"
	case p.applied(h):
		q.Hint = "the new lines are there already; read the file again"
	}
}

// nearest is where most of the lines from the first on stand, and how many do;
// nearest to the header when several places are alike.
func (p *placer) nearest(h *Hunk, want []Line) (at, matched int) {
	expected := max(h.Start-1+p.shift, 0)
	if h.Start == 0 {
		expected = p.after
		if a := p.anchors(h); len(a) > 0 {
			expected = a[0]
		}
	}
	at, best := min(expected, len(p.text.lines)-1), -1
	tries := 0
	for from := range p.text.lines {
		score, run := 0, 0
		for i := 0; i < len(want) && from+i < len(p.text.lines); i++ {
			tries++
			if plain(want[i].Text) != plain(p.text.lines[from+i]) {
				continue
			}
			if run == i {
				run++
			}
			if strings.TrimSpace(want[i].Text) != "" {
				score += 2
			}
			score++
		}
		if score > best && score > 2 || score == best && score > 2 && distance(from, expected) < distance(at, expected) {
			at, best, matched = from, score, run
		}
		if tries > maxTries {
			break
		}
	}
	if best < 0 {
		at, matched = min(expected, len(p.text.lines)-1), 0
		for matched < len(want)-1 && at+matched < len(p.text.lines) && plain(want[matched].Text) == plain(p.text.lines[at+matched]) {
			matched++
		}
	}
	return at, min(matched, len(want)-1)
}

func distance(a, b int) int { return max(a-b, b-a) }

// lineOf is the line of the patch that has the n-th old line of a hunk.
func (h *Hunk) lineOf(n int) int {
	for _, l := range h.Body {
		if l.Kind == '+' {
			continue
		}
		if n == 0 {
			return l.at
		}
		n--
	}
	return h.Line
}

// applied reports whether the file has the hunk's result already.
func (p *placer) applied(h *Hunk) bool {
	after := p.lines(h, '-')
	added := slices.ContainsFunc(after, func(l Line) bool { return l.Kind == '+' })
	return added && len(p.find(after, loose, 0)) > 0
}

//go:build unix

package search

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/tool"
)

// matcher tells which lines match. Most of a file is never looked at line by
// line: where a text must stand in every match, that is looked for first. It
// may be used from several goroutines.
type matcher struct {
	re    *regexp.Regexp
	prog  *syntax.Prog // the same for an automaton
	needs []need       // one of them stands in every line that matches; none: not known
	plain bool         // a line matches exactly if it has the need
}

// need is a text that is looked for.
type need struct {
	text []byte
	fold bool // in any case; text is lower case ASCII then
	rare int  // place of its rarest byte
	odd  bool // it has a letter that has a relative outside of ASCII: k and s
}

const maxNeeds = 8

// newMatcher reads a pattern.
func newMatcher(pattern string, literal, fold bool) (*matcher, error) {
	switch {
	case pattern == "":
		return nil, tool.Failf(tool.BadArguments, CodeBadPattern, "the pattern is empty")
	case literal && strings.ContainsAny(pattern, "\r\n"):
		return nil, tool.Failf(tool.BadArguments, CodeBadPattern, "the pattern has a line break, and lines are searched one by one").WithHint("search for one of its lines")
	case literal:
		pattern = regexp.QuoteMeta(pattern)
	}
	flags := syntax.Perl
	if fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err == nil && acrossLines(tree) {
		return nil, tool.Failf(tool.BadArguments, CodeBadPattern, "the pattern has a line break, and lines are searched one by one").WithHint("search for one of its lines, with before or after")
	}
	if err == nil {
		if fold {
			pattern = "(?i:" + pattern + ")"
		}
		var re *regexp.Regexp
		if re, err = regexp.Compile(pattern); err == nil {
			m := &matcher{re: re, needs: needsOf(tree)}
			m.plain = len(m.needs) == 1 && tree.Op == syntax.OpLiteral
			m.prog, err = syntax.Compile(tree.Simplify())
			return m, err
		}
	}
	return nil, tool.Failf(tool.BadArguments, CodeBadPattern, "%s", strings.TrimPrefix(err.Error(), "error parsing regexp: ")).
		WithHint("look-around and back-references don't exist here; set literal to search for plain text")
}

// acrossLines reports whether a pattern asks for a line break.
func acrossLines(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && slices.Contains(re.Rune, '\n') || slices.ContainsFunc(re.Sub, acrossLines)
}

// needsOf is what must stand in a text that an expression matches: one of the
// texts, or nil when there is no such list.
func needsOf(re *syntax.Regexp) []need {
	switch re.Op {
	case syntax.OpLiteral:
		n, ok := newNeed(string(re.Rune), re.Flags&syntax.FoldCase != 0)
		if !ok {
			return nil
		}
		return []need{n}
	case syntax.OpCapture, syntax.OpPlus:
		return needsOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needsOf(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []need
		for _, sub := range re.Sub {
			if n := needsOf(sub); worth(n) > worth(best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []need
		for _, sub := range re.Sub {
			n := needsOf(sub)
			if n == nil || len(all)+len(n) > maxNeeds {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

// worth says how well a list of texts narrows a search.
func worth(needs []need) int {
	if len(needs) == 0 {
		return -1
	}
	least := len(needs[0].text)
	for _, n := range needs {
		least = min(least, len(n.text))
	}
	return least*4 - len(needs)
}

func newNeed(text string, fold bool) (need, bool) {
	n := need{text: []byte(text), fold: fold}
	for i, c := range n.text {
		if fold && c >= 0x80 || c == '\n' {
			return n, false
		}
		if fold && c >= 'A' && c <= 'Z' {
			n.text[i] = c + 'a' - 'A'
		}
		n.odd = n.odd || fold && (n.text[i] == 'k' || n.text[i] == 's')
		if rarity(n.text[i]) > rarity(n.text[n.rare]) {
			n.rare = i
		}
	}
	return n, len(text) > 0
}

// byFrequency are letters as often as they occur in English text and programs.
const byFrequency = " etaoinrslcdupmfhgbvywxkqjz"

func rarity(c byte) int {
	if c >= 'A' && c <= 'Z' {
		return 30
	}
	if i := strings.IndexByte(byFrequency, c); i >= 0 {
		return i
	}
	return 25
}

// relatives are the letters outside of ASCII that k and s are folded with.
var relatives = [][]byte{[]byte("\u212a"), []byte("\u017f")}

// seeker finds the next place where a line may match, in one text that is
// searched from its beginning to its end.
type seeker struct {
	m    *matcher
	next []int // of each need, where it stands next; -1 before the first look
	low  []int // for those in any case: where the rarest byte stands next, small
	high []int // and large
	line bool  // no text tells where to look
	auto *automaton
	sure bool // the place that was found lies in a line that matches
}

func newSeeker(m *matcher) *seeker {
	n := len(m.needs)
	return &seeker{m: m, auto: newAutomaton(m.prog), next: make([]int, n), low: make([]int, n), high: make([]int, n)}
}

// begin takes a new text.
func (s *seeker) begin(text []byte) {
	s.line = len(s.m.needs) == 0
	s.sure = s.m.plain
	for i := range s.next {
		s.next[i], s.low[i], s.high[i] = -1, -1, -1
		if s.m.needs[i].odd && (bytes.Contains(text, relatives[0]) || bytes.Contains(text, relatives[1])) {
			s.line = true
		}
	}
}

// seek is the next place at or after one where a line that begins there, or in
// which it lies, may match; the length of the text when there is none.
func (s *seeker) seek(text []byte, from int) int {
	if s.line {
		from, s.sure = s.auto.seek(text, from)
		return from
	}
	best := len(text)
	for i := range s.next {
		if s.next[i] < from {
			s.next[i] = s.find(i, text, from)
		}
		best = min(best, s.next[i])
	}
	return best
}

func (s *seeker) find(i int, text []byte, from int) int {
	n := &s.m.needs[i]
	if n.fold {
		return s.findFold(i, text, from)
	}
	if at := bytes.Index(text[from:], n.text); at >= 0 {
		return from + at
	}
	return len(text)
}

// findFold looks for the rarest byte of a need, small and large, and compares
// around it.
func (s *seeker) findFold(i int, text []byte, from int) int {
	n := &s.m.needs[i]
	c := n.text[n.rare]
	at := from + n.rare
	for {
		if s.low[i] < at {
			s.low[i] = indexFrom(text, at, c)
		}
		if c >= 'a' && c <= 'z' {
			if s.high[i] < at {
				s.high[i] = indexFrom(text, at, c-'a'+'A')
			}
		} else {
			s.high[i] = len(text)
		}
		at = min(s.low[i], s.high[i])
		begin := at - n.rare
		if at >= len(text) || begin+len(n.text) > len(text) {
			return len(text)
		}
		if equalFold(text[begin:begin+len(n.text)], n.text) {
			return begin
		}
		at++
	}
}

func indexFrom(text []byte, from int, c byte) int {
	if from >= len(text) {
		return len(text)
	}
	if i := bytes.IndexByte(text[from:], c); i >= 0 {
		return from + i
	}
	return len(text)
}

// equalFold compares a text with one in lower case.
func equalFold(text, lower []byte) bool {
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

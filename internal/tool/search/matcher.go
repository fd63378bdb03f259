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

// matcher reports which lines match.
type matcher struct {
	re     *regexp.Regexp
	prefix []byte // what every match begins with, if that is known
}

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
			prefix, _ := re.LiteralPrefix()
			return &matcher{re: re, prefix: []byte(prefix)}, nil
		}
	}
	return nil, tool.Failf(tool.BadArguments, CodeBadPattern, "%s", strings.TrimPrefix(err.Error(), "error parsing regexp: ")).
		WithHint("look-around and back-references don't exist here; set literal to search for plain text")
}

// acrossLines reports whether a pattern asks for a line break.
func acrossLines(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && slices.Contains(re.Rune, '\n') || slices.ContainsFunc(re.Sub, acrossLines)
}

// match reports whether a line matches.
func (m *matcher) match(line []byte) bool {
	return bytes.Contains(line, m.prefix) && m.re.Match(line)
}

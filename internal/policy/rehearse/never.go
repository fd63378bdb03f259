package rehearse

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/policy"
)

// contradiction is why a rule can never match whatever tools there are; empty
// when it may.
func contradiction(r *policy.Rule) string {
	if c := r.Command; c != nil {
		if len(c.Program) > 0 && !slices.ContainsFunc(c.Program, func(p string) bool {
			return isPattern(p) || !slices.ContainsFunc(c.NotProgram, func(n string) bool { return policy.Like(n, p) })
		}) {
			return "command: not_program excludes every program"
		}
		if silent(c.Matches) {
			return fmt.Sprintf("command.matches: no text fits %q", c.Matches)
		}
		if p := begins(c.Matches); p != "" && len(c.Program) > 0 && !slices.ContainsFunc(c.Program, func(w string) bool {
			return isPattern(w) || strings.HasPrefix(p, w+" ") || strings.HasPrefix(w, p) || p == w
		}) {
			return fmt.Sprintf("command.matches: %q begins with another program than command.program names", c.Matches)
		}
	}
	if why := places(r.Path); why != "" {
		return why
	}
	for i := range r.Args {
		if silent(r.Args[i].Matches) {
			return fmt.Sprintf("args: no text fits %q", r.Args[i].Matches)
		}
		for k := range r.Args[:i] {
			if why := apart(&r.Args[k], &r.Args[i]); why != "" {
				return why
			}
		}
	}
	return ""
}

// places is why no path can fit.
func places(p *policy.PathMatch) string {
	if p == nil || len(p.Match) == 0 {
		return ""
	}
	all := func(is func(string) bool) bool {
		return !slices.ContainsFunc(p.Match, func(g string) bool { return !is(g) })
	}
	switch {
	case all(func(g string) bool { return strings.HasPrefix(g, "~") }):
		return "path.match: ~ stands for nothing in a path; write the folder out"
	case p.Where == "inside" && all(func(g string) bool { return strings.HasPrefix(g, "/") || strings.HasPrefix(g, "../") }):
		return "path: a file inside the workspace is named relative to it, and match has only paths outside"
	case p.Where == "outside" && all(func(g string) bool {
		return strings.Contains(strings.TrimSuffix(g, "/"), "/") && !strings.HasPrefix(g, "/") && !strings.HasPrefix(g, "*") && !strings.HasPrefix(g, "?") && !strings.HasPrefix(g, "..")
	}):
		return "path: a file outside the workspace is named by its whole path, and match has only relative ones"
	}
	return ""
}

// apart is why two matchers of one argument can't both hold.
func apart(a, b *policy.ArgMatch) string {
	if a.Path != b.Path {
		return ""
	}
	gone := func(m *policy.ArgMatch) bool { return m.Exists != nil && !*m.Exists }
	switch {
	case gone(a) != gone(b):
		return fmt.Sprintf("args: %s can't be there and not be there", a.Path)
	case a.Equals != nil && b.Equals != nil && encoded(policy.ArgMatch{Equals: a.Equals}) != encoded(policy.ArgMatch{Equals: b.Equals}):
		return fmt.Sprintf("args: %s can't equal two values", a.Path)
	case a.Less != nil && b.Greater != nil && *a.Less <= *b.Greater, b.Less != nil && a.Greater != nil && *b.Less <= *a.Greater:
		return fmt.Sprintf("args: no number of %s is both less and greater", a.Path)
	}
	return ""
}

// silent reports whether a regular expression fits no text at all, as far as its
// form shows.
func silent(expr string) bool {
	if expr == "" {
		return false
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	return err == nil && fitsNothing(tree.Simplify())
}

// fitsNothing is about a whole expression, in which a text's begin and end are
// where no character stands before or behind.
func fitsNothing(n *syntax.Regexp) bool {
	switch n.Op {
	case syntax.OpNoMatch:
		return true
	case syntax.OpCharClass:
		return len(n.Rune) == 0
	case syntax.OpCapture, syntax.OpPlus:
		return fitsNothing(n.Sub[0])
	case syntax.OpAlternate:
		return !slices.ContainsFunc(n.Sub, func(s *syntax.Regexp) bool { return !fitsNothing(s) })
	case syntax.OpConcat:
		before := 0
		for i, s := range n.Sub {
			if fitsNothing(s) || s.Op == syntax.OpBeginText && before > 0 {
				return true
			}
			if s.Op == syntax.OpEndText {
				behind := 0
				for _, t := range n.Sub[i+1:] {
					behind += shortest(t)
				}
				if behind > 0 {
					return true
				}
			}
			before += shortest(s)
		}
	}
	return false
}

// shortest is how many characters a text that fits has at least.
func shortest(n *syntax.Regexp) int {
	switch n.Op {
	case syntax.OpLiteral:
		return len(n.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(n.Sub[0])
	case syntax.OpConcat:
		sum := 0
		for _, s := range n.Sub {
			sum += shortest(s)
		}
		return sum
	case syntax.OpAlternate:
		least := -1
		for _, s := range n.Sub {
			if k := shortest(s); least < 0 || k < least {
				least = k
			}
		}
		return max(least, 0)
	}
	return 0
}

// begins is the literal text that an expression which is bound to the begin of a
// text starts with.
func begins(expr string) string {
	if !strings.HasPrefix(expr, "^") {
		return ""
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || tree.Op != syntax.OpConcat || len(tree.Sub) < 2 || tree.Sub[0].Op != syntax.OpBeginText || tree.Sub[1].Op != syntax.OpLiteral || tree.Sub[1].Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(tree.Sub[1].Rune)
}

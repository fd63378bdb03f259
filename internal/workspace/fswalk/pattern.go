package fswalk

import "strings"

// pathPattern is a pattern for a path: one for each of its parts, or ** for any
// number of them.
type pathPattern struct {
	text  string
	parts []namePattern
	base  bool // it is held against the last part only
}

// namePattern is a pattern for one name.
type namePattern struct {
	deep   bool   // **: any number of names
	whole  string // a plain name, when ops is empty
	suffix string // ops is a star and this
	ops    []op
	next   decode
}

// decode takes the first character of a name.
type decode func(string) (rune, int)

// oneByte is how git takes characters.
func oneByte(s string) (rune, int) { return rune(s[0]), 1 }

// op matches a part of a name: text, any number of characters, one, or one of a set.
type op struct {
	kind byte // 't', '*', '?', '['
	text string
	set  *set
}

type set struct {
	not    bool
	ranges [][2]rune
	class  []func(rune) bool
}

func (s *set) has(c rune) bool {
	in := false
	for _, r := range s.ranges {
		in = in || r[0] <= c && c <= r[1]
	}
	for _, f := range s.class {
		in = in || f(c)
	}
	return in != s.not && c != '/'
}

// readPattern reads a pattern; false for one that can match nothing.
func readPattern(s string, next decode) (p pathPattern, ok bool) {
	p.text = s
	s, tied := strings.CutPrefix(s, "/")
	parts := splitPattern(s)
	p.base = len(parts) == 1 && !tied
	for _, part := range parts {
		n, ok := readName(part, next)
		if !ok {
			return p, false
		}
		if n.deep && len(p.parts) > 0 && p.parts[len(p.parts)-1].deep {
			continue
		}
		p.parts = append(p.parts, n)
	}
	return p, true
}

// splitPattern cuts a pattern at its slashes, except those in brackets.
func splitPattern(s string) (parts []string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '/':
			// An escaped slash is a slash.
		case s[i] == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
		case s[i] == '[':
			end := bracket(s, i)
			if end < 0 {
				end = i
			}
			b.WriteString(s[i : end+1])
			i = end
		case s[i] == '/':
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	return append(parts, b.String())
}

// bracket is where the bracket at i closes; -1 when it doesn't.
func bracket(s string, i int) int {
	i++
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	for first := true; i < len(s); i, first = i+1, false {
		switch {
		case s[i] == ']' && !first:
			return i
		case s[i] == '\\':
			i++
		case strings.HasPrefix(s[i:], "[:"):
			if n := strings.Index(s[i+2:], ":]"); n >= 0 && !strings.ContainsAny(s[i+2:i+2+n], "]/") {
				i += n + 3
			}
		}
	}
	return -1
}

// readName reads the pattern of one name.
func readName(s string, next decode) (n namePattern, ok bool) {
	n.next = next
	if s != "" && strings.Trim(s, "*") == "" && len(s) > 1 {
		n.deep = true
		return n, true
	}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			n.ops = append(n.ops, op{kind: 't', text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i == len(s) {
				return n, false
			}
			lit.WriteByte(s[i])
		case '*':
			flush()
			if l := len(n.ops); l == 0 || n.ops[l-1].kind != '*' {
				n.ops = append(n.ops, op{kind: '*'})
			}
		case '?':
			flush()
			n.ops = append(n.ops, op{kind: '?'})
		case '[':
			end := bracket(s, i)
			if end < 0 {
				return n, false
			}
			flush()
			set, ok := readSet(s[i+1:end], next)
			if !ok {
				return n, false
			}
			n.ops = append(n.ops, op{kind: '[', set: set})
			i = end
		default:
			lit.WriteByte(s[i])
		}
	}
	flush()
	switch {
	case len(n.ops) == 0:
	case len(n.ops) == 1 && n.ops[0].kind == 't':
		n.whole, n.ops = n.ops[0].text, nil
	case len(n.ops) == 2 && n.ops[0].kind == '*' && n.ops[1].kind == 't':
		n.suffix = n.ops[1].text
	}
	return n, true
}

// classes are the named sets, of ASCII as git has them.
var classes = map[string]func(rune) bool{
	"alnum":  func(c rune) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c rune) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c rune) bool { return c < 0x20 || c == 0x7f },
	"digit":  isDigit,
	"graph":  func(c rune) bool { return c > 0x20 && c < 0x7f },
	"lower":  func(c rune) bool { return c >= 'a' && c <= 'z' },
	"print":  func(c rune) bool { return c >= 0x20 && c < 0x7f },
	"punct":  func(c rune) bool { return c > 0x20 && c < 0x7f && !isAlpha(c) && !isDigit(c) },
	"space":  func(c rune) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	"upper":  func(c rune) bool { return c >= 'A' && c <= 'Z' },
	"xdigit": func(c rune) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' },
}

func isAlpha(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c rune) bool { return c >= '0' && c <= '9' }

// readSet reads what stands between brackets.
func readSet(s string, next decode) (*set, bool) {
	out := &set{}
	if s != "" && (s[0] == '!' || s[0] == '^') {
		out.not, s = true, s[1:]
	}
	var last rune // what a - would begin a range with
	has := false
	for s != "" {
		if strings.HasPrefix(s, "[:") {
			if n := strings.Index(s, ":]"); n > 0 {
				f := classes[s[2:n]]
				if f == nil {
					return nil, false
				}
				out.class, s, has = append(out.class, f), s[n+2:], false
				continue
			}
		}
		ranged := s[0] == '-' && has && len(s) > 1
		if ranged {
			s = s[1:]
		}
		if s[0] == '\\' && len(s) > 1 {
			s = s[1:]
		}
		c, n := next(s)
		s = s[n:]
		if ranged {
			out.ranges, has = append(out.ranges, [2]rune{last, c}), false
			continue
		}
		out.ranges, last, has = append(out.ranges, [2]rune{c, c}), c, true
	}
	return out, true
}

// match holds the pattern against a name.
func (n *namePattern) match(name string) bool {
	switch {
	case len(n.ops) == 0:
		return name == n.whole
	case n.suffix != "":
		return strings.HasSuffix(name, n.suffix)
	}
	// One step back is enough: a later star takes over from an earlier one.
	i, at := 0, 0
	star, from := -1, 0
	for {
		if i < len(n.ops) && n.ops[i].kind == '*' {
			star, from = i, at
			i++
			continue
		}
		if i == len(n.ops) && at == len(name) {
			return true
		}
		if i < len(n.ops) {
			if w := n.ops[i].width(name[at:], n.next); w >= 0 {
				i, at = i+1, at+w
				continue
			}
		}
		if star < 0 || from >= len(name) {
			return false
		}
		_, w := n.next(name[from:])
		from += w
		i, at = star+1, from
	}
}

// width is how much of a text the op takes; -1 when it doesn't fit.
func (o *op) width(s string, next decode) int {
	if o.kind == 't' {
		if strings.HasPrefix(s, o.text) {
			return len(o.text)
		}
		return -1
	}
	if s == "" {
		return -1
	}
	c, w := next(s)
	if o.kind == '[' && !o.set.has(c) {
		return -1
	}
	return w
}

// match holds the pattern against a path.
func (p *pathPattern) match(path string) bool {
	if p.base {
		n := &p.parts[0]
		return n.deep || n.match(path[strings.LastIndexByte(path, '/')+1:])
	}
	return matchParts(p.parts, path, false)
}

// below reports whether a path below a folder may match.
func (p *pathPattern) below(folder string) bool {
	return p.base || matchParts(p.parts, folder, true)
}

// matchParts matches part by part; with prefix it is enough that the path ends
// before the pattern does. As within a name, one ** to step back to is enough:
// the leftmost place of what follows it leaves the most for the rest. At the
// end of a pattern ** stands for at least one name.
func matchParts(parts []namePattern, path string, prefix bool) bool {
	i, at := 0, 0
	star, from := -1, 0
	for {
		if i < len(parts) && parts[i].deep {
			if prefix || i == len(parts)-1 {
				return prefix || at < len(path)
			}
			star, from = i, at
			i++
			continue
		}
		if at >= len(path) {
			return prefix == (i < len(parts))
		}
		if i < len(parts) {
			name, next := nameAt(path, at)
			if parts[i].match(name) {
				i, at = i+1, next
				continue
			}
		}
		if star < 0 {
			return false
		}
		if _, from = nameAt(path, from); from >= len(path) {
			return false
		}
		i, at = star+1, from
	}
}

// nameAt is the name that begins at a place in a path, and where the next does.
func nameAt(path string, at int) (name string, next int) {
	if n := strings.IndexByte(path[at:], '/'); n >= 0 {
		return path[at : at+n], at + n + 1
	}
	return path[at:], len(path)
}

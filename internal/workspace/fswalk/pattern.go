package fswalk

import (
	"path"
	"strings"
	"unicode/utf8"
)

// pathPattern is a pattern for a path: one for each of its parts, or ** for any
// number of them.
type pathPattern struct {
	text  string
	parts []namePattern
	base  bool // it is held against the last part only
}

// namePattern is a pattern for one name.
type namePattern struct {
	deep  bool   // **: any number of names
	text  string // as path.Match takes it
	bytes bool   // a character is a byte, as git has it
}

// readPattern reads a pattern; false for one that can match nothing.
func readPattern(s string, bytes bool) (p pathPattern, ok bool) {
	p.text = s
	s, tied := strings.CutPrefix(s, "/")
	parts := splitPattern(s)
	p.base = len(parts) == 1 && !tied
	for _, part := range parts {
		n, ok := readName(part, bytes)
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

// readName reads the pattern of one name: it says it as path.Match takes it, which
// knows sets without named classes.
func readName(s string, bytes bool) (n namePattern, ok bool) {
	if len(s) > 1 && strings.Trim(s, "*") == "" {
		return namePattern{deep: true}, true
	}
	if bytes {
		s = latin1(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '[':
			end := bracket(s, i)
			if end < 0 || !writeSet(&b, s[i+1:end]) {
				return n, false
			}
			i = end
		case s[i] == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
		default:
			b.WriteByte(s[i])
		}
	}
	n = namePattern{text: b.String(), bytes: bytes}
	_, err := path.Match(n.text, "")
	return n, err == nil
}

// latin1 is a text with a character for each byte.
func latin1(s string) string {
	if strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0 {
		return s
	}
	all := make([]rune, len(s))
	for i := range len(s) {
		all[i] = rune(s[i])
	}
	return string(all)
}

// classes are the named sets, of ASCII as git has them.
var classes = map[string]string{
	"alnum":  "0-9A-Za-z",
	"alpha":  "A-Za-z",
	"blank":  " \t",
	"cntrl":  "\x00-\x1f\x7f",
	"digit":  "0-9",
	"graph":  "!-~",
	"lower":  "a-z",
	"print":  " -~",
	"punct":  "!-/:-@\\[-`{-~",
	"space":  " \t-\r",
	"upper":  "A-Z",
	"xdigit": "0-9A-Fa-f",
}

// writeSet writes what stands between brackets; false for a class that there isn't.
func writeSet(b *strings.Builder, s string) bool {
	b.WriteByte('[')
	if s != "" && (s[0] == '!' || s[0] == '^') {
		b.WriteByte('^')
		s = s[1:]
	}
	last := "" // what a - would begin a range with
	for s != "" {
		if n := strings.Index(s, ":]"); n >= 2 && strings.HasPrefix(s, "[:") {
			class, ok := classes[s[2:n]]
			if !ok {
				return false
			}
			b.WriteString(class)
			last, s = "", s[n+2:]
			continue
		}
		ranged := s[0] == '-' && last != "" && len(s) > 1
		if ranged {
			s = s[1:]
		}
		if s[0] == '\\' && len(s) > 1 {
			s = s[1:]
		}
		_, n := utf8.DecodeRuneInString(s)
		one := `\` + s[:n]
		s = s[n:]
		if ranged {
			b.WriteString(last + "-" + one)
			last = ""
			continue
		}
		b.WriteString(one)
		last = one
	}
	b.WriteByte(']')
	return true
}

// match holds the pattern against a name.
func (n *namePattern) match(name string) bool {
	if n.bytes {
		name = latin1(name)
	}
	fits, err := path.Match(n.text, name)
	return fits && err == nil
}

// match holds the pattern against a path.
func (p *pathPattern) match(full string) bool {
	if p.base {
		n := &p.parts[0]
		return n.deep || n.match(full[strings.LastIndexByte(full, '/')+1:])
	}
	return matchParts(p.parts, full, false)
}

// below reports whether a path below a folder may match.
func (p *pathPattern) below(folder string) bool {
	return p.base || matchParts(p.parts, folder, true)
}

// matchParts matches part by part; with prefix it is enough that the path ends
// before the pattern does. As within a name, one ** to step back to is enough:
// the leftmost place of what follows it leaves the most for the rest. At the
// end of a pattern ** stands for at least one name.
func matchParts(parts []namePattern, full string, prefix bool) bool {
	i, at := 0, 0
	star, from := -1, 0
	for {
		if i < len(parts) && parts[i].deep {
			if prefix || i == len(parts)-1 {
				return prefix || at < len(full)
			}
			star, from = i, at
			i++
			continue
		}
		if at >= len(full) {
			return prefix == (i < len(parts))
		}
		if i < len(parts) {
			name, next := nameAt(full, at)
			if parts[i].match(name) {
				i, at = i+1, next
				continue
			}
		}
		if star < 0 {
			return false
		}
		if _, from = nameAt(full, from); from >= len(full) {
			return false
		}
		i, at = star+1, from
	}
}

// nameAt is the name that begins at a place in a path, and where the next does.
func nameAt(full string, at int) (name string, next int) {
	if n := strings.IndexByte(full[at:], '/'); n >= 0 {
		return full[at : at+n], at + n + 1
	}
	return full[at:], len(full)
}

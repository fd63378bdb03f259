package shell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is read. Each is far beyond what people and models write, and
// what lies beyond one is Unparsable: no bound makes a judgement weaker.
const (
	maxSource   = 128<<10 - 1 // the longest single argument that Linux passes to a program
	maxOpeners  = 8000        // brackets and the like: more could nest deeper than the stack of a parser is worth
	maxDepth    = 200         // levels of the parsed tree
	maxLevels   = 12          // sources within sources, wrappers within wrappers
	maxCommands = 40000
)

// readable says why a source isn't even parsed, or nothing.
func readable(src string) string {
	if len(src) > maxSource {
		return "the command has " + strconv.Itoa(len(src)) + " bytes; no system runs more than " + strconv.Itoa(maxSource)
	}
	if why := oddText(src); why != "" {
		return why
	}
	if strings.HasSuffix(src, "\\") {
		return "it ends in a backslash, and readers differ in what that means"
	}
	if strings.Contains(src, "\\\n") {
		if commentGoesOn(src) {
			return "a comment, or what looks like one, ends in a backslash, and readers differ in what that means"
		}
		if signGoesOn(src) {
			return "a line ends within a sign, and readers differ in what that means"
		}
	}
	return tooDeep(src)
}

// signGoesOn reports whether a line that ends in a backslash, joined with the
// next, makes one sign of two, such as (( or $(, or puts a sharp into a word.
func signGoesOn(src string) bool {
	const signs = "(){}[]<>&|;"
	for i := 0; ; {
		at := strings.Index(src[i:], "\\\n")
		if at < 0 {
			return false
		}
		i += at
		before := byte(' ')
		if i > 0 {
			before = src[i-1]
		}
		for strings.HasPrefix(src[i:], "\\\n") {
			i += 2
		}
		if i == len(src) {
			return false
		}
		after := src[i]
		if before == '$' || after == '#' || strings.IndexByte(signs, before) >= 0 && strings.IndexByte(signs+"-!=", after) >= 0 {
			return true
		}
	}
}

// commentGoesOn reports whether a line with a sharp in it ends in a backslash.
func commentGoesOn(src string) bool {
	for line := range strings.Lines(src) {
		if strings.HasSuffix(line, "\\\n") && strings.Contains(line, "#") {
			return true
		}
	}
	return false
}

// tooDeep bounds how deep a parser may have to go, without parsing: it counts
// what could open a level and never what closes one, which a quote could feign.
// Runs of the same sign, as in a row of dashes, open a level each only within
// arithmetic; they are counted where they are long.
func tooDeep(src string) string {
	if len(src) < maxOpeners {
		return ""
	}
	hard, soft := 0, 0
	for i := range len(src) {
		switch c := src[i]; c {
		case '(', '[', '{', '`':
			hard++
		case '!', '~', '-', '+':
			if i > 0 && src[i-1] == c {
				soft++
			}
		}
	}
	hard += strings.Count(src, "elif") + strings.Count(src, "case") + strings.Count(src, "if ") + strings.Count(src, "while") +
		strings.Count(src, "until") + strings.Count(src, "time") + strings.Count(src, "coproc") + strings.Count(src, "function")
	if hard > maxOpeners || soft > 4*maxOpeners {
		return "it has too many brackets to be read"
	}
	return ""
}

// oddText says which character of a text makes it something else than it looks
// like: control characters, line ends that only some programs know, characters
// without width, marks of direction, blanks that aren't blanks to a shell.
func oddText(s string) string {
	for i, c := range s {
		switch {
		case c == '\n' || c == '\t' || c >= ' ' && c < 0x7f:
			continue
		case c == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return "it isn't valid UTF-8 at byte " + strconv.Itoa(i)
			}
		case unicode.Is(unicode.Cc, c):
			return fmt.Sprintf("control character %U", c) + " at byte " + strconv.Itoa(i)
		case unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Variation_Selector, unicode.Co, unicode.Other_Default_Ignorable_Code_Point), c == 0x2800:
			return fmt.Sprintf("invisible or misleading character %U", c) + " at byte " + strconv.Itoa(i)
		}
	}
	return ""
}

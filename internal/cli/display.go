package cli

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/view/explain"
)

// text is what a model, a tool or a file said as it may reach a terminal:
// newlines and tabs stay, everything that does something else than show itself
// is written out.
func text(s string) string { return explain.CleanLines(strings.ReplaceAll(s, "\r\n", "\n")) }

// line is text on one line.
func line(s string) string {
	return explain.Clean(onOneLine.Replace(strings.TrimRight(s, "\r\n")))
}

var onOneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")

// short is text on one line of at most n characters.
func short(s string, n int) string {
	if len(s) > 4*n { // n characters have no more bytes than that
		s = strings.ToValidUTF8(s[:4*n], "")
	}
	s = line(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// safeJSON escapes in encoded JSON what the encoder leaves as it is and a
// terminal would act on. Such characters only occur inside strings.
func safeJSON(b []byte) []byte {
	s := string(b)
	if explain.CleanLines(s) == s {
		return b
	}
	out := make([]byte, 0, len(s)+64)
	for _, r := range s {
		switch {
		case r < 0x7f || explain.Clean(string(r)) == string(r):
			out = utf8.AppendRune(out, r)
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		}
	}
	return out
}

// count is a number with the digits in groups.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural is a number and its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(int64(n)) + " " + noun + "s"
}

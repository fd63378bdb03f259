package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// text is what a model or a tool said as it may reach a terminal: newlines and
// tabs stay, every other control character, every character that turns the
// direction of text, and every broken byte is written out as an escape.
func text(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || unsafeRune(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\r' && strings.HasPrefix(s[i+n:], "\n"):
		case unsafeRune(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// unsafeRune tells whether a terminal does something else with r than show it.
func unsafeRune(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == 0x200c || r == 0x200d: // joiners, which scripts and emoji need
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0xad && (unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029)
}

func escape(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// line is text on one line.
func line(s string) string {
	s = text(strings.TrimRight(s, "\n"))
	if !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(s)
}

// short is text on one line of at most n characters.
func short(s string, n int) string {
	if len(s) > 4*n { // enough for n characters, whatever they are
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
	i := strings.IndexFunc(string(b), func(r rune) bool { return r >= 0x7f && unsafeRune(r) })
	if i < 0 {
		return b
	}
	out := append([]byte(nil), b[:i]...)
	for _, r := range string(b[i:]) {
		switch {
		case r < 0x7f || !unsafeRune(r):
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

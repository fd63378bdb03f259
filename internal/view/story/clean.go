// Package story turns facts into what people read: a line for each fact, items
// and a timeline of turns, steps and calls, answers to why something happened,
// and figures. It promises that all of it follows from facts alone, that an
// answer names its facts, that what can't be known from them is said to be
// unknown, and that nothing a model, a tool or a file said reaches a text for
// people as anything but characters. It knows nothing of stores, terminals or
// the present.
package story

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean is text that can only be read: on one line, with control characters,
// terminal sequences, characters that turn the direction of text or can't be
// seen, and broken bytes written out as escapes. Clean text stays as it is.
func Clean(s string) string { return clean(s, "") }

// CleanLines is Clean for text of several lines: newlines and tabs stay.
func CleanLines(s string) string { return clean(s, "\n\t") }

// Call is a call as whoever allows it must see it: the tool and its arguments, on
// one line, exactly, and whole however long they are.
func Call(tool string, args []byte) string { return Exactly(tool + " " + PlainJSON(string(args))) }

// PlainJSON is JSON with &, < and > as themselves: the encoder escapes them for pages,
// and stored arguments may have them so.
func PlainJSON(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			return b.String() + s
		}
		b.WriteString(s[:i])
		s = s[i:]
		n := 2
		switch code := strings.ToLower(s[:min(6, len(s))]); code {
		case `\u0026`, `\u003c`, `\u003e`:
			b.WriteString(map[string]string{`\u0026`: "&", `\u003c`: "<", `\u003e`: ">"}[code])
			n = 6
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
}

// Exactly is Clean for what a person answers for. Besides, everything is written
// out that looks like something else or changes how others look: spaces that
// aren't the space, variation selectors, characters that no table knows or that
// print nothing, marks without a letter to stand on, and those that pile up on
// one. Nothing is ever left out.
func Exactly(s string) string {
	marks := noLetter
	return escaped(s, func(r rune) bool {
		if unicode.IsMark(r) && !selects(r) && !hidden(r) && marks < maxMarks {
			marks++
			return false
		}
		hide := unicode.IsMark(r) || hidden(r) || r == 0x2800 || !unicode.IsPrint(r)
		if marks = noLetter; !hide && unicode.IsLetter(r) {
			marks = 0
		}
		return hide
	})
}

// maxMarks is how many marks a letter may carry, which is enough for every script;
// noLetter is as good as all of them.
const (
	maxMarks = 4
	noLetter = maxMarks
)

// selects reports whether r chooses another look of the character before it.
func selects(r rune) bool {
	return r >= 0xfe00 && r <= 0xfe0f || r >= 0x180b && r <= 0x180f || r >= 0xe0100 && r <= 0xe01ef
}

func clean(s, keep string) string {
	return escaped(s, func(r rune) bool { return hidden(r) && !strings.ContainsRune(keep, r) })
}

// escaped writes out broken bytes, and characters that aren't to be shown.
func escaped(s string, hide func(r rune) bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch hides := hide(r); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hides:
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// hidden reports whether r does something else than show itself: C0, C1 and DEL;
// format characters, which are the bidirectional controls, the zero-width ones
// and tags; line and paragraph separators; fillers and selectors that print
// nothing and can carry a message.
func hidden(r rune) bool {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	case r < 0xad:
		return false
	case r == 0x2028 || r == 0x2029 || r == 0x034f || r == 0x3164 || r == 0xffa0:
		return true
	case r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r >= 0xe0100 && r <= 0xe01ef:
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

func escape(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// cut is the beginning of a text, at most n characters of it.
func cut(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// quote returns the beginning of a quoted text.
func quote(s string) string { return `"` + cut(strings.TrimSpace(s), 100) + `"` }

// quoted is quote, and nothing for nothing.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return quote(s)
}

package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width returns how many columns a line takes. Colours take none.
func Width(line string) int { return ansi.StringWidth(line) }

// Cut returns the beginning of a line that takes at most so many columns, with "…" in
// the last one when something is missing.
func Cut(line string, width int) string {
	if width <= 0 {
		return ""
	}
	if width == 1 {
		return ansi.Truncate(line, width, "")
	}
	return ansi.Truncate(line, width, "…")
}

// withCursor returns a line with the character in a column reversed. A wide character is
// in both of its columns.
func withCursor(line string, column int) string {
	const on, off = "\x1b[7m", "\x1b[27m"
	at := 0
	for rest, state := line, byte(0); len(rest) > 0; {
		seq, w, n, next := ansi.DecodeSequence(rest, state, nil)
		if at+w > column {
			return line[:len(line)-len(rest)] + on + seq + off + rest[n:]
		}
		at, rest, state = at+w, rest[n:], next
	}
	return line + plainText + strings.Repeat(" ", column-at) + on + " " + off
}

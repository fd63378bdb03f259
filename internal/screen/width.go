package screen

import "github.com/charmbracelet/x/ansi"

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

// Rows returns how many rows a line takes on a terminal of this width.
func Rows(line string, width int) int { return rowOf(line, Width(line)-1, width) + 1 }

// rowOf returns the row, from 0, that a column of a line is in when a terminal of this
// width wraps the line. A wide character isn't cut: it begins the next row.
func rowOf(line string, column, width int) int {
	row, at, x := 0, 0, 0
	for state := byte(0); len(line) > 0 && at <= column; {
		_, w, n, next := ansi.DecodeSequence(line, state, nil)
		if x+w > width && x > 0 {
			row, x = row+1, 0
		}
		at, x, state, line = at+w, x+w, next, line[n:]
	}
	return row
}

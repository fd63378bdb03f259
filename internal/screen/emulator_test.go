package screen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// emulator is a terminal with a scrollback. It knows the sequences that a screen may
// use, and no others.
type emulator struct {
	width, height int
	reflows       bool // a narrower terminal wraps what was drawn, a wider one joins it
	rows          []row
	top           int    // of the rows that are on the screen; those before are the scrollback
	x, y          int    // the cursor; y from the top
	pushed        int    // how often a resize moved the cursor's row to the scrollback
	cut           bool   // at the last column: the next row isn't gone on in
	problem       string // the first sequence it doesn't know
}

// row is a row of cells, each with a character; the second cell of a wide one is empty.
type row struct {
	cells []string
	goes  bool // on in the next row
}

func newEmulator(width, height int) *emulator {
	e := &emulator{width: width, height: height, reflows: true}
	e.rows = make([]row, height)
	return e
}

func (e *emulator) line() *row { return &e.rows[e.top+e.y] }

// Write draws.
func (e *emulator) Write(p []byte) (int, error) {
	text, state := string(p), byte(0)
	for len(text) > 0 {
		seq, width, n, next := ansi.DecodeSequence(text, state, nil)
		text, state = text[n:], next
		switch {
		case width > 0:
			e.put(seq, width)
		case seq == "\r":
			e.x = 0
		case seq == "\n":
			e.down()
		default:
			e.control(seq)
		}
	}
	return len(p), nil
}

func (e *emulator) down() {
	if e.y < e.height-1 {
		e.y++
		return
	}
	e.rows, e.top = append(e.rows, row{}), e.top+1
}

func (e *emulator) put(seq string, width int) {
	if e.x+width > e.width && e.cut {
		e.x = e.width - width
	}
	if e.x+width > e.width {
		e.line().goes = true
		e.down()
		e.x = 0
		*e.line() = row{}
	}
	l := e.line()
	for len(l.cells) < e.x+width {
		l.cells = append(l.cells, " ")
	}
	l.cells[e.x] = seq
	for i := 1; i < width; i++ {
		l.cells[e.x+i] = ""
	}
	e.x += width
}

func (e *emulator) control(seq string) {
	switch seq {
	case "\x1b[?2026h", "\x1b[?2026l", "\x1b[?25h", "\x1b[?25l":
		return
	case "\x1b[?7h", "\x1b[?7l":
		e.cut = seq == "\x1b[?7l"
		return
	}
	if rest, ok := strings.CutPrefix(seq, "\x1b["); ok && rest != "" {
		n, err := strconv.Atoi(rest[:len(rest)-1])
		if err != nil {
			n = 1
		}
		switch final := rest[len(rest)-1]; {
		case final == 'm':
			return
		case final == 'A':
			e.y = max(0, e.y-n)
			return
		case final == 'C':
			e.x = min(e.width-1, e.x+n)
			return
		case final == 'K' && rest == "K":
			l := e.line()
			l.cells, l.goes = l.cells[:min(e.x, len(l.cells))], false
			return
		case final == 'J' && rest == "J":
			if e.x == 0 && e.y == 0 { // as tmux does it
				e.rows = append(slices.Clip(e.rows[:e.top+e.height]), make([]row, e.height)...)
				e.top += e.height
				return
			}
			l := e.line()
			l.cells, l.goes = l.cells[:min(e.x, len(l.cells))], false
			for i := e.y + 1; i < e.height; i++ {
				e.rows[e.top+i] = row{}
			}
			return
		}
	}
	if e.problem == "" {
		e.problem = fmt.Sprintf("%q", seq)
	}
}

// resize gives the terminal another size, as tmux does it, or without wrapping anew.
func (e *emulator) resize(width, height int) {
	at, x := e.top+e.y, e.x
	if spare := len(e.rows) - 1 - at; height < e.height { // rows below the cursor go first
		e.rows = e.rows[:len(e.rows)-min(spare, e.height-height)]
	}
	if width != e.width {
		at, x = e.rewrap(width, at)
	}
	for len(e.rows) < height {
		e.rows = append(e.rows, row{})
	}
	e.width, e.height = width, height
	e.top = len(e.rows) - height
	if at < e.top { // what is below the cursor takes more rows than the screen has
		at, x = e.top, 0
		e.pushed++
	}
	e.x, e.y = min(x, width), at-e.top
}

// rewrap returns where the cursor is then.
func (e *emulator) rewrap(width, at int) (newAt, newX int) {
	x := e.x
	if !e.reflows {
		for i, r := range e.rows {
			e.rows[i].cells = r.cells[:min(len(r.cells), width)]
		}
		return at, x
	}
	var rows []row
	newAt, newX = 0, x
	for i := 0; i < len(e.rows); {
		var whole []string
		cursor := -1
		for ; ; i++ {
			if i == at {
				cursor = len(whole) + x
			}
			whole = append(whole, e.rows[i].cells...)
			if !e.rows[i].goes || i+1 == len(e.rows) {
				i++
				break
			}
		}
		offset := 0
		for first := true; first || len(whole) > 0; first = false {
			n := min(width, len(whole))
			if n < len(whole) && whole[n] == "" { // a wide character isn't cut
				n--
			}
			if cursor >= offset && (cursor < offset+n || n == len(whole)) {
				newAt, newX = len(rows), cursor-offset
			}
			rows = append(rows, row{cells: slices.Clone(whole[:n]), goes: n < len(whole)})
			offset, whole = offset+n, whole[n:]
		}
	}
	e.rows = rows
	return newAt, newX
}

// text returns the logical lines of scrollback and screen.
func (e *emulator) text() []string {
	var lines []string
	var b strings.Builder
	for _, r := range e.rows {
		b.WriteString(strings.Join(r.cells, ""))
		if !r.goes {
			lines = append(lines, strings.TrimRight(b.String(), " "))
			b.Reset()
		}
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

package screen

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A paste with more lines or bytes is shown as a chip.
const (
	maxPasteLines = 10
	maxPasteBytes = 4 << 10
)

// Composer edits a message of several lines. What isn't text that a person would look
// through, such as a long paste, is a chip: one character in brackets that is moved
// over and deleted as a whole. Its zero value is empty and ready.
type Composer struct {
	draft
	undo    []draft
	typing  bool   // the last change was typed text: the next one is undone with it
	killed  []cell // what ctrl+y puts back
	width   int    // for which Lines was called last
	history history
	list    list
}

// draft is what is composed, and where the cursor is.
type draft struct {
	cells []cell
	at    int
}

// cell is a character as people see it, a line break, or a chip.
type cell struct {
	text  string // for a chip: what it stands for
	label string // of a chip
}

// Text returns the message, with pastes as they are.
func (c *Composer) Text() string {
	var b strings.Builder
	for _, one := range c.cells {
		b.WriteString(one.text)
	}
	return b.String()
}

// Empty reports whether nothing is composed.
func (c *Composer) Empty() bool { return len(c.cells) == 0 }

// Draft is what a composer has, to be put back later: its text, chips and cursor.
type Draft struct{ draft draft }

// Draft returns what is composed.
func (c *Composer) Draft() Draft { return Draft{c.snapshot()} }

// Restore puts back what Draft returned. It can be undone.
func (c *Composer) Restore(d Draft) {
	c.change()
	c.draft = draft{cells: slices.Clone(d.draft.cells), at: d.draft.at}
	c.moved()
}

// Clear empties the composer. It can be undone.
func (c *Composer) Clear() { c.Set("") }

// Set replaces what is composed by text, with the cursor behind it.
func (c *Composer) Set(text string) {
	c.change()
	c.cells = split(text)
	c.at = len(c.cells)
	c.moved()
}

// Insert adds text at the cursor.
func (c *Composer) Insert(text string) {
	c.change()
	c.insert(text)
}

// Paste adds what was pasted. More than 10 lines, or 4 KiB, are a chip.
func (c *Composer) Paste(text string) {
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	switch {
	case lines > maxPasteLines:
		c.chip(cell{text: text, label: fmt.Sprintf("[pasted %d lines]", lines)})
	case len(text) > maxPasteBytes:
		c.chip(cell{text: text, label: fmt.Sprintf("[pasted %d characters]", utf8.RuneCountInString(text))})
	default:
		c.Insert(text)
	}
}

// Chip adds a text that is moved over and deleted as a whole.
func (c *Composer) Chip(text string) { c.chip(cell{text: text, label: text}) }

func (c *Composer) chip(one cell) {
	c.change()
	c.cells = slices.Insert(c.cells, c.at, one)
	c.at++
	c.moved()
}

// insert adds text at the cursor. A mark that combines joins the character before it.
func (c *Composer) insert(text string) {
	from := c.at
	if from > 0 && c.cells[from-1].label == "" && c.cells[from-1].text != "\n" {
		from--
		text = c.cells[from].text + text
	}
	added := split(text)
	c.cells = slices.Replace(c.cells, from, c.at, added...)
	c.at = from + len(added)
	c.moved()
}

// split makes cells of text.
func split(text string) []cell {
	text = strings.ToValidUTF8(text, "\uFFFD")
	cells := make([]cell, 0, len(text))
	for len(text) > 0 {
		one, _ := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		if one == "\r\n" || one == "\r" {
			cells = append(cells, cell{text: "\n"})
		} else {
			cells = append(cells, cell{text: one})
		}
		text = text[len(one):]
	}
	return cells
}

// Key edits: it takes text, moves and deletions, and reports whether the key was one.
func (c *Composer) Key(k Key) bool {
	if c.history.searching {
		return c.searches(k)
	}
	if c.Captures(k.Name) && c.chooses(k.Name) {
		return true
	}
	if k.Text != "" {
		if !c.typing {
			c.change()
		}
		c.insert(k.Text)
		c.typing = k.Text != " "
		return true
	}
	if to, ok := c.target(k.Name); ok {
		c.at, c.typing = to, false
		c.moved()
		return true
	}
	return c.edits(k.Name)
}

// target returns where a key moves the cursor.
func (c *Composer) target(key string) (at int, ok bool) {
	switch key {
	case "left", "ctrl+b":
		return max(0, c.at-1), true
	case "right", "ctrl+f":
		return min(len(c.cells), c.at+1), true
	case "ctrl+left", "alt+left", "alt+b":
		return c.wordBefore(), true
	case "ctrl+right", "alt+right", "alt+f":
		return c.wordBehind(), true
	case "home", "ctrl+a":
		return c.lineStart(), true
	case "end", "ctrl+e":
		return c.lineEnd(), true
	case "ctrl+home", "alt+<":
		return 0, true
	case "ctrl+end", "alt+>":
		return len(c.cells), true
	case "up", "ctrl+p":
		return c.row(-1), true
	case "down", "ctrl+n":
		return c.row(1), true
	}
	return 0, false
}

// edits takes a key that deletes, or puts back.
func (c *Composer) edits(key string) bool {
	from, to, kill := c.at, c.at, true
	switch key {
	case "backspace", "ctrl+h", "shift+backspace":
		from, kill = max(0, c.at-1), false
	case "delete", "ctrl+d":
		to, kill = min(len(c.cells), c.at+1), false
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		from = c.wordBefore()
	case "alt+d", "ctrl+delete":
		to = c.wordBehind()
	case "ctrl+u":
		from = c.lineStart()
	case "ctrl+k":
		if to = c.lineEnd(); to == c.at {
			to = min(len(c.cells), to+1)
		}
	case "alt+enter", "ctrl+j", "shift+enter":
		c.Insert("\n")
		return true
	case "ctrl+y":
		c.change()
		c.cells = slices.Insert(c.cells, c.at, c.killed...)
		c.at += len(c.killed)
		c.moved()
		return true
	case "ctrl+_", "ctrl+/", "ctrl+-":
		c.undoes()
		return true
	default:
		return false
	}
	if from == to {
		return true
	}
	c.change()
	if kill {
		c.killed = slices.Clone(c.cells[from:to])
	}
	c.cells = slices.Delete(c.cells, from, to)
	c.at = from
	c.moved()
	return true
}

// maxUndo is how many changes can be undone.
const maxUndo = 100

func (c *Composer) snapshot() draft { return draft{cells: slices.Clone(c.cells), at: c.at} }

// change keeps what is composed before it changes.
func (c *Composer) change() {
	c.typing = false
	c.history.back = 0
	c.undo = append(c.undo, c.snapshot())
	if len(c.undo) > maxUndo {
		c.undo = slices.Delete(c.undo, 0, 1)
	}
}

func (c *Composer) undoes() {
	if n := len(c.undo); n > 0 {
		c.draft, c.undo, c.typing = c.undo[n-1], c.undo[:n-1], false
		c.moved()
	}
}

func (c *Composer) wordBefore() int {
	at := c.at
	for at > 0 && !c.cells[at-1].word() {
		at--
	}
	for at > 0 && c.cells[at-1].word() {
		at--
	}
	return at
}

func (c *Composer) wordBehind() int {
	at := c.at
	for at < len(c.cells) && !c.cells[at].word() {
		at++
	}
	for at < len(c.cells) && c.cells[at].word() {
		at++
	}
	return at
}

// word reports whether the cell is part of a word.
func (one cell) word() bool {
	r, _ := utf8.DecodeRuneInString(one.text)
	return one.label != "" || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

func (c *Composer) lineStart() int {
	at := c.at
	for at > 0 && c.cells[at-1].text != "\n" {
		at--
	}
	return at
}

func (c *Composer) lineEnd() int {
	at := c.at
	for at < len(c.cells) && c.cells[at].text != "\n" {
		at++
	}
	return at
}

// row returns the place in the row above or below the cursor's that is nearest to its
// column; the first or last place where there is none.
func (c *Composer) row(by int) int {
	_, row, col := c.Lines(c.width)
	best, found := 0, false
	c.layout(c.width, func(i, r, x int) {
		if r == row+by && x <= col {
			best, found = i, true
		}
	})
	switch {
	case found:
		return best
	case by < 0:
		return 0
	}
	return len(c.cells)
}

// Lines returns the rows of what is composed, each at most so many columns wide, and
// the cursor's row and column. The column may be the one behind a full row. While the
// history is searched it is what was found.
func (c *Composer) Lines(width int) (lines []string, row, col int) {
	if c.history.searching {
		return c.history.lines(width)
	}
	c.width = width
	lines = []string{""}
	var b strings.Builder
	c.layout(width, func(i, r, x int) {
		if r == len(lines) {
			lines[r-1] = b.String()
			b.Reset()
			lines = append(lines, "")
		}
		if i == c.at {
			row, col = r, x
		}
		if i < len(c.cells) && c.cells[i].text != "\n" {
			b.WriteString(Cut(c.cells[i].shown(), max(1, width)))
		}
	})
	lines[len(lines)-1] = b.String()
	return lines, row, col
}

// layout calls place with the row and column of each cell, and of the end.
func (c *Composer) layout(width int, place func(i, row, col int)) {
	width = max(1, width)
	row, x := 0, 0
	for i, one := range c.cells {
		w := 0
		if one.text != "\n" {
			w = min(Width(one.shown()), width)
		}
		if x+w > width {
			row, x = row+1, 0
		}
		place(i, row, x)
		if x += w; one.text == "\n" {
			row, x = row+1, 0
		}
	}
	place(len(c.cells), row, x)
}

// shown returns a cell as it can be shown: characters that control the terminal, or
// that nobody sees, have a sign instead.
func (one cell) shown() string {
	if one.label != "" {
		return one.label
	}
	r, size := utf8.DecodeRuneInString(one.text)
	switch {
	case r == '\t':
		return "    "
	case r < ' ':
		return string('\u2400' + r)
	case r == 0x7f:
		return "\u2421"
	case unicode.IsControl(r), size == len(one.text) && (unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)):
		return "\uFFFD"
	}
	return visible(one.text)
}

// visible takes out of a character of several runes those that turn the direction of
// the text.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || unicode.Is(unicode.Bidi_Control, r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// moved is called when text or cursor changed.
func (c *Composer) moved() { c.list.refresh(c.wordAt()) }

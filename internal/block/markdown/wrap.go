package markdown

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Styles, as the terminal names them: of the 16 colours that every one has.
const (
	bold       = "1"
	dim        = "2"
	italic     = "3"
	underlined = "4"
	cyan       = "36"
)

// span is text in a style. It is one line, or "\n".
type span struct{ text, style string }

// with adds a style to another.
func with(style, more string) string {
	if style == "" {
		return more
	}
	if slices.Contains(strings.Split(style, ";"), more) {
		return style
	}
	return style + ";" + more
}

func columns(s string) int { return ansi.StringWidth(s) }

// paint gives a text a style where colours are wanted.
func (o Options) paint(style, s string) string {
	if !o.Colour || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// wrap makes lines of at most so many columns. Words longer than a line are split.
func (o Options) wrap(spans []span, width int) []string {
	w := &wrapper{o: o, width: width}
	for _, s := range spans {
		w.add(s)
	}
	w.endWord()
	w.endLine()
	return w.lines
}

// wrapper fills lines with words.
type wrapper struct {
	o     Options
	width int // 0: lines have any width

	lines     []string
	line      []span
	lineWidth int
	space     span // between the line and the word
	word      []span
	wordWidth int
}

func (w *wrapper) add(s span) {
	if s.text == "\n" {
		w.endWord()
		w.endLine()
		return
	}
	for rest := s.text; rest != ""; {
		n := strings.IndexByte(rest, ' ')
		if n == 0 {
			w.endWord()
			blank := rest[:len(rest)-len(strings.TrimLeft(rest, " "))]
			w.space = span{w.space.text + blank, s.style}
			rest = rest[len(blank):]
			continue
		}
		if n < 0 {
			n = len(rest)
		}
		w.word = append(w.word, span{rest[:n], s.style})
		w.wordWidth += columns(rest[:n])
		rest = rest[n:]
	}
}

// endWord puts the word behind the line, or on the next one.
func (w *wrapper) endWord() {
	if len(w.word) == 0 {
		return
	}
	gap := len(w.space.text)
	if w.lineWidth == 0 {
		gap = 0
	}
	full := w.width > 0 && w.lineWidth > 0 && w.lineWidth+gap+w.wordWidth > w.width
	if full && (w.wordWidth <= w.width || w.lineWidth+gap >= w.width) { // a longer word begins here if it can
		w.breakLine()
		gap = 0
	}
	if gap > 0 {
		w.line = append(w.line, span{w.space.text, w.space.style})
		w.lineWidth += gap
	}
	for _, s := range w.word {
		w.put(s)
	}
	w.word, w.wordWidth, w.space = w.word[:0], 0, span{}
}

// put adds a part of a word, and breaks lines that are full.
func (w *wrapper) put(s span) {
	wide := columns(s.text)
	if w.width <= 0 || w.lineWidth+wide <= w.width {
		w.line = append(w.line, s)
		w.lineWidth += wide
		return
	}
	for rest := s.text; rest != ""; {
		one, cols := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		if w.lineWidth+cols > w.width && w.lineWidth > 0 {
			w.breakLine()
		}
		w.line = append(w.line, span{one, s.style})
		w.lineWidth += cols
		rest = rest[len(one):]
	}
}

// endLine ends a line, also an empty one.
func (w *wrapper) endLine() {
	w.space = span{}
	w.breakLine()
}

func (w *wrapper) breakLine() {
	var b, part strings.Builder
	for i := 0; i < len(w.line); part.Reset() {
		style := w.line[i].style
		for ; i < len(w.line) && w.line[i].style == style; i++ {
			part.WriteString(w.line[i].text)
		}
		b.WriteString(w.o.paint(style, part.String()))
	}
	w.lines = append(w.lines, b.String())
	w.line, w.lineWidth = w.line[:0], 0
}

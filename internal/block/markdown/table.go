package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// minColumn is the least width of a table's column; one that would be narrower makes
// the table a list.
const minColumn = 5

// table is what a paragraph with a row of dashes is.
type table struct {
	before     []string // lines before it
	rows       [][]string
	alignments []alignment
}

type alignment int

const (
	left alignment = iota
	center
	right
)

// findTable returns the table that a paragraph is: a line with cells, below it as many
// cells of dashes, and more lines.
func (r *renderer) findTable(n ast.Node) (t table, ok bool) {
	segments := n.Lines()
	if segments.Len() < 2 {
		return t, false
	}
	for i := 0; i+1 < segments.Len(); i++ {
		below := segments.At(i + 1)
		if t.alignments, ok = dashes(string(below.Value(r.source))); !ok {
			continue
		}
		at := segments.At(i)
		head := cells(string(at.Value(r.source)))
		if len(head) != len(t.alignments) {
			continue
		}
		t.rows = [][]string{head}
		for j := range segments.Len() {
			line := segments.At(j)
			switch value := string(line.Value(r.source)); {
			case j < i:
				t.before = append(t.before, value)
			case j > i+1:
				t.rows = append(t.rows, append(cells(value), make([]string, len(head))...)[:len(head)])
			}
		}
		return t, true
	}
	return t, false
}

// dashes returns the alignments of the row below a table's head.
func dashes(line string) (alignments []alignment, ok bool) {
	if !strings.Contains(line, "|") && !strings.Contains(line, ":") {
		return nil, false
	}
	for _, cell := range cells(line) {
		body := strings.TrimPrefix(strings.TrimSuffix(cell, ":"), ":")
		if body == "" || strings.Trim(body, "-") != "" {
			return nil, false
		}
		switch {
		case cell[0] != ':' && cell[len(cell)-1] == ':':
			alignments = append(alignments, right)
		case cell[0] == ':' && cell[len(cell)-1] == ':':
			alignments = append(alignments, center)
		default:
			alignments = append(alignments, left)
		}
	}
	return alignments, true
}

// cells returns what is between the bars of a line. A bar behind a backslash is text.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var out []string
	var cell strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case line[i] == '|':
			out = append(out, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(line[i])
		}
	}
	if rest := strings.TrimSpace(cell.String()); rest != "" || !strings.HasSuffix(line, "|") {
		out = append(out, rest)
	}
	return out
}

// notBlock is put before the text of a cell, so that it isn't read as a list or a title.
const notBlock = ". "

// cell returns the text of a cell, with styles.
func (r *renderer) cell(source, style string) []span {
	if source == "" {
		return nil
	}
	inner := &renderer{Options: r.Options, source: []byte(notBlock + source)}
	spans := inner.inline(parse().Parse(text.NewReader(inner.source)), style)
	if len(spans) > 0 {
		spans[0].text = strings.TrimPrefix(spans[0].text, notBlock)
	}
	return spans
}

// table renders a table that fits into the width: its cells are wrapped.
func (r *renderer) table(t table, width int) []string {
	var out []string
	if len(t.before) > 0 {
		out = append(Render(strings.Join(t.before, ""), Options{Width: width, Colour: r.Colour, UTF8: r.UTF8}), "")
	}
	rows := make([][][]span, len(t.rows))
	for i, row := range t.rows {
		style := ""
		if i == 0 {
			style = bold
		}
		for _, cell := range row {
			rows[i] = append(rows[i], r.cell(cell, style))
		}
	}
	widths, fits := r.widths(rows, width)
	if !fits || r.Records {
		return append(out, r.records(rows, width)...)
	}
	for i, row := range rows {
		out = append(out, r.row(row, widths, t.alignments)...)
		if i == 0 {
			out = append(out, r.rule(widths))
		}
	}
	return out
}

// widths returns the columns' widths: as wide as their cells, or the widest made
// narrower until all fit.
func (r *renderer) widths(rows [][][]span, width int) (widths []int, fits bool) {
	widths = make([]int, len(rows[0]))
	sum := 3 * (len(widths) - 1)
	for c := range widths {
		for _, row := range rows {
			widths[c] = max(widths[c], 1, spansWidth(row[c]))
		}
		sum += widths[c]
	}
	for width > 0 && sum > width {
		widest := 0
		for c := range widths {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		if widths[widest] <= minColumn {
			return widths, false
		}
		// at once down to the next one: a cell may be very long
		next := minColumn
		for c := range widths {
			if widths[c] < widths[widest] {
				next = max(next, widths[c])
			}
		}
		down := max(1, min(widths[widest]-next, sum-width))
		widths[widest] -= down
		sum -= down
	}
	return widths, true
}

func spansWidth(spans []span) int {
	n := 0
	for _, s := range spans {
		n += columns(s.text)
	}
	return n
}

// row renders a row; its cells may have several lines.
func (r *renderer) row(cells [][]span, widths []int, alignments []alignment) []string {
	wrapped := make([][]string, len(widths))
	height := 1
	for c := range widths {
		wrapped[c] = r.wrap(cells[c], widths[c])
		height = max(height, len(wrapped[c]))
	}
	out := make([]string, height)
	for i := range out {
		var b strings.Builder
		for c, width := range widths {
			if c > 0 {
				b.WriteString(r.paint(dim, r.pick(" │ ", " | ")))
			}
			cell := ""
			if i < len(wrapped[c]) {
				cell = wrapped[c][i]
			}
			pad := max(0, width-columns(cell))
			before := 0
			switch alignments[c] {
			case right:
				before = pad
			case center:
				before = pad / 2
			}
			b.WriteString(strings.Repeat(" ", before) + cell)
			if c < len(widths)-1 {
				b.WriteString(strings.Repeat(" ", pad-before))
			}
		}
		out[i] = b.String()
	}
	return out
}

func (r *renderer) rule(widths []int) string {
	parts := make([]string, len(widths))
	for c, width := range widths {
		parts[c] = strings.Repeat(r.pick("─", "-"), width)
	}
	return r.paint(dim, strings.Join(parts, r.pick("─┼─", "-+-")))
}

// records renders each row as lines with the column's name before the value.
func (r *renderer) records(rows [][][]span, width int) []string {
	var out []string
	for i, row := range rows[1:] {
		if i > 0 {
			out = append(out, "")
		}
		for c, cell := range row {
			named := append(append(append([]span{}, rows[0][c]...), span{text: ": "}), cell...)
			out = append(out, r.wrap(named, width)...)
		}
	}
	if len(rows) == 1 {
		for _, cell := range rows[0] {
			out = append(out, r.wrap(cell, width)...)
		}
	}
	return out
}

// Package markdown renders Markdown as lines for a terminal. Whatever the text has in
// it, no control character or sequence of it comes out; the only sequences are colours.
package markdown

import (
	"bufio"
	"bytes"
	stdhtml "html"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"

	"github.com/belay-run/belay/internal/view/story"
)

// Options say for which terminal lines are made.
type Options struct {
	Width   int  // columns; 0: lines are as long as they are
	Colour  bool // else marks such as ** and ` stay
	UTF8    bool // signs that aren't ASCII can be shown
	Records bool // tables are lists of named values: for a screen reader
}

// minWidth is the least width that text is wrapped to, however deep it is nested.
const minWidth = 10

// maxDepth is how many quotes and lists that contain each other are indented.
const maxDepth = 12

// parse is goldmark's parser, made when text is rendered for the first time. Its
// extensions aren't used: importing them costs every command half a millisecond. Tables
// are found here.
var parse = sync.OnceValue(goldmark.DefaultParser)

// Render returns the lines of a text, without line breaks. Between blocks is an empty
// line; there is none before the first and after the last. Code isn't wrapped.
func Render(source string, o Options) []string {
	r := &renderer{Options: o, source: []byte(strings.ToValidUTF8(source, "\uFFFD"))}
	return r.blocks(parse().Parse(text.NewReader(r.source)), o.Width, false)
}

type renderer struct {
	Options
	source []byte
	depth  int
}

// pick is the first of two where signs beyond ASCII can be shown.
func (r *renderer) pick(sign, ascii string) string {
	if r.UTF8 {
		return sign
	}
	return ascii
}

// blocks renders what a block contains. With tight, nothing is between the parts.
func (r *renderer) blocks(parent ast.Node, width int, tight bool) []string {
	var out []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := r.block(n, width)
		if len(out) > 0 && len(lines) > 0 && !tight {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func (r *renderer) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		s := r.inline(n, bold)
		if !r.Colour {
			s = append([]span{{text: strings.Repeat("#", n.Level) + " "}}, s...)
		}
		return r.wrap(s, width)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		return r.code(n)
	case *ast.HTMLBlock:
		lines := r.raw(n)
		if n.HasClosure() {
			lines = append(lines, r.line(n.ClosureLine))
		}
		return lines
	case *ast.ThematicBreak:
		return []string{r.paint(dim, strings.Repeat(r.pick("─", "-"), max(3, min(width, 40))))}
	case *ast.Blockquote:
		return r.nested(n, r.paint(dim, r.pick("│ ", "> ")), r.paint(dim, r.pick("│ ", "> ")), 2, width, false)
	case *ast.List:
		return r.list(n, width)
	case *ast.Paragraph, *ast.TextBlock:
		if t, ok := r.findTable(n); ok {
			return r.table(t, width)
		}
		return r.wrap(r.inline(n, ""), width)
	}
	return r.blocks(n, width, false)
}

// nested renders what a block contains, indented by so many columns: its first line
// begins with head, the others with rest.
func (r *renderer) nested(n ast.Node, head, rest string, indent, width int, tight bool) []string {
	if r.depth >= maxDepth {
		return r.blocks(n, width, tight)
	}
	if width > 0 {
		width = max(minWidth, width-indent)
	}
	r.depth++
	lines := r.blocks(n, width, tight)
	r.depth--
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(head+lines[i], " ")
		head = rest
	}
	return lines
}

func (r *renderer) list(n *ast.List, width int) []string {
	var out []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		head := r.pick("• ", "- ")
		if n.IsOrdered() {
			head = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		}
		indent := columns(head)
		if len(out) > 0 && !n.IsTight {
			out = append(out, "")
		}
		out = append(out, r.nested(item, head, strings.Repeat(" ", indent), indent, width, n.IsTight)...)
	}
	return out
}

// code renders lines as they are, indented.
func (r *renderer) code(n ast.Node) []string {
	lines := r.raw(n)
	for i := range lines {
		if lines[i] != "" {
			lines[i] = "  " + r.paint(cyan, lines[i])
		}
	}
	return lines
}

// raw returns the lines of a block as they are.
func (r *renderer) raw(n ast.Node) []string {
	segments := n.Lines()
	lines := make([]string, segments.Len())
	for i := range lines {
		lines[i] = r.line(segments.At(i))
	}
	return lines
}

func (r *renderer) line(s text.Segment) string {
	line := strings.TrimRight(string(s.Value(r.source)), "\r\n")
	return clean(strings.ReplaceAll(line, "\t", "    "))
}

// clean is the filter that every text passes.
func clean(s string) string { return story.Clean(s) }

// inline returns the text of a block, with styles.
func (r *renderer) inline(n ast.Node, style string) []span { return r.inner(nil, n, style) }

// inner adds the text that a node contains.
func (r *renderer) inner(out []span, parent ast.Node, style string) []span {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		out = r.text(out, n, style)
	}
	return out
}

func (r *renderer) text(out []span, n ast.Node, style string) []span {
	switch n := n.(type) {
	case *ast.Text:
		return r.plain(out, n, style)
	case *ast.String:
		return append(out, span{clean(oneLine(string(n.Value))), style})
	case *ast.CodeSpan:
		return r.marked(out, n, "`", with(style, cyan))
	case *ast.Emphasis:
		if n.Level == 1 {
			return r.marked(out, n, "*", with(style, italic))
		}
		return r.marked(out, n, "**", with(style, bold))
	case *ast.AutoLink:
		return append(out, span{clean(string(n.Label(r.source))), with(style, underlined)})
	case *ast.Link:
		from := len(out)
		return r.address(r.inner(out, n, with(style, underlined)), from, n.Destination, style)
	case *ast.Image:
		from := len(out)
		return r.address(r.inner(append(out, span{"image: ", style}), n, style), from, n.Destination, style)
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			s := n.Segments.At(i)
			out = append(out, span{clean(oneLine(string(s.Value(r.source)))), style})
		}
		return out
	}
	return r.inner(out, n, style)
}

// plain adds a text with its escapes and entities resolved, and the line break behind it.
func (r *renderer) plain(out []span, n *ast.Text, style string) []span {
	value := string(n.Segment.Value(r.source))
	if _, code := n.Parent().(*ast.CodeSpan); !code && !n.IsRaw() {
		value = resolved(value)
	}
	out = append(out, span{clean(oneLine(value)), style})
	if n.SoftLineBreak() || n.HardLineBreak() {
		out = append(out, span{"\n", style})
	}
	return out
}

// resolved resolves escapes and entities as goldmark's renderer does; what that wrote as
// HTML is read again.
func resolved(value string) string {
	if !strings.ContainsAny(value, `\&`) {
		return value
	}
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	html.DefaultWriter.Write(w, []byte(value))
	w.Flush() //nolint:errcheck // a buffer takes everything
	return stdhtml.UnescapeString(b.String())
}

// address adds where a link goes, unless its text, which begins at a span, says it.
func (r *renderer) address(out []span, from int, address []byte, style string) []span {
	var b strings.Builder
	for _, s := range out[from:] {
		b.WriteString(s.text)
	}
	to := clean(oneLine(resolved(string(address))))
	if to == "" || to == b.String() {
		return out
	}
	return append(out, span{" (" + to + ")", style})
}

// marked adds what a node contains; without colours its marks stay.
func (r *renderer) marked(out []span, n ast.Node, mark, style string) []span {
	if r.Colour {
		return r.inner(out, n, style)
	}
	return append(r.inner(append(out, span{mark, style}), n, style), span{mark, style})
}

var spaced = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")

// oneLine replaces line breaks and tabs by spaces.
func oneLine(s string) string { return spaced.Replace(s) }

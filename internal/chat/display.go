package chat

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// look is how the conversation is drawn.
type look struct{ block.Options }

// pick is the first of two where signs beyond ASCII can be shown.
func (l look) pick(sign, ascii string) string {
	if l.UTF8 {
		return sign
	}
	return ascii
}

// key is a key that can be pressed.
func (l look) key(name string) string {
	switch {
	case l.ScreenReader:
		return name + ":"
	case l.Colour:
		return "\x1b[1m" + name + "\x1b[0m"
	}
	return name
}

// dim is text that is beside the point.
func (l look) dim(s string) string {
	if !l.Colour || s == "" {
		return s
	}
	return "\x1b[2m" + s + "\x1b[0m"
}

// flow puts parts into lines of a width, with a separator between those of one line.
func (l look) flow(indent string, parts []string, between string, width int) (lines []string) {
	line := ""
	for _, p := range parts {
		switch {
		case line == "":
			line = indent + p
		case screen.Width(line)+screen.Width(between)+screen.Width(p) < width:
			line += between + p
		default:
			lines, line = append(lines, line), indent+p
		}
	}
	return append(lines, line)
}

// apart puts one text at the beginning of a line and another at its end, if there is
// room for both.
func (l look) apart(left, right string, width int) string {
	room := width - 1 - screen.Width(left) - screen.Width(right)
	if room < 1 {
		return left
	}
	return left + strings.Repeat(" ", room) + right
}

// look is how it is drawn now.
func (c *Chat) look() (look, int) {
	width, _ := c.Terminal.Size()
	o := c.Look
	o.Width, o.Now = width, c.Now()
	return look{o}, width
}

// print prints finished lines.
func (c *Chat) print(lines ...string) { c.Terminal.Print(lines...) }

// show prints what is finished and draws the rest.
func (c *Chat) show() {
	l, width := c.look()
	for _, b := range c.conv.finished() {
		c.print(block.Render(b, l.Options)...)
	}
	var r screen.Region
	for _, b := range c.conv.fold.Live() {
		if b.Kind != block.KindInput && b.Kind != block.KindQuestion {
			r.Lines = append(r.Lines, block.Render(b, l.Options)...)
		}
	}
	if c.ask != nil {
		r.Lines = append(r.Lines, c.ask.lines(l, width)...)
	}
	if c.conv.turn != "" && c.ask == nil {
		r.Lines = append(r.Lines, c.activity(l, width))
	}
	for _, b := range c.conv.waiting() {
		r.Lines = append(r.Lines, l.apart(l.pick("⋯ ", ". ")+"queued: "+block.Short(b.Text, max(20, width-40)), l.dim("↑ takes it back"), width))
	}
	c.composed(l, width, &r)
	if c.note != "" {
		r.Lines = append(r.Lines, l.dim(block.Line(c.note)))
	}
	r.Lines = append(r.Lines, c.status(l, width))
	c.Terminal.Draw(r)
}

// composed draws the composer, with the cursor in it.
func (c *Chat) composed(l look, width int, r *screen.Region) {
	head := l.pick("› ", "> ")
	if c.entry != nil {
		head = c.entry.label + ": "
	}
	indent := screen.Width(head)
	lines, row, col := c.comp.Lines(width - indent - 1)
	r.Row, r.Col, r.Cursor = len(r.Lines)+row, indent+col, true
	for i, line := range lines {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		r.Lines = append(r.Lines, head+line)
	}
}

// frames move while a turn runs.
var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// activity says that a turn runs, for how long, and how it is stopped.
func (c *Chat) activity(l look, width int) string {
	took := l.Now.Sub(c.conv.began)
	said := fmt.Sprintf("working %02d:%02d", int(took.Minutes()), int(took.Seconds())%60)
	if l.ScreenReader {
		return "working"
	}
	return l.apart(l.pick(frames[int(took/spin)%len(frames)], "*")+" "+said, l.dim("Esc stops"), width)
}

// status is the line at the bottom: model, mode, cost, folder.
func (c *Chat) status(l look, width int) string {
	s := c.conv.settings
	model := s.Model
	if model == "" {
		model = s.Provider
	}
	parts := []string{block.Line(model), modeName(s.Mode)}
	if c.conv.cost.State() != "" && c.conv.session != "" {
		parts = append(parts, block.Money(c.conv.cost))
	}
	if c.conv.stale != "" {
		parts = append(parts, c.conv.stale)
	}
	return l.dim(l.apart(strings.Join(parts, l.pick(" · ", " | ")), "? help", width))
}

// modeName is a mode as people say it.
func modeName(m belay.Mode) string { return strings.ReplaceAll(string(m), "_", " ") }

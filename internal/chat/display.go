package chat

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// look is how the conversation is drawn.
type look struct{ block.Options }

// pick is the first of two where signs beyond ASCII can be shown.
func (l look) pick(sign, ascii string) string {
	if l.UTF8 && !l.ScreenReader {
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

// drawn is how things are drawn now, and the terminal's width.
func (c *Chat) drawn() (look, int) {
	width, _ := c.Terminal.Size()
	o := c.Look
	o.Width, o.Now = max(0, width-1), c.Now()
	return look{o}, width
}

// print prints finished lines.
func (c *Chat) print(lines ...string) { c.Terminal.Print(lines...) }

// finished prints what came to its end.
func (c *Chat) finished() {
	l, _ := c.drawn()
	for _, b := range c.conv.finished() {
		if (byLine{c}).wasTyped(b) {
			continue
		}
		if lines := c.render(b, l); len(lines) > 0 {
			if b.Kind == block.KindInput {
				c.print("")
			}
			c.print(lines...)
		}
	}
}

// exited is how the output of a command ends.
var exited = regexp.MustCompile(`^exit \d+$`)

// maxPrinted is how many lines of a person's own command are shown.
const maxPrinted = 60

// render makes the lines of a finished block. Of a call that the person wrote it is the
// command and what it printed.
func (c *Chat) render(b block.Block, l look) []string {
	if strings.HasPrefix(b.By, "stream:") {
		b.By = "" // the runtime gave on what the person wrote
	}
	if !c.conv.isOwn(b.Turn) {
		return block.Render(b, l.Options)
	}
	switch b.Kind {
	case block.KindInput, block.KindEnd:
		return nil
	case block.KindCall:
		call := *b.Call
		call.Tail = nil
		b.Call = &call
	case block.KindAnswer:
		lines := strings.Split(strings.TrimRight(block.Text(b.Text), "\n"), "\n")
		if n := len(lines) - 1; n > 0 && exited.MatchString(lines[n]) {
			lines = lines[:n] // the command's line says it
		}
		if n := len(lines) - maxPrinted; n > 0 {
			lines = append(lines[:maxPrinted], l.dim(block.Plural(n, "line")+" more: Ctrl+O"))
		}
		return lines
	}
	return block.Render(b, l.Options)
}

// show prints what is finished and draws the rest.
func (c *Chat) show() {
	if c.By != Drawn {
		byLine{c}.showLines()
		return
	}
	c.finished()
	l, width := c.drawn()
	var r screen.Region
	add := func(lines ...string) { r.Lines = append(r.Lines, lines...) }
	for _, b := range c.conv.fold.Live() {
		shown := c.ask != nil && !c.ask.printed && b.Asked != nil && b.Asked.ID == c.ask.ID
		if b.Kind == block.KindInput || b.Kind == block.KindQuestion && !shown || b.Kind == block.KindCall && b.Call.State == block.Asking {
			continue // they are drawn below, or have been printed
		}
		add(block.Render(b, l.Options)...)
	}
	if c.ask != nil {
		add(c.ask.lines(l, width)...)
	} else if c.conv.turn != "" {
		add(c.activity(l, width))
	}
	for _, b := range c.conv.waiting() {
		label := "queued: "
		if c.conv.steers(b.Turn) {
			label = "steering: "
		}
		add(l.apart(l.pick("⋯ ", ". ")+label+block.Short(b.Text, max(20, width-32)), l.dim(l.pick("↑", "Up")+" takes it back"), width))
	}
	if c.pick != nil {
		lines, col := c.pick.lines(l)
		r.Row, r.Col, r.Cursor = len(r.Lines), col, true
		add(lines...)
	} else {
		c.composed(l, width, &r)
	}
	if c.note != "" {
		add(l.dim(block.Line(c.note)))
	}
	add(l.dim(c.status(l, width)))
	c.Terminal.Draw(r)
}

// composed draws the composer, with the cursor in it, and what completes its word.
func (c *Chat) composed(l look, width int, r *screen.Region) {
	head := l.pick("› ", "> ")
	if c.entry != nil {
		head = block.Line(c.entry.label) + ": "
	}
	indent := screen.Width(head)
	lines, row, col := c.comp.Lines(max(1, width-indent-2))
	r.Row, r.Col, r.Cursor = len(r.Lines)+row, indent+col, true
	for i, line := range lines {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		r.Lines = append(r.Lines, head+line)
	}
	r.Lines = append(r.Lines, c.comp.List(width-1, l.pick("› ", "> "))...)
}

// frames move while a turn runs.
var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// activity says that a turn runs, for how long, and how it is stopped.
func (c *Chat) activity(l look, width int) string {
	if l.ScreenReader {
		return "Working. Escape stops it."
	}
	took := max(0, l.Now.Sub(c.conv.began))
	said := fmt.Sprintf("working %02d:%02d", int(took.Minutes()), int(took.Seconds())%60)
	return l.apart(l.pick(frames[int(took/spin)%len(frames)], "*")+" "+said, l.dim("Esc stops"), width)
}

// status is the line at the bottom: model, mode, context, cost, branch.
func (c *Chat) status(l look, width int) string {
	parts := c.settled()
	if full := c.conv.used * 100 / max(1, c.conv.room); full > 0 && c.conv.room > 0 {
		parts = append(parts, fmt.Sprintf("ctx %d %%", full))
	}
	if state := c.conv.cost.State(); state == "known" || state == "estimated" || state == "at_least" {
		parts = append(parts, block.Money(c.conv.cost))
	}
	if c.branch != "" {
		parts = append(parts, block.Line(c.branch))
	}
	return l.apart(strings.Join(parts, l.pick(" · ", " | ")), "? help", width)
}

// settled is what the status says of the settings, and since when the server is away.
func (c *Chat) settled() []string {
	s := c.conv.settings
	parts := []string{block.Line(cmp.Or(s.Model, path.Base(s.Provider))), modeName(s.Mode)}
	if n := c.conv.fold.Programs(); n > 0 {
		parts = append(parts, block.Plural(n, "program"))
	}
	if !c.conv.stale.IsZero() {
		parts = append(parts, "stale since "+c.conv.stale.Format("15:04:05"))
	}
	return parts
}

// modeName is a mode as people say it.
func modeName(m belay.Mode) string { return strings.ReplaceAll(string(m), "_", " ") }

package block

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block/markdown"
)

// Options say for whom blocks are rendered.
type Options struct {
	Width        int // columns; 0: lines are as long as they are
	Colour       bool
	UTF8         bool // signs that aren't ASCII can be shown
	ScreenReader bool // sentences, without signs, frames and columns
	Verbose      bool // with what is shown on request only
	Me           string
	Now          time.Time
}

// Render makes a block's lines, without their ends. No block is rendered as no lines
// unless there is nothing to say.
func Render(b Block, o Options) []string {
	switch b.Kind {
	case KindInput:
		return o.input(b)
	case KindAnswer:
		return o.markdown(b.Text)
	case KindReasoning:
		return o.reasoning(b)
	case KindCall:
		return o.call(b.Call)
	case KindPlan:
		return o.plan(b.Plan)
	case KindQuestion:
		return o.question(b.Asked)
	case KindAgent:
		return o.agent(b)
	case KindNotice:
		if b.Detail && !o.Verbose {
			return nil
		}
		return o.wrap("", "", Line(b.Text))
	case KindEnd:
		return o.end(b.End)
	}
	return nil
}

// The colours that are used: of the 16 that every terminal has.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
)

// paint colours a text where colours are wanted.
func (o Options) paint(colour, s string) string {
	if !o.Colour || colour == "" || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// pick is the first of two where signs beyond ASCII can be shown.
func (o Options) pick(sign, ascii string) string {
	if o.UTF8 {
		return sign
	}
	return ascii
}

func (o Options) minus() string { return o.pick("−", "-") }

// shorten cuts a line to n columns.
func (o Options) shorten(s string, n int) string {
	if n <= 0 {
		return s
	}
	return ansi.Truncate(s, n, o.pick("…", "~"))
}

// wrap is text in lines of the width: the first one begins with head, the others with
// rest. Newlines stay, words longer than a line are split.
func (o Options) wrap(head, rest, text string) []string {
	var out []string
	width := 0
	if o.Width > 0 {
		width = max(o.Width-ansi.StringWidth(head), 10)
	}
	for line := range strings.Lines(closedLine(text)) {
		line = strings.ReplaceAll(trimEnd(line), "\t", "    ")
		if width > 0 {
			line = ansi.Wrap(line, width, "")
		}
		for _, part := range strings.Split(line, "\n") {
			out = append(out, strings.TrimRight(head+part, " "))
			head = rest
		}
	}
	return out
}

// Hanging is a text in lines of the width: the first one begins with head, the others as
// far in as head is wide.
func (o Options) Hanging(head, text string) []string {
	if text == "" {
		return []string{strings.TrimRight(head, " ")}
	}
	return o.wrap(head, strings.Repeat(" ", ansi.StringWidth(head)), text)
}

// markdown renders a part of an answer. Behind one that others follow there is an empty
// line.
func (o Options) markdown(text string) []string {
	out := markdown.Render(text, markdown.Options{Width: o.Width, Colour: o.Colour, UTF8: o.UTF8, Records: o.ScreenReader})
	if body := strings.TrimRight(text, " \t"); strings.HasSuffix(body, "\n\n") {
		out = append(out, "")
	}
	return out
}

func (o Options) input(b Block) []string {
	head := o.pick("› ", "> ")
	if o.ScreenReader {
		head = "You: "
	}
	if b.By != "" && o.Me != "" && b.By != o.Me && !strings.HasPrefix(b.By, "stream:") { // a task's first turn is begun by the task
		head = Line(b.By) + ": "
	}
	lines := o.wrap(head, "  ", Text(b.Text))
	if b.With != "" {
		lines = append(lines, o.wrap("  ", "  ", b.With)...)
	}
	return lines
}

// maxShownThought is how many characters of a reasoning are shown unless all is wanted.
const maxShownThought = 200

func (o Options) reasoning(b Block) []string {
	text := Text(strings.TrimSpace(b.Text))
	if !o.Verbose {
		text = Short(text, maxShownThought)
	}
	lines := o.wrap("thought: ", "  ", text)
	for i := range lines {
		lines[i] = o.paint(dim, lines[i])
	}
	return lines
}

func (o Options) plan(items []event.PlanItem) []string {
	var out []string
	done := 0
	for _, i := range items {
		if !i.Open() {
			done++
		}
	}
	said := "plan"
	if o.ScreenReader {
		said = "The plan"
	}
	out = append(out, fmt.Sprintf("%s: %d of %d done", said, done, len(items)))
	for _, i := range items {
		mark, word, colour := "[ ] ", "to do", ""
		switch i.Status {
		case event.PlanInProgress:
			mark, word, colour = "[>] ", "in progress", cyan
		case event.PlanCompleted:
			mark, word, colour = "[x] ", "done", green
		case event.PlanCancelled:
			mark, word, colour = "[-] ", "dropped", dim
		}
		head, rest := "  "+mark, "      "
		text := Text(i.Text)
		if o.ScreenReader {
			head, rest, text = "", "", text+": "+word
		}
		for _, l := range o.wrap(head, rest, text) {
			out = append(out, o.paint(colour, l))
		}
	}
	return out
}

// end is the one line that a turn ends with, behind what it says at its end.
func (o Options) end(e *End) []string {
	var out []string
	if trimmed(e.Summary) != "" {
		out = o.markdown(e.Summary)
	}
	if e.Next != "" {
		out = append(out, o.wrap("next: ", "  ", Text(e.Next))...)
	}
	colour := green
	if e.Outcome != "completed" {
		colour = red
	}
	lines := o.wrap("", "  ", e.Took(o))
	for i := range lines {
		lines[i] = o.paint(colour, lines[i])
	}
	out = append(out, lines...)
	if e.Reason != "" {
		out = append(out, o.wrap("  ", "  ", Line(e.Reason)+" ("+e.Code+")")...)
	}
	if e.Hint != "" {
		out = append(out, o.wrap("  ", "  ", "try: "+Line(e.Hint))...)
	}
	return out
}

// Took is a turn's end on one line: its outcome, what it took, and the files that it
// changed.
func (e *End) Took(o Options) string {
	s := fmt.Sprintf("%s in %s: %s, %s", e.Outcome, Millis(e.Wall.Milliseconds()), Plural(e.Stats.Steps, "step"), Plural(e.Stats.Calls, "call"))
	if n := e.Stats.Denied; n > 0 {
		s += fmt.Sprintf(", %d denied", n)
	}
	if u := e.Stats.Usage; u.Reported {
		s += fmt.Sprintf(", %s tokens read, %s written", Count(u.Input), Count(u.Output))
	} else {
		s += ", tokens unknown"
	}
	s += ", cost " + Money(e.Stats.Cost)
	if e.Left != "" {
		s += ", left " + e.Left
	}
	if len(e.Files) > 0 {
		var files []string
		for _, f := range e.Files {
			files = append(files, Line(f.Path)+" ("+f.counts(o)+")")
		}
		s += "; changed " + strings.Join(files, ", ")
	}
	return s
}

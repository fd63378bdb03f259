package block

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// sign is a call's state as one character, and its colour.
func (c *Call) sign(o Options) (sign, colour string) {
	switch {
	case c.State == Asking:
		return "!", yellow
	case c.State == Denied:
		return "!", yellow
	case c.State == Failed || c.State == Retrying:
		return o.pick("✗", "x"), red
	case c.State == Lost:
		return "?", yellow
	case c.State == Cancelled:
		return "!", ""
	case c.State == Succeeded && c.Program:
		return o.pick("✓", "+"), green
	case c.State == Succeeded:
		return o.pick("●", "*"), green
	}
	return o.pick("○", "o"), cyan
}

// word is a call's state in a word: of a program that failed its exit code.
func (c *Call) word() string {
	switch {
	case c.State == Failed && c.Exit != 0:
		return fmt.Sprintf("exit %d", c.Exit)
	case c.State == Retrying:
		return Failed
	case c.State == Wanted:
		return "waits"
	}
	return c.State
}

// called is what was called, with what it changed.
func (c *Call) called(o Options) string {
	s := c.What
	for i, f := range c.Files {
		switch {
		case len(c.Files) > 1:
			s += map[bool]string{true: ": ", false: ", "}[i == 0] + Line(f.Path) + " " + f.counts(o)
		default:
			s += " " + f.counts(o)
		}
	}
	return s
}

// details are what a call's line says besides.
func (c *Call) details(o Options) []string {
	out := []string{c.word()}
	if c.State == Running && !c.Began.IsZero() && !o.Now.IsZero() {
		out = append(out, Ago(o.Now.Sub(c.Began)))
	}
	if c.State == Running && c.Told != "" {
		out = append(out, c.Told)
	}
	if c.Took > 0 || c.State == Succeeded {
		out = append(out, Millis(c.Took.Milliseconds()))
	}
	if c.Program && c.Lines > 0 {
		out = append(out, Plural(int(c.Lines), "line"))
	}
	if c.Output > 0 && int(c.Lines) > len(c.tail()) {
		out = append(out, fmt.Sprintf("/out %d", c.Output))
	}
	if c.Edited != "" {
		out = append(out, "changed by "+o.name(c.Edited))
	}
	if a := c.Allowed; a != nil && a.By != "" {
		out = append(out, "allowed by "+o.name(a.By)+scope(a.Scope, c.Tool))
	}
	return out
}

// name is who a principal is to the reader.
func (o Options) name(principal string) string {
	if principal == o.Me && o.Me != "" {
		return "you"
	}
	return Line(principal)
}

// scope says what an answer covers besides the call that asked, of a tool.
func scope(s, tool string) string {
	switch s {
	case "", "once":
		return ""
	case "session":
		return " for this session"
	case "prefix":
		switch tool {
		case "exec":
			return " for commands that begin so"
		case "":
			return " for what begins so"
		}
		return " for this path"
	case "count":
		return " for some calls"
	case "until":
		return " for a time"
	}
	return " (" + Line(s) + ")"
}

// column is where a call's details begin, where there is room.
const column = 46

func (o Options) call(c *Call) []string {
	if o.ScreenReader {
		return o.tellCall(c)
	}
	sign, colour := c.sign(o)
	out := o.columns(o.paint(colour, sign)+" ", c.called(o), strings.Join(c.details(o), o.pick(" · ", ", ")))
	frame := o.paint(dim, o.pick("  │ ", "  | "))
	if said := c.said(); said != "" {
		out = append(out, o.wrap("  ", "  ", said)...)
	}
	out = append(out, o.changes(c)...)
	for _, l := range c.tail() {
		out = append(out, frame+o.shorten(tailLine(l), max(o.Width-4, 0)))
	}
	return out
}

// columns is a line with details behind what it is about. What it is about is cut
// before the details are.
func (o Options) columns(sign, what, details string) []string {
	if o.Width <= 0 {
		return []string{sign + what + "  " + details}
	}
	room := o.Width - ansi.StringWidth(sign)
	if left := room - 2 - ansi.StringWidth(details); left >= 20 {
		what = o.shorten(what, left)
		gap := max(2, min(column-ansi.StringWidth(sign)-ansi.StringWidth(what), left+2-ansi.StringWidth(what)))
		return []string{sign + what + strings.Repeat(" ", gap) + o.paint(dim, details)}
	}
	return append([]string{sign + o.shorten(what, room)}, o.wrap("  ", "  ", details)...)
}

// said is why a call failed, in words.
func (c *Call) said() string {
	if c.Problem.Message == "" {
		return ""
	}
	s := Short(c.Problem.Message, 300) + " (" + c.Problem.Code + ")"
	if c.State == Denied && c.Problem.Hint != "" {
		s += "; " + Short(c.Problem.Hint, 200)
	}
	if c.State == Retrying && !c.Again.IsZero() {
		s += "; it is tried again"
	}
	return s
}

// tailLine is a line of a program's output without what it does to a terminal.
func tailLine(s string) string {
	return Line(strings.ReplaceAll(ansi.Strip(s), "\t", "    "))
}

// changes are the lines that a call changed, without those that its question showed.
func (o Options) changes(c *Call) (out []string) {
	for _, f := range c.Files {
		if !slices.ContainsFunc(c.asked, func(a File) bool { return a.Path == f.Path && reflect.DeepEqual(a.Hunks, f.Hunks) }) {
			out = append(out, o.hunks(f.Hunks, maxHunkLines)...)
		}
	}
	return out
}

// maxHunkLines is how many lines of a change are shown with its call.
const maxHunkLines = 40

// hunks are changed lines, at most so many of them; 0 shows all.
func (o Options) hunks(hunks []Hunk, most int) []string {
	width := max(o.Width-6, 0)
	var out []string
	shown, all := 0, 0
	for _, h := range hunks {
		all += len(h.Lines)
	}
	for _, h := range hunks {
		out = append(out, o.paint(cyan, fmt.Sprintf("    @@ line %d @@", h.Line)))
		for _, l := range h.Lines {
			if shown++; most > 0 && shown > most {
				return append(out, fmt.Sprintf("    %s %s more", o.pick("…", "..."), Plural(all-most, "line")))
			}
			colour := map[byte]string{'+': green, '-': red}[l[0]]
			lines := []string{o.shorten(Line(strings.ReplaceAll(l[1:], "\t", "    ")), width)}
			if most == 0 && len(l) > 1 { // somebody answers for it
				lines = Options{Width: width}.wrap("", "", exactly(l[1:]))
			}
			for i, part := range lines {
				out = append(out, o.paint(colour, "    "+map[bool]string{true: l[:1], false: " "}[i == 0]+" "+part))
			}
		}
	}
	return out
}

// tellCall is a call in sentences.
func (o Options) tellCall(c *Call) []string {
	s := c.called(o)
	switch c.State {
	case Succeeded:
		s += ": ok"
	case Failed, Retrying:
		s += ": " + c.word()
		if c.Exit == 0 {
			s = c.called(o) + ": failed"
		}
	case Running:
		s += ": is running"
	case Asking:
		s += ": waits for an answer"
	case Denied:
		s += ": was denied"
	case Lost:
		s += ": its outcome is unknown"
	case Cancelled:
		s += ": was cancelled"
	default:
		s += ": waits"
	}
	if c.Took > 0 {
		s += ", after " + Millis(c.Took.Milliseconds())
	}
	if c.Edited != "" {
		s += ", changed by " + o.name(c.Edited)
	}
	if a := c.Allowed; a != nil && a.By != "" {
		s += ", allowed by " + o.name(a.By) + scope(a.Scope, c.Tool)
	}
	s += "."
	if said := c.said(); said != "" {
		s += " " + said + "."
	}
	out := o.wrap("", "", s)
	if tail := c.tail(); len(tail) > 0 {
		out = append(out, fmt.Sprintf("It printed %s. The last %d:", Plural(int(c.Lines), "line"), len(tail)))
		for _, l := range tail {
			out = append(out, o.wrap("", "", tailLine(l))...)
		}
	}
	return append(out, o.changes(c)...)
}

// question is what is asked, or was.
func (o Options) question(q *Question) []string {
	head := "! "
	if o.ScreenReader {
		head = "Question: "
	}
	if q.Preview != nil && q.Decision == "" {
		return q.Preview.Lines(o)
	}
	var out []string
	if q.Prompt != "" {
		out = o.wrap(o.paint(yellow, head), "  ", Text(q.Prompt))
	}
	switch {
	case q.Decision == "" && !q.Until.IsZero():
		out = append(out, o.wrap("  ", "  ", "waits until "+q.Until.Local().Format("2 Jan 15:04"))...)
	case q.Decision == "answer":
		out = append(out, o.wrap("  "+o.name(q.By)+": ", "  ", Text(q.Answer))...)
	case q.Decision != "":
		out = append(out, o.wrap("  ", "  ", o.decided(q))...)
	}
	return out
}

// decided is an answer in words.
func (o Options) decided(q *Question) string {
	word := map[string]string{"allow": "allowed", "deny": "denied", "cancelled": "not asked any more"}[q.Decision]
	switch {
	case word == "":
		word = Line(q.Decision)
	case q.Decision == "cancelled":
		return word
	}
	s := word + " by " + o.name(q.By) + scope(q.Scope, "")
	if trimmed(q.Answer) != "" {
		s += ": " + Line(q.Answer)
	}
	return s
}

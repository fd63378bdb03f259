package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// Terminal is where a conversation is shown and typed: a *screen.Terminal, or
// *screen.Lines where nothing is drawn over.
type Terminal interface {
	Print(lines ...string)
	Draw(screen.Region)
	Redraw()
	Send(sequence string)
	Size() (width, height int)
	Events() <-chan screen.Event
	Release(func() error) error
	Stop() error
	Guard()
	Close()
}

// ByLine says how a conversation is held line by line.
type ByLine string

// Ways to hold a conversation.
const (
	Drawn ByLine = ""      // keys come one by one, and the live region is drawn
	Typed ByLine = "typed" // a person enters lines at a terminal
	Piped ByLine = "piped" // lines come from elsewhere: each is taken when the one before was answered
)

// lines is what is known of a conversation that is held line by line.
type lines struct {
	waiting []string     // that came and weren't taken
	ended   bool         // no more will come
	typed   []string     // messages that the terminal has shown as they were typed
	sent    belay.TurnID // the last message; empty: its turn isn't awaited
	working belay.TurnID // the turn that was said to run
	status  string       // as it was said last
}

// byLine holds a conversation line by line.
type byLine struct{ *Chat }

// line takes a line: for the list, the entry or the question that is open, or as a message.
func (c byLine) line(text string) {
	switch {
	case c.pick != nil:
		c.picksLine(strings.TrimSpace(text))
	case c.entry != nil:
		if text != "" {
			c.comp.Set(text)
		}
		c.enters("enter")
	case c.ask != nil && c.answersLine(strings.TrimSpace(text)):
	default:
		c.comp.Set(text)
		typing(c).submit("")
	}
}

// answersLine takes a line that is nothing but the key of a choice, or its number.
func (c byLine) answersLine(text string) bool {
	if n, err := strconv.Atoi(text); err == nil && c.Look.ScreenReader && c.ask.Kind != "question" {
		if all := c.ask.choices(); n >= 1 && n <= len(all) {
			text = all[n-1].key
		}
	}
	if _, ok := c.ask.choose(text); !ok {
		return false
	}
	if !c.ask.takes(c.Now(), false) {
		c.note = "the question came at that moment: answer it again"
		return true
	}
	return asking(c).answers(screen.Key{Name: text})
}

// picksLine takes a line for the list: a number chooses, a text looks for others, and an
// empty line leaves it.
func (c byLine) picksLine(text string) {
	p := c.pick
	rows := p.matching()
	n, err := strconv.Atoi(text)
	switch {
	case text == "":
		c.pick = nil
		c.note = "nothing was chosen"
	case err == nil && n >= 1 && n <= len(rows):
		c.pick = nil
		rows[n-1].chosen()
	default:
		p.filter, p.at = text, 0
		if p.typed != nil {
			p.typed(text)
			return
		}
		c.lists(p)
	}
}

// maxListed is how many rows of a list are printed.
const maxListed = 20

// lists prints a list, where it isn't drawn.
func (c byLine) lists(p *picker) {
	if c.By == Drawn || c.pick != p {
		return
	}
	rows := p.matching()
	c.print(p.title + ":")
	for i, r := range rows[:min(len(rows), maxListed)] {
		c.print(fmt.Sprintf("%3d  %s", i+1, block.Line(r.text)))
	}
	if n := len(rows) - maxListed; n > 0 || p.more {
		c.print("     there are more: a word looks for them")
	}
	if len(rows) == 0 {
		c.print("     nothing fits")
	}
	c.print("  a number chooses, a word searches, an empty line leaves the list")
}

// asksByLine prints what answers a question, where that isn't drawn.
func (c byLine) asksByLine() {
	if l, width := c.drawn(); c.By == Typed {
		c.print(c.ask.lines(l, width)...)
	} else if c.By == Piped {
		c.print("  it waits: " + "belay actions says how it is answered")
	}
}

// entersByLine says what is asked for, and what an empty line means.
func (c byLine) entersByLine(text string) {
	if c.By != Drawn && text != "" {
		c.print("  an empty line means: " + block.Line(text))
	}
}

// showLines prints what is finished and what has changed, and asks for the next line.
func (c byLine) showLines() {
	l, width := c.drawn()
	if s := strings.Join(c.settled(), l.pick(" · ", ", ")); s != c.by.status && (c.conv.session == "" && c.By == Typed || c.conv.session != "" && c.conv.workspace != "") {
		c.by.status = s
		c.print(s)
	}
	if t := c.conv.turn; t != "" && c.by.working != t && !c.conv.began.Before(c.began) {
		if c.by.working = t; c.By == Typed {
			c.print("working; Ctrl+C stops it")
		}
	}
	c.finished()
	if c.note != "" {
		c.print(block.Line(c.note))
		c.note = ""
	}
	prompt := ""
	switch {
	case c.jobs.open > 0: // what comes of it is shown first
	case c.entry != nil:
		prompt = block.Line(c.entry.label) + ": "
	case c.idle() || c.pick != nil:
		prompt = l.pick("› ", "> ")
	}
	var r screen.Region
	if prompt != "" {
		r.Lines = []string{screen.Cut(prompt, width-1)}
	}
	c.Terminal.Draw(r)
}

// again composes a message that was sent before; line by line it is shown, to be entered
// anew.
func (c byLine) again(text string) {
	if c.By == Drawn {
		c.comp.Set(text)
		return
	}
	c.print("  it was: " + block.Line(text))
}

// wasTyped reports whether the terminal has shown an input as it was typed; once.
func (c byLine) wasTyped(b block.Block) bool {
	if c.By != Typed || b.Kind != block.KindInput {
		return false
	}
	i := slices.Index(c.by.typed, b.Text)
	if i >= 0 {
		c.by.typed = slices.Delete(c.by.typed, i, i+1)
	}
	return i >= 0
}

// idle reports whether everything that was asked for has come to its end, or waits.
func (c byLine) idle() bool {
	if c.sending || len(c.outbox) > 0 || c.jobs.open > 0 || c.until != "" {
		return false
	}
	if c.ask != nil {
		return true
	}
	if c.conv.turn != "" || len(c.conv.waiting()) > 0 {
		return false
	}
	return c.by.sent == "" || c.conv.has(c.by.sent)
}

// takeLines takes the lines that came, each when the one before was answered. A question
// that waits ends it: nobody is there to answer.
func (c byLine) takeLines() {
	for len(c.by.waiting) > 0 && c.idle() && c.ask == nil {
		text := c.by.waiting[0]
		c.by.waiting = c.by.waiting[1:]
		c.line(text)
	}
	if c.idle() && (c.by.ended && len(c.by.waiting) == 0 || c.ask != nil) {
		c.leaving = true
	}
}

package term

import (
	"io"

	"github.com/belay-run/belay/internal/block"
)

// printer shows a running session on standard error: each finished block once, and on a
// terminal a line below them with what runs. Standard output is for the answer.
type printer struct {
	out    io.Writer
	quiet  bool // JSON goes to standard output instead
	moving bool // a terminal: its last line is drawn over
	look   block.Options
	drawn  bool   // the progress line is on the screen
	asking string // the question behind which the cursor stands
}

func newPrinter(e *Env, me string) *printer {
	p := &printer{out: e.Err, quiet: e.JSON, moving: e.moves(e.Err), look: e.Look(e.Err)}
	p.look.Me = me
	return p
}

func (p *printer) write(s string) {
	if !p.quiet {
		io.WriteString(p.out, s) //nolint:errcheck // nobody is left to tell
	}
}

// println writes lines of their own. The caller has made them safe to show.
func (p *printer) println(lines ...string) {
	if len(lines) == 0 {
		return
	}
	p.fresh()
	for _, l := range lines {
		p.write(l + "\n")
	}
	p.write(p.asking)
}

// show prints a block.
func (p *printer) show(b block.Block) { p.println(block.Render(b, p.look)...) }

// fresh brings the cursor to the beginning of an empty line.
func (p *printer) fresh() {
	switch {
	case p.drawn || p.asking != "" && p.moving:
		p.write("\r\x1b[K")
	case p.asking != "":
		p.write("\n")
	}
	p.drawn = false
}

// clear takes the progress line away.
func (p *printer) clear() {
	if p.drawn {
		p.fresh()
	}
}

// ask leaves the cursor behind a question; an empty one takes it away.
func (p *printer) ask(q string) {
	p.fresh()
	p.asking = q
	p.write(q)
}

// answered is called when the person has pressed enter.
func (p *printer) answered() { p.asking = "" }

// paint draws the progress line, cut to the width.
func (p *printer) paint(s string) {
	if !p.moving || p.asking != "" || s == "" {
		return
	}
	width := p.look.Width
	if width <= 1 {
		width = 80
	}
	p.write("\r\x1b[K" + Short(s, width-1))
	p.drawn = true
}

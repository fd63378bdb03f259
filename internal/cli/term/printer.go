package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/block"
)

// printer shows a running session on standard error: each finished block once, and on a
// terminal a line below them with what runs. Standard output is for the answer.
type printer struct {
	out    io.Writer
	quiet  bool // JSON goes to standard output instead
	moving bool // a terminal: its last line is drawn over
	look   block.Options
	drawn  int    // progress lines that are on the screen
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
	case p.drawn > 1:
		p.write(fmt.Sprintf("\r\x1b[%dA\x1b[J", p.drawn-1))
	case p.drawn > 0 || p.asking != "" && p.moving:
		p.write("\r\x1b[K")
	case p.asking != "":
		p.write("\n")
	}
	p.drawn = 0
}

// clear takes the progress lines away.
func (p *printer) clear() {
	if p.drawn > 0 {
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

// maxAgents is how many agents have a progress line each.
const maxAgents = 8

// paint draws the progress line, cut to the width, below one for each agent that is open.
func (p *printer) paint(s string, live []block.Block, now time.Time) {
	if !p.moving || p.asking != "" || s == "" {
		return
	}
	look := p.look
	if look.Now = now; look.Width <= 1 {
		look.Width = 80
	}
	look.Width-- // the cursor stands behind the last line
	var lines []string
	open := 0
	for _, b := range live {
		if b.Kind != block.KindAgent {
			continue
		}
		if open++; open <= maxAgents {
			lines = append(lines, block.Render(b, look)...)
		}
	}
	if open > maxAgents {
		lines = append(lines, fmt.Sprintf("and %s more", Plural(open-maxAgents, "agent")))
	}
	p.fresh()
	if len(lines) == 0 {
		p.write("\r\x1b[K")
	}
	p.write(strings.Join(append(lines, Short(s, look.Width)), "\n"))
	p.drawn = len(lines) + 1
}

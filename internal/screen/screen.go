// Package screen draws on the terminal that a person already has. Finished lines are
// printed once and belong to the terminal's scrollback; below them a live region is
// erased and drawn again when it changes. There is no alternate screen, no capture of
// the mouse and no scroll region, and nothing above the region is ever touched.
//
// Screen writes, Terminal is the device with its modes, signals and keys, and Composer
// edits a message. None of them knows what is shown.
package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// frameTime is the least time between two frames.
const frameTime = 50 * time.Millisecond

// maxWaiting is how many bytes of finished lines wait for a terminal that takes none.
const maxWaiting = 8 << 20

// closeTime is how long Close and Pause wait for a terminal that takes nothing.
const closeTime = 2 * time.Second

// Region is what is drawn below the finished lines. Each line is one row, without
// line breaks; it may have colours. The zero value is no region.
type Region struct {
	Lines    []string
	Row, Col int  // of the cursor within Lines, from 0
	Cursor   bool // whether it is shown, as a reversed character
}

// Screen prints finished lines and draws the live region below them. Its methods
// never wait for the terminal, except Pause and Close, which do so for two seconds at
// most. It may be used by several goroutines.
type Screen struct {
	out  io.Writer
	size func() (width, height int)

	mu      sync.Mutex
	lines   []string // finished and not written
	waiting int      // their bytes
	dropped int      // lines that were dropped because too many waited
	region  Region   // as it is wanted
	sent    string   // sequences that print nothing, and are to be written
	redraw  bool     // draw the region even if it hasn't changed
	lost    bool     // another program wrote: the region isn't where it was drawn
	paused  bool
	given   bool // it was erased for another program
	ended   bool
	failed  bool // the terminal is gone

	// what only the goroutine that writes has
	on, off string // the terminal's modes while it is the screen's, and else
	active  bool   // it is the screen's
	drawn   Region // as it is on the terminal

	wake chan struct{}
	idle chan chan struct{} // asks for all that is wanted to be written
	over chan struct{}      // closed when nothing is written any more
}

// New returns a screen that writes to out. size says how many columns and rows the
// terminal has now; it is asked for each frame. The sequences on and off set the
// terminal's modes, before the first frame and behind the last. Close ends it.
func New(out io.Writer, size func() (width, height int), on, off string) *Screen {
	s := &Screen{out: out, size: size, on: on, off: off, wake: make(chan struct{}, 1), idle: make(chan chan struct{}), over: make(chan struct{})}
	go s.write()
	return s
}

// Print adds finished lines above the region, in order, each once. A line has no line
// break in it; the terminal wraps one that is too wide. When the terminal takes nothing
// and more than 8 MiB wait, the oldest are dropped and a line says how many.
func (s *Screen) Print(lines ...string) {
	if len(lines) == 0 {
		return
	}
	s.change(func() {
		if s.failed {
			return
		}
		s.lines = append(s.lines, lines...)
		for _, l := range lines {
			s.waiting += len(l)
		}
		n := 0
		for ; s.waiting > maxWaiting && n < len(s.lines)-1; n++ {
			s.waiting -= len(s.lines[n])
		}
		s.lines, s.dropped = slices.Delete(s.lines, 0, n), s.dropped+n
	})
}

// Draw replaces the live region. Of one that is higher than half of the terminal, the
// rows at the end are drawn, or those around the cursor.
func (s *Screen) Draw(r Region) {
	r.Lines = slices.Clone(r.Lines)
	s.change(func() { s.region = r })
}

// Redraw draws the region again, for the size that the terminal has now.
func (s *Screen) Redraw() { s.change(func() { s.redraw = true }) }

// takeBack draws the region anew where the cursor is, and sets the modes again: without
// being told, another program had the terminal.
func (s *Screen) takeBack() { s.change(func() { s.lost = true }) }

func (s *Screen) change(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Pause prints what is finished, erases the region and writes nothing until Resume:
// the terminal belongs to another program.
func (s *Screen) Pause() {
	s.change(func() { s.paused = true })
	s.flush()
}

// Resume draws the region where the cursor is now.
func (s *Screen) Resume() { s.change(func() { s.paused, s.given, s.redraw = false, false, true }) }

// Close prints what is finished, erases the region and ends the screen.
func (s *Screen) Close() {
	s.change(func() { s.ended = true })
	select {
	case <-s.over:
	case <-time.After(closeTime):
	}
}

// flush waits until all that was wanted before has been written.
func (s *Screen) flush() {
	late := time.After(closeTime)
	done := make(chan struct{})
	select {
	case s.idle <- done:
	case <-s.over:
		return
	case <-late:
		return
	}
	select {
	case <-done:
	case <-late:
	}
}

// write writes frames until the screen is closed or the terminal gone.
func (s *Screen) write() {
	defer close(s.over)
	var last time.Time
	for {
		var done chan struct{}
		select {
		case <-s.wake:
			s.mu.Lock()
			urgent := s.ended || s.paused
			s.mu.Unlock()
			if wait := frameTime - time.Since(last); wait > 0 && !urgent {
				select {
				case <-time.After(wait):
				case done = <-s.idle:
				}
			}
		case done = <-s.idle:
		}
		frame, ended := s.frame()
		if frame != "" {
			last = time.Now()
			if _, err := io.WriteString(s.out, frame); err != nil {
				s.mu.Lock()
				s.failed, s.lines, ended = true, nil, true
				s.mu.Unlock()
			}
		}
		if done != nil {
			close(done)
		}
		if ended {
			return
		}
	}
}

// Sequences of the terminal. What begins in the cursor's row is erased from the second
// column on: tmux moves what is erased from the screen's first cell on to its scrollback. A line feed comes before the
// return: the return may go to a row in the middle of the line, and a resize between them
// would keep the cursor there.
const (
	syncOn     = "\x1b[?2026h"
	syncOff    = "\x1b[?2026l"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	wrapOn     = "\x1b[?7h"
	wrapOff    = "\x1b[?7l"
	eraseBelow = "\r\x1b[K\x1b[C\x1b[J\r"
	rowUp      = "\x1b[A"
	endLine    = "\n\r"
	plainText  = "\x1b[m"
)

// frame returns what brings the terminal from what is drawn to what is wanted, and
// whether it is the last. It is empty when nothing has changed.
func (s *Screen) frame() (frame string, ended bool) {
	width, height := s.size()
	s.mu.Lock()
	active := !s.paused && !s.ended
	if ended = s.ended; !active && s.given { // what is finished waits for Resume
		s.mu.Unlock()
		return "", ended
	}
	erase := s.lost || len(s.drawn.Lines) > 0
	if s.lost {
		s.active, s.drawn = false, Region{}
	}
	want := Region{}
	if active {
		want = s.region.cut(width, height)
	}
	s.given = !active
	lines, dropped, changed, sent := s.lines, s.dropped, s.redraw || active != s.active, s.sent
	s.lines, s.waiting, s.dropped, s.redraw, s.lost, s.sent = nil, 0, 0, false, false, ""
	s.mu.Unlock()
	if len(lines) == 0 && !changed && want.equal(s.drawn) {
		return sent, ended
	}
	var b strings.Builder
	if active && !s.active {
		b.WriteString(s.on)
	}
	b.WriteString(syncOn + hideCursor)
	if erase {
		b.WriteString(eraseBelow)
	}
	if dropped > 0 {
		fmt.Fprintf(&b, "[%d lines aren't shown: the terminal didn't take them]"+endLine, dropped)
	}
	for _, l := range lines {
		b.WriteString(l)
		b.WriteString(plainText + endLine)
	}
	want.draw(&b)
	if len(want.Lines) == 0 {
		b.WriteString(showCursor)
	}
	b.WriteString(syncOff + sent)
	if !active {
		b.WriteString(s.off)
	}
	s.drawn, s.active = want, active
	return b.String(), ended
}

// draw draws the region from its last row up, so that the terminal's own cursor rests
// where the region begins, and what is below the cursor is the region. That is so
// whatever size the terminal has when this comes, or gets later: it moves its cursor with
// the text. A frame that was made for another size erases no finished line then, and
// leaves nothing of the region before. Going back to the beginning by a number of rows
// could do either: how many there are depends on a size that is known too late. The rows
// are made by line feeds, which a smaller terminal scrolls, and aren't wrapped.
//
// The cursor that a person sees is drawn. The terminal's own is hidden below it if that
// is in the first row: what composes characters shows itself there.
func (r Region) draw(b *strings.Builder) {
	if len(r.Lines) == 0 {
		return
	}
	b.WriteString(strings.Repeat("\n", len(r.Lines)-1) + wrapOff)
	for i, l := range slices.Backward(r.Lines) {
		if r.Cursor && i == r.Row {
			l = withCursor(l, r.Col)
		}
		b.WriteString(l + plainText + "\r")
		if i > 0 {
			b.WriteString(rowUp)
		}
	}
	b.WriteString(wrapOn)
	if r.Row == 0 && r.Col > 0 {
		fmt.Fprintf(b, "\x1b[%dC", r.Col)
	}
}

// cut returns the region as a terminal of this size can hold it: at most half of the
// rows, and lines that leave the last column free, so that none is wrapped.
func (r Region) cut(width, height int) Region {
	if len(r.Lines) == 0 {
		return Region{}
	}
	most := max(1, height/2)
	r.Row = min(max(r.Row, 0), len(r.Lines)-1)
	from := max(0, len(r.Lines)-most)
	if r.Cursor && r.Row < from {
		from = r.Row
	}
	r.Lines = slices.Clone(r.Lines[from:min(from+most, len(r.Lines))])
	r.Row = min(max(r.Row-from, 0), len(r.Lines)-1)
	for i, l := range r.Lines {
		r.Lines[i] = Cut(l, width-1)
	}
	r.Col = min(max(r.Col, 0), max(width-1, 0))
	return r
}

func (r Region) equal(o Region) bool {
	return r.Row == o.Row && r.Col == o.Col && r.Cursor == o.Cursor && slices.Equal(r.Lines, o.Lines)
}

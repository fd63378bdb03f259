package chat

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// typing takes keys: they compose a message, or mean something by themselves.
type typing struct{ *Chat }

// event takes what happened at the terminal.
func (c *Chat) event(e screen.Event) {
	switch e := e.(type) {
	case screen.Key:
		c.note = ""
		if c.pick != nil {
			picking{c}.picks(e)
			return
		}
		typing{c}.key(e)
	case screen.Paste:
		c.note = ""
		if c.pick == nil && !(typing{c}).pastesImage(e.Text) {
			c.comp.Paste(e.Text)
		}
	case screen.Line:
		if c.note = ""; c.By == Piped {
			c.by.waiting = append(c.by.waiting, e.Text)
			return
		}
		byLine{c}.line(e.Text)
		return
	case screen.End:
		c.by.ended, c.leaving = true, c.By != Piped
	case screen.Focus:
		c.away = !e.On
	}
	typing{c}.completions()
}

// situation is what keys mean now.
func (c typing) situation() situation {
	return situation{
		working: c.conv.turn != "", composed: !c.comp.Empty() || c.entry != nil, browsing: c.comp.Browsing(), asked: c.ask != nil && c.entry == nil,
		waits: len(c.conv.waiting()) > 0,
	}
}

// key takes a key: it is the open question's, one with a meaning, or the composer's.
func (c typing) key(k screen.Key) {
	s := c.situation()
	again := c.keys.press(k.Name, c.Now())
	switch {
	case c.comp.Captures(k.Name):
		c.comp.Key(k)
	case s.asked && c.ask.takes(c.Now(), s.composed) && asking(c).answers(k):
	case c.entry != nil && c.enters(k.Name):
	default:
		c.act(bind(k.Name, s, again), k)
	}
}

// act does what a key means.
func (c typing) act(a action, k screen.Key) {
	switch a {
	case toComposer:
		c.comp.Key(k)
	case submit:
		c.submit("")
	case enqueue:
		c.submit(belay.QueueEnqueue)
	case toQuestion:
		c.ask.direct, c.note = true, "the next key answers the question"
	case takeBack:
		c.takeBack()
	case older:
		c.comp.Older()
	case newer:
		c.comp.Newer()
	case interrupt:
		c.note = "interrupting"
		c.do("interrupt_turn", map[string]any{"sessionId": c.conv.session, "reason": "interrupted at the terminal"}, nil)
	case rewind:
		picking(c).pickTurn()
	case clear:
		if text := strings.TrimSpace(c.comp.Text()); text != "" {
			c.said(text)
		}
		c.comp.Clear()
	case warn:
		c.note = "again to leave"
	case leave:
		c.leaving = true
	case nextMode:
		c.nextMode()
	case inEditor:
		c.edit()
	case fromClipboard:
		c.clipboardImage()
	case search:
		c.comp.Search()
	case lastOutput:
		c.output(len(c.conv.outputs))
	case suspend:
		c.failed(c.Terminal.Stop())
	case redraw:
		c.Terminal.Redraw()
	case help:
		slash(c).help()
	}
}

// enters takes a key of an entry: Enter gives it, Esc leaves it.
func (c *Chat) enters(key string) bool {
	switch key {
	case "enter":
		if c.entry.done(c.comp.Text()) {
			c.endEntry()
		}
	case "esc", "ctrl+c":
		c.endEntry()
	default:
		return false
	}
	return true
}

// enter uses the composer for something else than a message, which is kept meanwhile.
func (c *Chat) enter(label, text string, done func(string) bool) {
	c.entry = &entry{label: label, kept: c.comp.Draft(), done: done}
	c.comp.Set(text)
	byLine{c}.entersByLine(text)
}

func (c *Chat) endEntry() {
	c.comp.Restore(c.entry.kept)
	c.entry = nil
}

// submit sends what is composed, or does what it says if it is a command. While a turn
// runs a message steers it, unless mode says something else.
func (c typing) submit(mode belay.QueueMode) {
	text := strings.TrimSpace(c.comp.Text())
	if text == "" {
		return
	}
	c.comp.Clear()
	switch {
	case slash(c).performs(text):
		return
	case strings.HasPrefix(text, "!") && len(text) > 1:
		c.run(strings.TrimSpace(text[1:]))
		return
	case mode == "" && c.conv.turn != "":
		mode = belay.QueueSteer
	}
	c.send(text, mode)
}

// run has a command line run in the session, without the model, which reads of it with
// the next message. The first one makes the session, as a message does.
func (c typing) run(line string) {
	c.outbox = append(c.outbox, message{session: c.conv.session, text: "!" + line, command: line})
	c.sendNext()
}

// do performs a command; what went wrong is printed.
func (c *Chat) do(command string, in any, then func()) {
	c.jobs.start(func(ctx context.Context) func() {
		err := c.Runtime.Do(ctx, command, in, nil)
		return func() {
			if c.failed(err); err == nil && then != nil {
				then()
			}
		}
	})
}

// takeBack takes the last message that waits out of the queue, into the composer.
func (c typing) takeBack() {
	waiting := c.conv.waiting()
	last := waiting[len(waiting)-1]
	c.do("remove_queued_turn", map[string]any{"sessionId": c.conv.session, "queuedTurnId": last.Turn, "reason": "taken back"}, func() {
		if c.comp.Empty() {
			c.comp.Set(last.Text)
		}
	})
}

// modes are those that Shift+Tab goes through.
var modes = []belay.Mode{belay.ModeDefault, belay.ModeAcceptEdits, belay.ModePlan}

func (c typing) nextMode() {
	next := modes[(slices.Index(modes, c.conv.settings.Mode)+1)%len(modes)]
	c.set(map[string]any{"mode": next})
}

// set changes settings of the session, or of the one that begins with the next message.
func (c *Chat) set(settings map[string]any) {
	if c.conv.session != "" {
		c.do("update_thread", map[string]any{"sessionId": c.conv.session, "settings": settings}, nil)
		return
	}
	if c.changes == nil {
		c.changes = map[string]any{}
	}
	for name, v := range settings {
		c.changes[name] = v
		switch v := v.(type) {
		case belay.Mode:
			c.conv.settings.Mode = v
		case string:
			switch name {
			case "model":
				c.conv.settings.Model = v
			case "provider":
				c.conv.settings.Provider = v
			case "effort":
				c.conv.settings.Effort = v
			}
		}
	}
}

// edit opens what is composed in the person's editor.
func (c *Chat) edit() {
	var text []byte
	err := c.Terminal.Release(func() (err error) {
		text, err = c.Desk.EditText(c.jobs.ctx, "message.md", []byte(c.comp.Text()))
		return err
	})
	if c.failed(err); err == nil {
		c.comp.Set(strings.TrimRight(string(text), "\n"))
	}
}

// output shows an output, by its number, in the person's pager.
func (c *Chat) output(n int) {
	if n < 1 || n > len(c.conv.outputs) {
		c.note = "there is no such output"
		return
	}
	call, session := c.conv.outputs[n-1], c.conv.session
	write := func(w io.Writer) error {
		if call.Whole != nil {
			return Content(c.jobs.ctx, c.Runtime, session, call.Whole.Digest, w)
		}
		_, err := io.WriteString(w, strings.Join(call.Tail, "\n")+"\n")
		return err
	}
	if c.By != Drawn {
		c.failed(cleaned(func(text string) error {
			c.print(strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
			return nil
		}, write))
		return
	}
	c.failed(c.Terminal.Release(func() error { return c.pages(write) }))
}

// pages shows in the person's pager what is written, as it is written.
func (c *Chat) pages(write func(io.Writer) error) error {
	r, w := io.Pipe()
	defer r.Close() // the pager may end before the text does
	c.jobs.keep(func() {
		w.CloseWithError(cleaned(func(text string) error {
			_, err := io.WriteString(w, text)
			return err
		}, write))
	})
	return c.Desk.Page(c.jobs.ctx, r)
}

// cleaned gives what is written on, as whole lines, without what it would do to a
// terminal.
func cleaned(give func(text string) error, write func(io.Writer) error) error {
	l := &lineWriter{give: give}
	if err := write(l); err != nil {
		return err
	}
	if len(l.rest) == 0 {
		return nil
	}
	return give(block.Text(string(l.rest)))
}

// lineWriter gives whole lines on; of one that is longer than that, pieces.
type lineWriter struct {
	give func(text string) error
	rest []byte
}

// longLine is how long a line may be that is given on as a whole.
const longLine = 64 << 10

func (l *lineWriter) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	n := bytes.LastIndexByte(l.rest, '\n') + 1
	if n == 0 && len(l.rest) > longLine {
		n = len(l.rest)
		for i := 1; i < utf8.UTFMax && !utf8.Valid(l.rest[:n]); i++ { // a character stays whole
			n--
		}
	}
	if n == 0 {
		return len(p), nil
	}
	text := block.Text(string(l.rest[:n]))
	l.rest = append(l.rest[:0], l.rest[n:]...)
	return len(p), l.give(text)
}

// failed prints an error with what to do about it; nil is none.
func (c *Chat) failed(err error) {
	if err != nil {
		c.fail(err)
	}
}

func (c *Chat) fail(err error) {
	e := c.Explain(err)
	c.print(block.Line("error: " + e.Error()))
	if e.Hint != "" {
		c.print(block.Line("  try: " + e.Hint))
	}
}

// remember reads the messages of people in this workspace, for Up and Ctrl+R.
func (c typing) remember() {
	dir := c.Workspace
	c.jobs.start(func(ctx context.Context) func() {
		all := messages(ctx, c.Runtime, dir)
		return func() {
			c.files.said = append(all, c.files.said...)
			c.comp.SetHistory(c.files.said)
		}
	})
}

// said keeps a message for Up and Ctrl+R.
func (c *Chat) said(text string) {
	c.files.said = append(c.files.said, text)
	c.comp.SetHistory(c.files.said)
}

// maxRemembered is of how many sessions the messages are read.
const maxRemembered = 20

// messages are those of people in the newest sessions of a workspace, the newest last.
func messages(ctx context.Context, r Runtime, dir string) (all []string) {
	var list struct {
		Sessions []struct {
			ID belay.SessionID `json:"id"`
		} `json:"sessions"`
	}
	if r.Read(ctx, "read_sessions", Query{Values: url.Values{"workspace": {dir}, "limit": {"20"}}}, &list) != nil {
		return nil
	}
	for _, s := range slices.Backward(list.Sessions[:min(len(list.Sessions), maxRemembered)]) {
		var page struct {
			Events []event.Envelope `json:"events"`
		}
		q := Query{ID: string(s.ID), Values: url.Values{"types": {"turn.submitted"}, "last": {"100"}}}
		if r.Read(ctx, "read_sessions_id_events", q, &page) != nil {
			continue
		}
		for _, e := range page.Events {
			if p, ok := e.Data.(event.TurnSubmitted); ok && p.Kind == belay.TurnUser && p.Text.Ref == nil && p.Text.Text != "" {
				all = append(all, p.Text.Text)
			}
		}
	}
	return all
}

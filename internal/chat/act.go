package chat

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// event takes what happened at the terminal.
func (c *Chat) event(e screen.Event) {
	switch e := e.(type) {
	case screen.Key:
		c.note = ""
		if c.pick != nil {
			c.picks(e)
			return
		}
		c.key(e)
	case screen.Paste:
		c.note = ""
		if c.pick == nil && !c.pastesImage(e.Text) {
			c.comp.Paste(e.Text)
		}
	case screen.Focus:
		c.away = !e.On
	}
	c.completions()
}

// situation is what keys mean now.
func (c *Chat) situation() situation {
	return situation{
		working: c.conv.turn != "", composed: !c.comp.Empty() || c.entry != nil, browsing: c.comp.Browsing(), asked: c.ask != nil && c.entry == nil,
		waits: len(c.conv.waiting()) > 0,
	}
}

// key takes a key: it is the open question's, one with a meaning, or the composer's.
func (c *Chat) key(k screen.Key) {
	s := c.situation()
	again := c.keys.press(k.Name, c.Now())
	switch {
	case c.comp.Captures(k.Name):
		c.comp.Key(k)
	case s.asked && c.ask.takes(c.Now(), s.composed) && c.answers(k):
	case c.entry != nil && c.enters(k.Name):
	default:
		c.act(bind(k.Name, s, again), k)
	}
}

// act does what a key means.
func (c *Chat) act(a action, k screen.Key) {
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
		c.pickTurn()
	case clear:
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
		c.help()
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
}

func (c *Chat) endEntry() {
	c.comp.Restore(c.entry.kept)
	c.entry = nil
}

// submit sends what is composed, or does what it says if it is a command. While a turn
// runs a message steers it, unless mode says something else.
func (c *Chat) submit(mode belay.QueueMode) {
	text := strings.TrimSpace(c.comp.Text())
	if text == "" {
		return
	}
	c.comp.Clear()
	switch {
	case c.slash(text):
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
// the next message.
func (c *Chat) run(line string) {
	if c.begun() {
		c.do("call_tool", map[string]any{"sessionId": c.conv.session, "tool": "exec", "args": map[string]any{"command": line}}, nil)
	}
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
func (c *Chat) takeBack() {
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

func (c *Chat) nextMode() {
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
	call := c.conv.outputs[n-1]
	text := []byte(strings.Join(call.Tail, "\n") + "\n")
	if call.Whole != nil {
		whole, err := c.content(*call.Whole)
		if c.failed(err); err != nil {
			return
		}
		text = whole
	}
	c.failed(c.Terminal.Release(func() error { return c.Desk.Page(c.jobs.ctx, []byte(block.Text(string(text)))) }))
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
func (c *Chat) remember() {
	dir := c.Workspace
	c.jobs.start(func(ctx context.Context) func() {
		all := said(ctx, c.Runtime, dir)
		return func() {
			c.files.said = append(all, c.files.said...)
			c.comp.SetHistory(c.files.said)
		}
	})
}

// maxRemembered is of how many sessions the messages are read.
const maxRemembered = 20

// said are the messages of the newest sessions of a workspace, the newest last.
func said(ctx context.Context, r Runtime, dir string) (all []string) {
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

package chat

import (
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// event takes what happened at the terminal.
func (c *Chat) event(e screen.Event) {
	switch e := e.(type) {
	case screen.Key:
		c.key(e)
	case screen.Paste:
		c.note = ""
		c.comp.Paste(e.Text)
	}
}

// situation is what keys mean now.
func (c *Chat) situation() situation {
	return situation{
		working: c.conv.turn != "", composed: c.comp.Text() != "", asked: c.ask != nil && c.entry == nil,
		waits: c.entry == nil && len(c.conv.waiting()) > 0,
	}
}

// key takes a key: it is the open question's, one with a meaning, or the composer's.
func (c *Chat) key(k screen.Key) {
	s := c.situation()
	c.note = ""
	again := c.keys.press(k.Name, c.Now())
	if s.asked && c.ask.takes(c.Now(), s.composed) && c.answers(k) {
		return
	}
	if c.entry != nil && c.enters(k.Name) {
		return
	}
	switch bind(k.Name, s, again) {
	case toComposer:
		c.comp.Key(k)
	case submit:
		c.submit("")
	case enqueue:
		c.submit(belay.QueueEnqueue)
	case newLine:
		c.comp.Insert("\n")
	case toQuestion:
		c.ask.direct = true
		c.note = "the next key answers the question"
	case interrupt:
		c.interrupt()
	case clear:
		c.comp.Clear()
	case warn:
		c.note = "again to leave"
	case leave:
		c.leaving = true
	case suspend:
		if err := c.Terminal.Stop(); err != nil {
			c.fail(err)
		}
	case redraw:
		c.Terminal.Redraw()
	}
}

// enters takes a key of an entry: Enter gives it, Esc leaves it.
func (c *Chat) enters(key string) bool {
	switch key {
	case "enter":
		e, text := c.entry, c.comp.Text()
		if e.done(text) {
			c.endEntry()
		}
	case "esc", "ctrl+c":
		c.endEntry()
	default:
		return false
	}
	return true
}

// begin uses the composer for something else than a message, which is kept meanwhile.
func (c *Chat) begin(label, text string, done func(string) bool) {
	c.entry = &entry{label: label, kept: c.comp.Text(), done: done}
	c.comp.Set(text)
}

func (c *Chat) endEntry() {
	c.comp.Set(c.entry.kept)
	c.entry = nil
}

// submit sends what is composed. While a turn runs it steers it, unless mode says
// something else.
func (c *Chat) submit(mode belay.QueueMode) {
	text := c.comp.Text()
	if strings.TrimSpace(text) == "" {
		return
	}
	if mode == "" && c.conv.turn != "" {
		mode = belay.QueueSteer
	}
	c.comp.Clear()
	c.send(text, mode)
}

// submitted is what submit_turn answers.
type submitted struct {
	Session belay.SessionID `json:"sessionId"`
}

// send gives the session a message; the first one makes the session.
func (c *Chat) send(text string, mode belay.QueueMode) {
	in := map[string]any{"text": text}
	switch {
	case c.conv.session != "":
		in["sessionId"] = c.conv.session
	case c.Runtime.Server() != "":
		in["workspace"] = c.Workspace
	}
	if mode != "" {
		in["queue"] = mode
	}
	if len(c.Settings) > 0 {
		in["settings"] = c.Settings
	}
	c.jobs.start(func(ctx context.Context) func() {
		var out submitted
		err := c.Runtime.Do(ctx, "submit_turn", in, &out)
		return func() {
			if err != nil {
				c.fail(err)
				if c.comp.Text() == "" {
					c.comp.Set(text) // it wasn't taken
				}
				return
			}
			c.Settings = nil
			if c.conv.session == "" {
				c.follow(out.Session)
			}
		}
	})
}

// do performs a command; what went wrong is printed.
func (c *Chat) do(command string, in any, then func()) {
	c.jobs.start(func(ctx context.Context) func() {
		err := c.Runtime.Do(ctx, command, in, nil)
		return func() {
			switch {
			case err != nil:
				c.fail(err)
			case then != nil:
				then()
			}
		}
	})
}

func (c *Chat) interrupt() {
	c.note = "interrupting"
	c.do("interrupt_turn", map[string]any{"sessionId": c.conv.session, "reason": "interrupted at the terminal"}, nil)
}

// fail prints an error with what to do about it.
func (c *Chat) fail(err error) {
	e := c.Explain(err)
	c.print(block.Line("error: " + e.Error()))
	if e.Hint != "" {
		c.print(block.Line("  try: " + e.Hint))
	}
}

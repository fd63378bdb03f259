package chat

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
)

// message is what a person sends.
type message struct {
	session belay.SessionID // for which it was composed; empty: the one that the message before begins, or a new one
	text    string
	mode    belay.QueueMode
	command string // the line that is run instead of sending the text; empty: none is
}

// send gives the session a message, behind those that were sent before it; the first one
// makes the session.
func (c *Chat) send(text string, mode belay.QueueMode) {
	c.outbox = append(c.outbox, message{session: c.conv.session, text: text, mode: mode})
	if c.By == Typed {
		c.by.typed = append(c.by.typed, text)
	}
	c.sendNext()
}

// sendNext sends the oldest message that waits, with the files that it names.
func (c *Chat) sendNext() {
	if c.sending || len(c.outbox) == 0 {
		return
	}
	m := c.outbox[0]
	c.outbox, c.sending = c.outbox[1:], true
	if m.session == "" {
		m.session = c.conv.session
	}
	in := map[string]any{}
	switch {
	case m.session != "":
		in["sessionId"] = m.session
	case c.Runtime.Server() != "":
		in["workspace"] = c.Workspace
	}
	if len(c.changes) > 0 && (m.session == "" || m.command == "") {
		in["settings"] = c.changes
	}
	if m.command != "" {
		c.call(m, in)
		return
	}
	in["text"] = m.text
	if m.mode != "" {
		in["queue"] = m.mode
	}
	images, dir := c.imagesIn(m.text), c.conv.workspace
	c.jobs.start(func(ctx context.Context) func() {
		var out taken
		files, missed, err := c.Desk.Named(dir, m.text)
		if files = append(files, images...); len(files) > 0 {
			in["attachments"] = files
		}
		if err == nil {
			err = c.Runtime.Do(ctx, "submit_turn", in, &out)
		}
		return func() {
			for _, name := range missed {
				c.print(block.Line("@" + name + " is no file of this workspace; it is sent as text"))
			}
			c.sent(m, out, err)
		}
	})
}

// call runs a command line.
func (c *Chat) call(m message, in map[string]any) {
	in["tool"], in["args"] = "exec", map[string]any{"command": m.command}
	if m.session == "" {
		in["title"] = block.Short(m.text, 80)
	}
	c.jobs.start(func(ctx context.Context) func() {
		var out taken
		err := c.Runtime.Do(ctx, "call_tool", in, &out)
		return func() { c.sent(m, out, err) }
	})
}

// taken is what a session says of work that it took.
type taken struct {
	Session belay.SessionID `json:"sessionId"`
	Turn    belay.TurnID    `json:"turnId"`
}

// sent takes what became of a message, and sends the next one.
func (c *Chat) sent(m message, to taken, err error) {
	c.sending = false
	if err != nil {
		c.fail(err)
		if c.comp.Empty() {
			c.comp.Set(m.text) // it wasn't taken
		}
	} else {
		if m.session == "" || m.command == "" {
			c.changes = nil
		}
		if c.conv.session == "" {
			c.follow(to.Session)
		}
		c.by.sent = to.Turn
		if c.By == Typed && c.conv.turn != "" {
			c.note = map[belay.QueueMode]string{belay.QueueSteer: "steering: the running turn takes it", belay.QueueEnqueue: "queued: it waits for the turn to end"}[m.mode]
		}
		c.said(m.text)
	}
	c.sendNext()
}

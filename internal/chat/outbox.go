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
}

// send gives the session a message, behind those that were sent before it; the first one
// makes the session.
func (c *Chat) send(text string, mode belay.QueueMode) {
	c.outbox = append(c.outbox, message{c.conv.session, text, mode})
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
	in := map[string]any{"text": m.text}
	switch {
	case m.session != "":
		in["sessionId"] = m.session
	case c.Runtime.Server() != "":
		in["workspace"] = c.Workspace
	}
	if m.mode != "" {
		in["queue"] = m.mode
	}
	if len(c.changes) > 0 {
		in["settings"] = c.changes
	}
	images, dir := c.imagesIn(m.text), c.conv.workspace
	c.jobs.start(func(ctx context.Context) func() {
		var out struct {
			Session belay.SessionID `json:"sessionId"`
		}
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
			c.sent(m, out.Session, err)
		}
	})
}

// sent takes what became of a message, and sends the next one.
func (c *Chat) sent(m message, id belay.SessionID, err error) {
	c.sending = false
	if err != nil {
		c.fail(err)
		if c.comp.Empty() {
			c.comp.Set(m.text) // it wasn't taken
		}
	} else {
		c.changes = nil
		if c.conv.session == "" {
			c.follow(id)
		}
		c.files.said = append(c.files.said, m.text)
		c.comp.SetHistory(c.files.said)
	}
	c.sendNext()
}

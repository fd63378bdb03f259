package chat

import (
	"context"
	"net/url"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// find looks for the question that is to be on the screen: the oldest of those that
// wait.
func (c *Chat) find() {
	waiting := c.conv.asks()
	if len(waiting) == 0 {
		c.ask = nil
		return
	}
	c.jobs.start(func(ctx context.Context) func() {
		var out struct {
			Actions []asked `json:"actions"`
		}
		err := c.Runtime.Read(ctx, "listActions", Query{Values: url.Values{"sessionId": {string(c.conv.session)}}}, &out)
		return func() {
			if err != nil {
				c.fail(err)
				return
			}
			c.found(out.Actions)
		}
	})
}

// found puts the oldest question on the screen, unless it is there as it is.
func (c *Chat) found(all []asked) {
	if len(all) == 0 {
		c.ask = nil
		return
	}
	if c.ask != nil && c.ask.ID == all[0].ID && c.ask.Version == all[0].Version {
		c.ask.of = len(all)
		return
	}
	c.ask = newQuestion(all[0], previewOf(all[0]), 1, len(all), c.Now())
	c.print("! " + block.Line(c.ask.head()))
	if c.ask.Shown != "" {
		c.print("  " + c.ask.Shown)
	}
}

// answers takes a key for the question on the screen; false: it isn't one of its keys.
func (c *Chat) answers(k screen.Key) bool {
	q := c.ask
	chosen, ok := q.choose(k.Name)
	if !ok {
		q.direct = false
		return false
	}
	q.direct = false
	in := map[string]any{"decision": "allow"}
	switch {
	case q.Kind == "question" && chosen.key == "t":
		c.begin("answer", "", func(text string) bool {
			if text == "" {
				return false
			}
			c.respond(q, map[string]any{"decision": "answer", "message": text})
			return true
		})
		return true
	case q.Kind == "question" && chosen.key != "n":
		in["decision"], in["message"] = "answer", chosen.label
	case chosen.key == "n" && q.Kind == "permission":
		c.begin("why not (Enter sends, Esc goes back)", "", func(text string) bool {
			c.respond(q, map[string]any{"decision": "deny", "message": text})
			return true
		})
		return true
	case chosen.key == "n":
		in["decision"] = "deny"
	case chosen.key == "s":
		in["scope"] = "session"
	case chosen.key == "+":
		c.begin("raise by, such as +5usd", "+", func(text string) bool {
			c.respond(q, map[string]any{"decision": "allow", "budget": text})
			return true
		})
		return true
	case chosen.key == "a" && q.preview.Wider:
		in["scope"] = "session"
	case chosen.key == "a":
		c.begin("commands that begin with", q.preview.Scope, func(text string) bool {
			c.respond(q, map[string]any{"decision": "allow", "scope": "prefix", "prefix": text})
			return true
		})
		return true
	}
	c.respond(q, in)
	return true
}

// respond answers a question as it was seen. That it was answered is a fact that comes.
func (c *Chat) respond(q *question, in map[string]any) {
	in["actionId"], in["version"] = q.ID, q.Version
	c.jobs.start(func(ctx context.Context) func() {
		err := c.Runtime.Do(ctx, "respond_action", in, nil)
		return func() {
			if err == nil {
				return
			}
			c.fail(err)
			if code := belay.CodeOf(err); code == belay.CodeConflict || code == belay.CodeAlreadyAnswered {
				c.ask = nil
				c.find()
			}
		}
	})
}

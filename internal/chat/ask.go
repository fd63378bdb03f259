package chat

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// asking puts questions to the person and gives their answers.
type asking struct{ *Chat }

// waits is a question that waits, as listActions tells it.
type waits struct {
	ID      belay.ActionID     `json:"actionId"`
	Version string             `json:"version"`
	Budget  *event.BudgetAsked `json:"budget"`
	Alike   []belay.ActionID   `json:"alike"`
}

// find puts the oldest question that waits on the screen, if any does: behind what was
// said before, all of which is on the screen first.
func (c asking) find() {
	if c.until != "" {
		return
	}
	id := c.conv.session
	c.jobs.start(func(ctx context.Context) func() {
		var all struct {
			Actions []waits `json:"actions"`
		}
		var p block.Preview
		err := c.Runtime.Read(ctx, "listActions", Query{Values: url.Values{"sessionId": {string(id)}}}, &all)
		if err == nil && len(all.Actions) > 0 {
			err = c.Runtime.Read(ctx, "previewAction", Query{ID: string(all.Actions[0].ID)}, &p)
		}
		return func() {
			switch {
			case id != c.conv.session:
			case belay.CodeOf(err) == belay.CodeAlreadyAnswered: // a fact says so, and it is looked again
			case err != nil:
				c.fail(err)
			case len(all.Actions) == 0:
				c.ask = nil
			default:
				c.found(p, all.Actions[0], len(all.Actions))
			}
		}
	})
}

// found puts a question on the screen, whole, unless it is there as it is.
func (c asking) found(p block.Preview, as waits, of int) {
	if c.ask != nil && c.ask.ID == p.ID && c.ask.Version == p.Version {
		c.ask.of, c.ask.alike = of, len(as.Alike)
		return
	}
	c.ask = &question{Preview: p, budget: as.Budget, of: of, alike: len(as.Alike), drawn: c.Now()}
	c.finished()
	c.conv.fold.Show(p)
	l, _ := c.drawn()
	_, height := c.Terminal.Size()
	lines := p.Lines(l.Options)
	if c.ask.printed = p.Kind == "permission" || len(lines) >= height/4 || c.By != Drawn; c.ask.printed { // else it is printed with the answer
		c.print(lines...)
	}
	byLine(c).asksByLine()
}

// answers takes a key for the question on the screen; false: it isn't one of its keys.
func (c asking) answers(k screen.Key) bool {
	q := c.ask
	q.direct = false
	chosen, ok := q.choose(k.Name)
	if !ok {
		return false
	}
	respond := func(in map[string]any) bool { c.respond(q, in); return true }
	switch chosen.key {
	case "y":
		respond(map[string]any{"decision": "allow"})
	case "s":
		respond(map[string]any{"decision": "allow", "scope": "session"})
	case "l":
		if q.Kind == "permission" {
			respond(map[string]any{"decision": "allow", "alike": true})
			break
		}
		c.enter("answer to all of them", "", func(text string) bool {
			return strings.TrimSpace(text) != "" && respond(map[string]any{"decision": "answer", "message": text, "alike": true})
		})
	case "a":
		if q.Shows != block.PreviewCommand {
			respond(map[string]any{"decision": "allow", "scope": "prefix", "prefix": q.Prefix})
			break
		}
		c.enter("allow commands that begin with", q.Prefix, func(words string) bool {
			return strings.TrimSpace(words) != "" && respond(map[string]any{"decision": "allow", "scope": "prefix", "prefix": words})
		})
	case "+":
		c.enter("raise it by, such as +5usd", "+", func(amount string) bool {
			return respond(map[string]any{"decision": "allow", "budget": amount})
		})
	case "e":
		c.change(q)
	case "n":
		if q.Kind != "permission" {
			respond(map[string]any{"decision": "deny"})
			break
		}
		c.enter("why not (Enter sends, Esc goes back)", "", func(why string) bool {
			return respond(map[string]any{"decision": "deny", "message": why})
		})
	case "t":
		if q.Kind == "permission" {
			respond(map[string]any{"decision": "allow", "clearTaint": true})
			break
		}
		c.enter("answer", "", func(text string) bool {
			return strings.TrimSpace(text) != "" && respond(map[string]any{"decision": "answer", "message": text})
		})
	case "?":
		c.explain(q)
	default: // a number
		respond(map[string]any{"decision": "answer", "message": q.Options[chosen.key[0]-'1']})
	}
	return true
}

// respond answers a question as it was seen. What comes of it are facts.
func (c asking) respond(q *question, in map[string]any) {
	in["actionId"], in["version"] = q.ID, q.Version
	c.jobs.start(func(ctx context.Context) func() {
		err := c.Runtime.Do(ctx, "respond_action", in, nil)
		return func() {
			if err == nil {
				if c.By != Drawn { // the next line isn't for it
					c.ask = nil
				}
				return
			}
			switch belay.CodeOf(err) {
			case belay.CodeAlreadyAnswered:
				c.ask = nil
				c.print(block.Line("too late: " + c.Explain(err).Message))
			case belay.CodeConflict:
				c.ask = nil
				c.fail(err)
			default:
				c.fail(err)
			}
			c.find()
		}
	})
}

// change lets the person edit the call's arguments, and allows it with them.
func (c asking) change(q *question) {
	var args json.RawMessage
	err := c.Terminal.Release(func() (err error) {
		args, err = c.Desk.Edit(c.jobs.ctx, q.Args)
		return err
	})
	if err != nil {
		c.fail(err)
		return
	}
	c.print("changed to:")
	for line := range strings.Lines(block.Words(args)) {
		c.print("  " + block.Line(line))
	}
	c.enter("allow it so? y, or Esc goes back", "", func(text string) bool {
		if text == "y" || text == "yes" {
			c.respond(q, map[string]any{"decision": "allow", "args": args})
		}
		return true
	})
}

// explain says why a question is asked, and what its answers mean.
func (c asking) explain(q *question) {
	why := "it can change things, and no rule allows it"
	if q.Rule != "" {
		why = "rule " + q.Rule + " asks for it"
		if q.Mode != "" {
			why += " in mode " + modeName(belay.Mode(q.Mode))
		}
	}
	lines := []string{block.Line("  why: " + why + "; /why " + string(q.ID) + " tells more"),
		"  y allows this call alone, as it is shown. a and s allow more until the session ends, where that holds; /grants lists it, and takes it back."}
	if len(q.Taint) > 0 {
		lines = append(lines, block.Line("  t says that you looked at what came from outside ("+strings.Join(q.Taint, ", ")+") and trust it: it is no reason to ask any more. That is recorded."))
	}
	c.print(append(lines, block.Line("  n denies it, and the model reads why. Without an answer it is denied on "+q.Until.Local().Format("2 Jan 15:04")+"."))...)
}

package thread

import (
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// CodeInput is the code of an attempt that ended because its call has to know something
// of a person. It is never the call's end: the answer begins another attempt.
const CodeInput = "INPUT_REQUIRED"

// askForm is the kind of question that an MCP server asks.
const askForm = "form"

// asked folds that an attempt ended with a question.
func (c *Call) asked(p event.ToolFailed) {
	c.Phase, c.Input, c.Ask, c.Sample = CallRan, p.Input, nil, sampled{Allowed: c.Sample.Allowed}
	c.Rounds++
}

// waitsForInput reports whether an attempt of the call ended with a question that has
// no answer.
func (c *Call) waitsForInput() bool { return c.Phase == CallRan && c.Input != nil }

// asksInput asks a person what a call has to know. Where nobody can be asked the call
// goes on without an answer.
func (d *decision) asksInput(c *Call) {
	if c.Ask == nil && !d.rules.headless() {
		d.askPerson(c, "", event.ActionRequired{Kind: askForm, Prompt: c.Input.Prompt, Form: &c.Input.FormAsked})
	}
}

// heldByServer reports whether the call's server works on it and waits for an answer, until
// the attempt begins that brings it.
func (c *Call) heldByServer() bool {
	return c.Input != nil && c.Input.Held && (c.Phase == CallRan || c.Phase == CallJudged)
}

// heldCalls are the effects that calls want whose servers wait for answers, whatever
// keeps the next attempt from beginning: budget, other calls, a pause.
func (s *State) heldCalls() (effects []core.Effect) {
	for _, c := range s.Turn.calls() {
		if !c.heldByServer() {
			continue
		}
		ids := s.callIDs(c)
		if c.Ask != nil && c.Ask.Open {
			ids.Action = c.Ask.Action
		}
		effects = append(effects, core.HoldCall{IDs: ids, Attempt: c.Attempt, Name: c.Name, Rules: s.Turn.Rules})
	}
	return effects
}

// mayBegin reports whether an attempt of the call is to begin as far as people decide
// about it.
func (d *decision) mayBegin(c *Call) bool {
	switch {
	case c.wantsModel():
		return false
	case c.waitsForInput():
		return c.Ask == nil && (c.Sample.Done || d.rules.headless())
	}
	return c.Phase == CallJudged
}

// input is the answer that an attempt goes on with; nil: it begins.
func (c *Call) input() *core.Input {
	if c.Input == nil {
		return nil
	}
	in := &core.Input{State: c.Input.State, Action: "cancel"}
	if c.Sample.Done {
		if c.Sample.Output != nil {
			in.Action, in.Answer = "accept", c.Sample.Output
		}
		return in
	}
	if c.Ask != nil {
		switch c.Ask.Decision {
		case "answer":
			in.Action, in.Content = "accept", c.Ask.Message
		case "deny":
			in.Action = "decline"
		}
	}
	return in
}

package modeltest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// Tool is a stand-in for a tool: what the model reads, and whether the call failed.
type Tool func(args json.RawMessage) (text string, failed bool)

// complete is the tool whose call ends a conversation.
const complete = "complete_task"

// Conversation is the smallest agent loop around a provider: it asks, runs the
// calls one after the other, and asks again. It keeps no facts and decides
// nothing; it is there to try scripts and providers without a runtime.
type Conversation struct {
	Provider model.Provider
	Tools    map[string]Tool
	Attempts int // per request; 0 is 3
	Limit    int // answers; 0 is 1,000
	Messages []belay.Message
}

// Run continues until complete_task is called, whose arguments it returns, or an
// answer has no calls, where it returns nil.
func (c *Conversation) Run(ctx context.Context) (json.RawMessage, error) {
	limit := c.Limit
	if limit == 0 {
		limit = 1000
	}
	for range limit {
		answer, err := c.ask(ctx)
		if err != nil {
			return nil, err
		}
		c.Messages = append(c.Messages, answer)
		results := belay.Message{Role: belay.RoleTool}
		for _, p := range answer.Parts {
			switch {
			case p.Call == nil:
			case p.Call.Name == complete:
				return p.Call.Args, nil
			default:
				results.Parts = append(results.Parts, belay.Part{Result: c.call(p.Call)})
			}
		}
		if len(results.Parts) == 0 {
			return nil, nil
		}
		c.Messages = append(c.Messages, results)
	}
	return nil, fmt.Errorf("the conversation has no end after %d answers", limit)
}

func (c *Conversation) call(call *belay.ToolCall) *belay.ToolResult {
	r := &belay.ToolResult{ID: call.ID, Name: call.Name, Text: "unknown tool " + call.Name, Error: true}
	if tool := c.Tools[call.Name]; tool != nil {
		r.Text, r.Error = tool(call.Args)
	}
	return r
}

// ask makes attempts until one gives an answer.
func (c *Conversation) ask(ctx context.Context) (belay.Message, error) {
	attempts := c.Attempts
	if attempts == 0 {
		attempts = 3
	}
	for attempt := 1; ; attempt++ {
		m, err := c.attempt(ctx, attempt)
		if err == nil || attempt == attempts || !model.AsError(err).Retryable() {
			return m, err
		}
	}
}

func (c *Conversation) attempt(ctx context.Context, n int) (belay.Message, error) {
	m := belay.Message{Role: belay.RoleAssistant}
	text, stopped := "", false
	for chunk, err := range c.Provider.Stream(ctx, model.Request{Messages: c.Messages, Attempt: n}) {
		if err != nil {
			return m, err
		}
		text += chunk.Text
		stopped = stopped || chunk.Stop != ""
		if chunk.Call != nil {
			m.Parts = append(m.Parts, belay.Part{Call: c.wanted(chunk.Call)})
		}
	}
	if !stopped {
		return m, &model.Error{Class: "transient", Message: "the stream broke off"}
	}
	if text != "" {
		m.Parts = append([]belay.Part{{Text: text}}, m.Parts...)
	}
	return m, nil
}

// wanted is a call as a message holds it: arguments that aren't JSON become a string.
func (c *Conversation) wanted(call *model.Call) *belay.ToolCall {
	args := json.RawMessage(call.Args)
	if !json.Valid(args) {
		args, _ = json.Marshal(call.Args) // a string always has a form in JSON
	}
	id := belay.CallID(fmt.Sprintf("call_%d_%s", len(c.Messages), call.ID))
	return &belay.ToolCall{ID: id, Name: call.Name, Args: args}
}

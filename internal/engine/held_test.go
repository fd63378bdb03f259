package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/tool"
)

// held is a tool whose server waits while a person answers, and ends with the attempt
// that has the answer.
type held struct{ taken chan struct{} }

func (h held) Spec() tool.Spec {
	return tool.Spec{Name: "held", Doc: "ask", Input: noArgs, Effect: belay.AtMostOnce}
}

func (h held) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	if c.Input == nil {
		return tool.Result{}, &tool.NeedsInput{Text: "Who?", FormAsked: event.FormAsked{Server: "far", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}}
	}
	close(h.taken)
	return tool.Result{Text: "it is " + string(c.Input.Content)}, nil
}

func (h held) Hold(context.Context, tool.Call) error {
	return tool.Failf(tool.Lost, "GONE", "the server ended")
}

// person performs as others do, but a person answers as soon as a call is held, and the
// call's server ends just when the attempt with the answer has begun.
type person struct {
	engine.Performers
	b     *bench
	taken <-chan struct{}
}

type personOf struct {
	engine.Performer
	person
}

func (a person) Of(s belay.SessionID, stream belay.StreamID) engine.Performer {
	return personOf{a.Performers.Of(s, stream), a}
}

func (a personOf) Perform(ctx context.Context, run *engine.Run, eff core.Effect) []core.Fact {
	if h, ok := eff.(core.HoldCall); ok {
		yes := belay.RespondAction{Action: h.IDs.Action, Decision: "answer", Message: `{"name":"Ada"}`}
		if _, err := a.b.e.Submit(context.WithoutCancel(ctx), belay.Order{ID: "cmd_yes", Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: yes}); err != nil {
			a.b.t.Error(err)
			return nil
		}
		<-a.taken
		ctx = context.WithoutCancel(ctx) // what it had seen of it
	}
	return a.Performer.Perform(ctx, run, eff)
}

// TestAServerThatEndsWithTheAnswerEndsItsCallOnce: the call of a server that asked is
// ended by the attempt that has the answer, also when the server ends before whoever
// waited with it was told to stop.
// Guarantee: T113.
func TestAServerThatEndsWithTheAnswerEndsItsCallOnce(t *testing.T) {
	h := held{make(chan struct{})}
	b := newBench(t, "steps:\n  - calls: [{tool: held, args: {}}]\n"+done, waits, h)
	e, err := engine.New(engine.Config{Store: b.c.Store, Owner: b.c.Owner, Performers: person{b.e.Performers, b, h.taken}, Secrets: b.c.Secrets, Now: b.c.Now})
	if err != nil {
		t.Fatal(err)
	}
	b.e.Engine = e
	log := b.run()
	for _, f := range find[event.ToolFailed](log) {
		if f.Final {
			t.Errorf("attempt %d ended the call, too: %+v", f.Attempt, f.Problem)
		}
	}
	r := find[event.ToolResult](log)
	if len(r) != 2 || r[0].Output.Text != `it is {"name":"Ada"}` {
		t.Errorf("%+v", r)
	}
	for _, a := range find[event.ActionResolved](log) {
		if a.Decision != "answer" {
			t.Errorf("the question was answered, and is %s", a.Decision)
		}
	}
}

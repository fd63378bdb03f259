package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model/price"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/tool"
)

// manyChildren is a parent with many children, a cap on what they spend, and requests of which
// each may take at most a hundredth of it.
type manyChildren struct {
	children, each int // in all, and that one answer starts
	steps          int // of a child
	running        int
	background     bool
	turn           bool  // the cap is the turn's, not the session's
	output         int64 // tokens of an answer, of 1000
}

func (c manyChildren) script() string {
	var b strings.Builder
	usage := fmt.Sprintf("usage: {input: 100, output: %d}\n", c.output)
	b.WriteString("steps:\n")
	b.WriteString("  - when: {contains: PART-}\n    calls: [{tool: count, args: {n: '0'}}]\n    " + usage)
	for n := range c.steps - 2 {
		fmt.Fprintf(&b, "  - when: {tool: count, contains: 'it is %d.'}\n    calls: [{tool: count, args: {n: '%d'}}]\n    %s", n, n+1, usage)
	}
	fmt.Fprintf(&b, "  - when: {tool: count, contains: 'it is %d.'}\n    calls: [{tool: complete_task, args: {summary: done}}]\n    %s", c.steps-2, usage)
	for n := 0; n < c.children; n += c.each {
		var calls []string
		for k := n; k < min(c.children, n+c.each); k++ {
			calls = append(calls, fmt.Sprintf("{tool: spawn_agent, args: {task: 'PART-%d.', background: %v}}", k, c.background))
		}
		b.WriteString("  - calls: [" + strings.Join(calls, ", ") + "]\n    usage: {input: 100, output: 10}\n")
	}
	if c.background {
		b.WriteString("  - calls: [{tool: wait_agent, args: {all: true}}]\n    usage: {input: 100, output: 10}\n")
	}
	b.WriteString("  - calls: [{tool: complete_task, args: {summary: all}}]\n    usage: {input: 100, output: 10}\n")
	return b.String()
}

// TestManyChildrenSpendOneCap: 200 agents that want more than there is are asked for
// under a cap of a dollar, each of whose requests may take at most a cent. Nobody ends by
// the cap before most of it is spent, and it is never passed.
// Guarantee: E17.
func TestManyChildrenSpendOneCap(t *testing.T) {
	for name, c := range map[string]manyChildren{
		"eight at once":   {children: 200, each: 16, steps: 3, running: 8, background: true, output: 250},
		"all at once":     {children: 200, each: 40, steps: 9, running: 200, background: true, output: 250},
		"cap of the turn": {children: 200, each: 16, steps: 9, running: 8, output: 250, turn: true},
	} {
		t.Run(name, func(t *testing.T) { c.spend(t) })
	}
}

func (c manyChildren) spend(t *testing.T) {
	const limit = 1_000_000
	script, err := scripted.Parse("crowd", []byte(c.script()))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(append(append(tool.AgentTools(), tool.TurnTools()...), counter{})...)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		defer m.discard()
		m.script, m.tools = script, set
		p := m.boot(0)
		defer p.off()
		rules := thread.Rules{Workspace: m.dir, Boundary: thread.Boundary{Level: "L0", Why: "test", Network: "full"}, System: "test", Tokens: 100, Tools: set.Specs(),
			Settings: belay.Settings{Provider: "scripted", Mode: belay.ModeAcceptEdits, Approvals: belay.ApprovalsDeny, Limits: belay.DefaultLimits, Agents: belay.AgentLimits{Running: c.running, Total: c.children, Children: c.children}},
			Models:   thread.Models{Routes: []core.Candidate{{Candidate: event.Candidate{Route: event.Route{Provider: "scripted"}}, MaxOutput: 1000, Prices: &price.List{Rates: price.Rates{Output: 10_000_000}}}}}}
		rules.Settings.Limits.Steps = 1000
		if c.turn {
			rules.Settings.Limits.MicroUSD = limit
		} else {
			rules.Settings.Budget = belay.Amounts{MicroUSD: limit}
		}
		raw, _ := json.Marshal(rules)
		ref, err := p.h.Put(p.ctx, raw, "application/json")
		if err != nil {
			t.Fatal(err)
		}
		for i, cmd := range []belay.Command{belay.CreateSession{Workspace: m.dir, Settings: rules.Settings}, belay.SubmitWork{Thread: thr, Task: theJob, Turn: "turn_1", Text: belay.Content{Text: "go"}, Rules: ref}} {
			if err := p.h.Enqueue(p.ctx, belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_%d", i)), Principal: "user:ann", Time: time.Now(), Session: sess, Stream: sess.Stream(), Command: cmd}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.e.Session(p.ctx, sess, nil); err != nil {
			t.Fatal(err)
		}
		var facts []event.Envelope
		ends := map[string]int{}
		spent, first := int64(0), int64(-1)
		for r, err := range p.h.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			facts = append(facts, r.Event)
			switch d := r.Event.Data.(type) {
			case event.CostRecorded:
				spent += d.Amount
			case event.TurnCompleted:
				ends["completed"]++
			case event.TurnFailed:
				ends[string(d.Outcome)+" "+d.Code]++
				if first < 0 && d.Outcome == belay.OverBudget {
					first = spent
				}
			}
		}
		sums := coretest.Books(t, c, facts)
		t.Logf("%d facts; turns %v; %d were spent, %d when the first ended by it; steps of the budget: %v", len(facts), ends, spent, first, sums.Ops)
		if first < limit*9/10 || spent > limit {
			t.Errorf("%d were spent, %d when the first ended by it", spent, first)
		}
	})
}

// counter says the number that it is given.
type counter struct{}

func (counter) Spec() tool.Spec {
	return tool.Spec{Name: "count", Doc: "count", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"additionalProperties":false}`),
		Effect: belay.Pure, ReadOnly: true}
}

func (counter) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	var in struct{ N string }
	err := json.Unmarshal(c.Args, &in)
	return tool.Result{Text: "it is " + in.N + "."}, err
}

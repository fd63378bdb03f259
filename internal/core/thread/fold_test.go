package thread

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/coretest"
)

// longLog plays turns of read steps without any output until the log has n
// events, handing each to see. Every few steps an agent works in the background, and
// another one is refused.
func longLog(t testing.TB, n int, see func(event.Envelope)) *Decider {
	d := New(stream)
	rules, _ := json.Marshal(Rules{Workspace: "/ws", Tools: testTools(), Settings: belay.Settings{Provider: "scripted", Mode: belay.ModeDefault, Approvals: belay.ApprovalsWait}})
	ref := belay.Ref{Digest: belay.DigestOf(rules), Size: int64(len(rules))}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	add := func(facts ...core.Fact) {
		for _, f := range facts {
			now = now.Add(time.Millisecond)
			e := event.Envelope{Stream: stream, Seq: d.s.Seq + 1, Time: now, IDs: f.IDs, Data: f.Data}
			d.Apply(e)
			see(e)
		}
	}
	handle := func(c belay.Command) {
		facts, _, err := d.Handle(belay.Order{Principal: "user:ann", Session: "sess_1", Stream: stream, Command: c}, now)
		if err != nil {
			t.Fatal(err)
		}
		add(facts...)
	}
	handle(belay.OpenThread{Workspace: "/ws"})
	for step := 0; d.s.Seq < int64(n); {
		if d.s.Turn == nil {
			handle(belay.SubmitTurn{Turn: belay.TurnID(fmt.Sprint("turn_", d.s.Seq)), Kind: belay.TurnUser, Rules: ref})
		}
		for _, r := range d.Missing() {
			if err := d.Supply(r, rules); err != nil {
				t.Fatal(err)
			}
		}
		rd := d.Next(now)
		if len(rd.Decided) > 0 {
			add(rd.Decided...)
			continue
		}
		for _, eff := range rd.Effects {
			switch eff := eff.(type) {
			case core.CallModel:
				if step++; step%5 == 0 {
					add(agentsOf(eff.IDs, step)...)
				}
				add(core.Fact{IDs: eff.IDs, Data: answerOf(d, step)})
			case core.RunTool:
				dg := belay.DigestOf([]byte(eff.IDs.Call))
				add(core.Fact{IDs: eff.IDs, Data: event.ToolResult{Name: eff.Name, Attempt: eff.Attempt, Output: belay.Content{Text: "x"}, Digest: dg,
					Files: []event.FileSeen{{Path: fmt.Sprintf("dir/file-%d.go", step), Digest: string(dg)}}}})
			}
		}
	}
	return d
}

// agentsOf are an agent that ends and one that never began, as their parent's stream has them.
func agentsOf(ids belay.IDs, step int) (facts []core.Fact) {
	for i, o := range []belay.Outcome{belay.Completed, belay.Denied} {
		ids := belay.IDs{Session: ids.Session, Thread: ids.Thread, Turn: ids.Turn}
		ids.Call = belay.CallID(belay.DeriveID("call", stream, int64(step), i))
		ids.Subagent = SubagentOf(ids.Call)
		facts = append(facts, core.Fact{IDs: ids, Data: event.SubagentStatus{Status: event.SubagentPrepared, Agent: "explore", Background: true, Rules: &belay.Ref{}, Objective: &belay.Content{}}},
			core.Fact{IDs: ids, Data: event.SubagentStatus{Status: event.SubagentRequested}},
			core.Fact{IDs: ids, Data: event.SubagentStatus{Status: event.SubagentEnded, End: &belay.AttemptEnd{Outcome: o, Reason: "so it ended"}}})
	}
	return facts
}

// answerOf is a read of a new file, and now and then the end of the turn.
func answerOf(d *Decider, step int) event.ModelCompleted {
	name, args := "read", fmt.Sprintf(`{"path":"dir/file-%d.go"}`, step)
	if step%50 == 0 {
		name, args = "complete_task", `{"summary":"done"}`
	}
	raw := json.RawMessage(args)
	return event.ModelCompleted{Attempt: 1, Calls: []event.ModelCall{{
		ID: belay.CallID(belay.DeriveID("call", stream, d.s.Seq+1, 0)), Name: name, Args: raw, ArgsHash: belay.DigestOf(raw), Path: fmt.Sprintf("dir/file-%d.go", step),
	}}}
}

// What a thread keeps doesn't grow with its history.
// Guarantee: O12.
func TestTheStateOfAMillionEventsIsSmall(t *testing.T) {
	n := 1_000_000
	if raceEnabled {
		n = 100_000
	}
	d := longLog(t, n, func(event.Envelope) {})
	data, err := d.Save()
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 1<<20 || len(d.s.Children) > maxEndedChildren+200 {
		t.Errorf("the state after %d events has %d bytes, and knows %d agents", n, len(data), len(d.s.Children))
	}
	t.Logf("%d events: state of %d bytes", d.s.Seq, len(data))
}

// fold(all) = fold(snapshot + tail), wherever the snapshot is taken.
// Guarantee: O7.
func TestFoldFromEveryCut(t *testing.T) {
	n := 1000
	if raceEnabled {
		n = 300 // the work grows with the square
	}
	var log []event.Envelope
	longLog(t, n, func(e event.Envelope) { log = append(log, e) })
	coretest.FromEveryCut(t, func() core.Decider { return New(stream) }, log)
}

// Every type of the vocabulary can come along, in any state: folding is total.
// Guarantee: O8.
func TestFoldIsTotal(t *testing.T) {
	for _, typ := range event.Types() {
		p, err := event.Decode(typ.Name, typ.Version, []byte(`{}`))
		if err != nil {
			t.Fatalf("%s: %v", typ.Name, err)
		}
		for _, d := range []*Decider{New(stream), longLog(t, 20, func(event.Envelope) {})} {
			for _, ids := range []belay.IDs{{}, d.s.ids()} {
				d.Apply(event.Envelope{Stream: stream, Seq: d.s.Seq + 1, IDs: ids, Data: p})
				d.Next(time.Now())
			}
		}
	}
}

func BenchmarkFold(b *testing.B) {
	var log []event.Envelope
	longLog(b, 10_000, func(e event.Envelope) { log = append(log, e) })
	for b.Loop() {
		d := New(stream)
		for _, e := range log {
			d.Apply(e)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(log)), "ns/event")
}

func BenchmarkNext(b *testing.B) {
	d := longLog(b, 10_000, func(event.Envelope) {})
	now := time.Now()
	for b.Loop() {
		d.Next(now)
	}
}

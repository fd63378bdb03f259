package block_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
)

// TestALineOfAnAgentHasItsTimeAndCost: while it works, in what room there is, and at its
// end.
func TestALineOfAnAgentHasItsTimeAndCost(t *testing.T) {
	parent := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Call: "call_1", Subagent: "sub_1"}
	child := belay.IDs{Session: "sess_1", Thread: "thr_2", Turn: "turn_2"}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var f block.Fold
	apply := func(ids belay.IDs, stream belay.StreamID, after time.Duration, data event.Payload) {
		f.Apply(event.Envelope{Stream: stream, Time: start.Add(after), IDs: ids, Data: data})
	}
	apply(parent, "session/sess_1", 0, event.SubagentSpawned{Thread: "thr_2", Task: "task_2", Agent: "general", Nickname: "writer", Depth: 1,
		Objective: belay.Content{Text: "write a long text about everything that there is"}})
	apply(child, "thread/thr_2", time.Second, event.ToolStarted{Name: "exec", Attempt: 1})
	apply(child, "thread/thr_2", time.Second, event.CostRecorded{Cost: event.Cost{Amount: 12_300, Currency: "USD"}})
	live := f.Live()
	if len(live) != 1 {
		t.Fatalf("live blocks: %+v", live)
	}
	for width, want := range map[int]string{
		0:   "agent writer (general), write a long text about everything that there is, exec, 1 call, 1 min 15 s, $0.0123",
		100: "agent writer (general), write a long text about everything that …, exec, 1 call, 1 min 15 s, $0.0123",
		60:  "agent writer (general), exec, 1 call, 1 min 15 s, $0.0123",
	} {
		if got := block.Render(live[0], block.Options{Width: width, Now: start.Add(75 * time.Second)}); len(got) != 1 || got[0] != want {
			t.Errorf("width %d: got %q, want %q", width, got, want)
		}
	}
	apply(parent, "session/sess_1", 80*time.Second, event.SubagentCompleted{AttemptEnd: belay.AttemptEnd{Outcome: belay.Completed, Summary: belay.Content{Text: "written"},
		AttemptUse: belay.AttemptUse{Steps: 1, Calls: 1, Active: belay.Duration(79 * time.Second), MicroUSD: 12_300}}})
	ended := f.Take()
	if len(ended) != 1 || len(f.Live()) != 0 {
		t.Fatalf("ended: %+v", ended)
	}
	if got, want := block.Render(ended[0], block.Options{}), []string{"* agent writer (general), completed, 1 call, 1 min 19 s, $0.0123", "  written"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAnInterruptFoldsTheLinesOfAgents: the turn's follower leaves with the turn, and the
// agents' own ends come later.
func TestAnInterruptFoldsTheLinesOfAgents(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var f block.Fold
	apply := func(ids belay.IDs, stream belay.StreamID, after time.Duration, data event.Payload) {
		f.Apply(event.Envelope{Stream: stream, Time: start.Add(after), IDs: ids, Data: data})
	}
	one := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Call: "call_1", Subagent: "sub_1"}
	two := belay.IDs{Session: "sess_1", Thread: "thr_2", Turn: "turn_2", Call: "call_2", Subagent: "sub_2"}
	aside := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Call: "call_3", Subagent: "sub_3"}
	apply(one, "session/sess_1", 0, event.SubagentSpawned{Thread: "thr_2", Agent: "general", Nickname: "one", Depth: 1})
	apply(two, "session/sess_1", time.Second, event.SubagentSpawned{Thread: "thr_3", Agent: "general", Nickname: "two", Depth: 2})
	apply(aside, "session/sess_1", time.Second, event.SubagentSpawned{Thread: "thr_4", Agent: "general", Nickname: "aside", Depth: 1, Background: true})
	call := one
	call.Subagent = ""
	apply(call, "thread/thr_1", 3*time.Second, event.ToolFailed{Name: "spawn_agent", Attempt: 1, Final: true, Problem: event.Problem{Class: "cancelled", Code: "INTERRUPTED", Message: "the turn was interrupted"}})
	if live := f.Live(); len(live) != 1 || live[0].Agent.Name != "aside" {
		t.Errorf("live: %+v", live)
	}
	var got []string
	for _, b := range f.Take() {
		got = append(got, block.Render(b, block.Options{})...)
	}
	want := []string{"  x agent two (general), cancelled, 0 calls, 2.0 s", "    the turn was interrupted", "x agent one (general), cancelled, 0 calls, 3.0 s", "  the turn was interrupted"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	apply(one, "session/sess_1", 4*time.Second, event.SubagentFailed{AttemptEnd: belay.AttemptEnd{Outcome: belay.Cancelled}})
	if again := f.Take(); len(again) != 0 {
		t.Errorf("told twice: %+v", again)
	}
}

package story

import (
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// TestTokensThatNobodyReportedAreUnknown has an agent whose provider reports none, one of which
// one run has none, and one whose tokens are those of an agent that it started.
// Guarantee: M62.
func TestTokensThatNobodyReportedAreUnknown(t *testing.T) {
	f := NewAgentsFold(time.Time{}, time.Time{})
	used := belay.Usage{Input: 10, Output: 1, Reported: true}
	for _, st := range []event.TurnStats{
		{Agent: "deaf", Steps: 1}, {Agent: "half", Steps: 1}, {Agent: "half", Steps: 1, Usage: used}, {Agent: "idle"},
		{Agent: "lead", Steps: 1, Usage: used.Add(used), Below: event.AgentsUse{Usage: used, MicroUSD: 3}, Cost: event.CostSum{MicroUSD: 5, Priced: 1}},
	} {
		f.Ended(time.Time{}, st)
	}
	all := f.Sum()
	deaf, half, idle, lead := all[0], all[1], all[2], all[3]
	if deaf.Tokens != nil || deaf.Unknown != 1 || *half.Tokens != 11 || half.Unknown != 1 || idle.Tokens != nil || idle.Unknown != 0 {
		t.Errorf("%+v, %+v, %+v", deaf, half, idle)
	}
	if *lead.Tokens != 11 || lead.Cost.MicroUSD != 2 || *lead.Context != 0.1 {
		t.Errorf("%+v", lead)
	}
}

// TestAgentsAreCountedByTheirEnds has runs of two weeks, one before them, and a turn of no
// agent.
func TestAgentsAreCountedByTheirEnds(t *testing.T) {
	now := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	end := func(days int, p event.Payload) event.Envelope {
		return event.Envelope{Time: now.AddDate(0, 0, -days), Data: p}
	}
	used := func(o belay.Outcome, version string, ms int64) event.TurnStats {
		return event.TurnStats{Agent: "reviewer", Version: version, Outcome: o, ActiveMS: ms, Usage: belay.Usage{Input: 10, Output: 1, Reported: true}, Cost: event.CostSum{MicroUSD: 5, Priced: 1}}
	}
	again := used(belay.Failed, "1.1.0", 30)
	again.Retries, again.GateReds = 1, 2
	facts := []event.Envelope{
		end(20, event.TurnCompleted{Stats: used(belay.Completed, "1.0.0", 10)}),
		end(8, event.TurnCompleted{Stats: used(belay.Completed, "1.1.0", 20)}),
		end(1, event.TurnFailed{Outcome: belay.Failed, Stats: again}),
		end(1, event.TurnCompleted{Stats: event.TurnStats{ActiveMS: 1000}}),
	}
	for _, x := range []struct {
		since time.Time
		runs  int
	}{{time.Time{}, 3}, {now.AddDate(0, 0, -10), 2}, {now, 0}} {
		f := NewAgentsFold(x.since, now)
		for _, e := range facts {
			f.Apply(e)
		}
		all := f.Sum()
		if len(all) != 1 || all[0].Runs != x.runs || all[0].Week != (AgentWeek{Runs: 1, Tokens: 11, MicroUSD: 5}) || all[0].Before != (AgentWeek{Runs: 1, Completed: 1, Tokens: 11, MicroUSD: 5}) {
			t.Fatalf("since %v: %+v", x.since, all)
		}
		a := all[0]
		if x.runs == 3 && (a.Ends[belay.Completed] != 2 || a.Ends[belay.Failed] != 1 || a.Retries != 1 || a.GateReds != 2 || *a.Tokens != 33 || a.Cost.MicroUSD != 15 || a.P50MS != 20 || a.P95MS != 30 || *a.Context != 0.1 || len(a.Versions) != 2) {
			t.Errorf("all: %+v", a)
		}
	}
}

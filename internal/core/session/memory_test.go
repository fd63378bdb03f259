package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

const gib = 1 << 30

// TestWhatAgentsDeclareOfMemoryStaysWithinTheSetting: of agents that agents start.
func TestWhatAgentsDeclareOfMemoryStaysWithinTheSetting(t *testing.T) {
	b := family(t, belay.AgentLimits{MemoryShare: 50})
	spawn := func(id string, memory int64) (*Child, []core.Send) {
		_, sends := b.do(belay.SpawnSubagent{Subagent: belay.SubagentID(id), Parent: "thr_1", Turn: "turn_1", Call: belay.CallID("call_" + id), Agent: "a", Rules: rules,
			Memory: belay.MemoryNeed{Declared: memory, Machine: 8 * gib}})
		return b.d.s.Family.Find(belay.SubagentID(id)), sends
	}
	why := func(sends []core.Send) string {
		for _, s := range sends {
			if c, ok := s.Command.(belay.CreateTask); ok {
				return c.Reason
			}
		}
		return "-"
	}
	if c, _ := spawn("one", 3*gib); c.Waits {
		t.Error("the first one waits")
	}
	if c, sends := spawn("two", 2*gib); !c.Waits || why(sends) != "memory: agents-memory is 4GiB, and this agent declares 2GiB; others have the rest" {
		t.Errorf("the second one: %+v, %s", c, why(sends))
	}
	if c, _ := spawn("none", 0); c.Waits {
		t.Error("one that declares nothing waits")
	}
	if c, sends := spawn("huge", 5*gib); c != nil || sends[0].Command.(belay.TellParent).Code != "AGENT_LIMIT" {
		t.Errorf("one that declares more than all may: %+v", c)
	}
	spawn("three", 2*gib)
	if got := b.places(); got != nil {
		t.Errorf("started: %v", got)
	}
	b.endOf("one")
	if got := b.places(); !slices.Equal(got, []string{"two", "three"}) {
		t.Errorf("started when there was memory: %v", got)
	}
	b.do(belay.UpdateSession{Settings: belay.Settings{Agents: belay.AgentLimits{Memory: gib}}})
	if c, _ := spawn("four", gib); !c.Waits {
		t.Error("a lower setting doesn't count")
	}
}

// TestPlannedTasksWaitForMemory: those that declare some don't overtake, the others do.
func TestPlannedTasksWaitForMemory(t *testing.T) {
	b := newBench(t)
	b.do(belay.CreateSession{Workspace: "/ws", Settings: belay.Settings{Agents: belay.AgentLimits{Memory: 4 * gib}}})
	for i, memory := range []int64{3 * gib, 2 * gib, gib, 0} {
		id := belay.TaskID(fmt.Sprint("task_", i))
		b.do(belay.PlanTask{Task: id})
		b.do(belay.BeginTask{Task: id, Thread: belay.ThreadID(fmt.Sprint("thr_", i)), Turn: belay.TurnID(fmt.Sprint("turn_", i)), Rules: rules, Memory: belay.MemoryNeed{Declared: memory}})
	}
	status := func() string {
		for rd := b.d.Next(time.Time{}); len(rd.Decided) > 0; rd = b.d.Next(time.Time{}) {
			for _, f := range rd.Decided {
				b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
			}
		}
		var all []string
		for _, p := range b.d.s.Plan {
			all = append(all, p.Status)
		}
		return strings.Join(all, " ")
	}
	if got := status(); got != "running queued queued running" {
		t.Errorf("they are %s", got)
	}
	if got := b.d.s.Plan[1].Reason; got != "memory: agents-memory is 4GiB, and this agent declares 2GiB; others have the rest" {
		t.Errorf("it waits: %s", got)
	}
	b.do(belay.MarkTask{Task: "task_0", Status: "completed"})
	if got := status(); got != "completed running running running" {
		t.Errorf("then they are %s", got)
	}
}

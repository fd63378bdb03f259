package session

import (
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// A pause of a task holds its parts, the threads on which attempts run and the agents
// below those, and nothing else; what ends it is the task's end or a person.
// Guarantee: J3.
func TestAPauseOfATaskHoldsItsParts(t *testing.T) {
	b := planner(t)
	for _, id := range []belay.TaskID{"whole", "half", "other"} {
		if err := b.plan(id); err != nil {
			t.Fatal(err)
		}
	}
	b.do(belay.LinkTasks{Task: "half", Relation: belay.RelationParent, Target: "whole"})
	facts, sends := b.do(belay.PauseTask{Op: event.Paused, Task: "whole"})
	var to []belay.StreamID
	for _, s := range sends {
		to = append(to, s.To)
	}
	if len(facts) != 2 || !slices.Equal(to, []belay.StreamID{"task/whole", "task/half"}) {
		t.Fatalf("paused: %+v, told %v", facts, to)
	}
	if facts, _ := b.do(belay.PauseTask{Op: event.Paused, Task: "whole"}); facts != nil {
		t.Errorf("paused again: %v", facts)
	}
	b.begin("half")
	b.begin("other")
	b.moves()
	if s := b.d.s.Plan; s.Find("half").Begun || !s.Find("other").Begun {
		t.Errorf("begun: half %v, other %v", s.Find("half").Begun, s.Find("other").Begun)
	}
	b.do(belay.PauseTask{Op: event.Resumed, Task: "half"})
	b.moves()
	if !b.d.s.Plan.Find("half").Begun {
		t.Error("a part that is resumed doesn't start")
	}
	// Now its attempt runs: its thread is paused too, and stays so for the other task on it.
	_, sends = b.do(belay.PauseTask{Op: event.Paused, Task: "half"})
	if c, ok := sends[1].Command.(belay.PauseThread); !ok || sends[1].To != "thread/thr_1" || c.Op != event.Paused {
		t.Errorf("told: %+v", sends)
	}
	b.do(belay.PauseTask{Op: event.Paused, Task: "other"})
	if _, sends = b.do(belay.PauseTask{Op: event.Resumed, Task: "half"}); len(sends) != 1 {
		t.Errorf("the thread of two paused tasks goes on: %+v", sends)
	}
	if _, sends = b.do(belay.PauseTask{Op: event.Resumed, Task: "other"}); len(sends) != 2 || sends[1].To != "thread/thr_1" {
		t.Errorf("the last pause ends: %+v", sends)
	}
	if facts, _ := b.do(belay.PauseTask{Op: event.Resumed, Task: "other"}); facts != nil {
		t.Errorf("resumed again: %v", facts)
	}
}

// The wish to cancel is recorded for the whole subtree before anything is told, and the
// deepest are told first.
func TestACancelReachesTheDeepestFirst(t *testing.T) {
	b := planner(t)
	for _, id := range []belay.TaskID{"whole", "half", "quarter", "other"} {
		if err := b.plan(id); err != nil {
			t.Fatal(err)
		}
	}
	b.do(belay.LinkTasks{Task: "half", Relation: belay.RelationParent, Target: "whole"})
	b.do(belay.LinkTasks{Task: "quarter", Relation: belay.RelationParent, Target: "half"})
	b.begin("quarter")
	_, sends := b.do(belay.CancelTask{Task: "whole", Reason: "not wanted"})
	var to []string
	for _, s := range sends {
		to = append(to, s.To.ID())
		if c := s.Command.(belay.CancelTask); c.By != "user:ann" || c.Reason != "not wanted" {
			t.Errorf("told %+v", c)
		}
	}
	if !slices.Equal(to, []string{"quarter", "half", "whole"}) {
		t.Errorf("told %v", to)
	}
	b.wants()
	if facts, _ := b.do(belay.CancelTask{Task: "whole"}); facts != nil {
		t.Errorf("cancelled again: %v", facts)
	}
	if _, _, err := b.try(belay.CancelTask{Task: "nothing"}); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("a task that there isn't: %v", err)
	}
}

// A task leaves the lists seven days after its end, unless an open one has an edge to it.
func TestEndedTasksAreArchived(t *testing.T) {
	b := planner(t)
	for _, id := range []belay.TaskID{"done", "needed", "open"} {
		if err := b.plan(id); err != nil {
			t.Fatal(err)
		}
	}
	b.do(belay.LinkTasks{Task: "open", Relation: belay.RelationBlockedBy, Target: "needed"})
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, id := range []belay.TaskID{"done", "needed"} {
		b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, Time: end, IDs: b.d.s.ids(), Data: event.SessionUpdated{Planned: &event.PlannedTask{Task: id, Status: "completed"}}})
	}
	if rd := b.d.Next(end.Add(archiveAfter - 1)); len(rd.Decided) != 0 {
		t.Errorf("too soon: %v", rd.Decided)
	}
	rd := b.d.Next(end.Add(archiveAfter))
	if len(rd.Decided) != 1 || rd.Decided[0].IDs.Task != "done" {
		t.Fatalf("archived: %+v", rd.Decided)
	}
	b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, Time: end, IDs: rd.Decided[0].IDs, Data: rd.Decided[0].Data})
	if b.d.s.Plan.Find("done") != nil || len(b.d.Next(end.Add(archiveAfter)).Decided) != 0 {
		t.Error("it is archived again and again")
	}
}

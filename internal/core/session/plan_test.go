package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// planner is a session with planned tasks.
func planner(t *testing.T) *bench {
	b := newBench(t)
	b.create()
	return b
}

func (b *bench) plan(id belay.TaskID, blockers ...belay.Blocker) error {
	_, _, err := b.try(belay.PlanTask{Task: id, Objective: belay.Content{Text: "do it"}, BlockedBy: blockers})
	return err
}

func (b *bench) begin(id belay.TaskID) {
	b.t.Helper()
	b.do(belay.BeginTask{Task: id, Thread: "thr_1", Turn: belay.TurnID("turn_" + id), Rules: rules})
}

// moves lets the session do what follows, and returns what it tells tasks.
func (b *bench) moves() (told []string) {
	for rd := b.d.Next(time.Time{}); len(rd.Decided) > 0; rd = b.d.Next(time.Time{}) {
		for _, f := range rd.Decided {
			b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
		}
		for _, m := range rd.Sends {
			if m.To.Kind() == belay.KindTask {
				told = append(told, strings.TrimSuffix(belay.CommandName(m.Command), "_task")+" "+m.To.ID())
			}
		}
	}
	return told
}

func (b *bench) wants(want ...string) {
	b.t.Helper()
	if got := b.moves(); !slices.Equal(got, want) {
		b.t.Errorf("the session does %q, not %q", got, want)
	}
}

// Guarantee: J1.
func TestATaskStartsWhenNothingBlocksIt(t *testing.T) {
	b := planner(t)
	for _, id := range []belay.TaskID{"a", "b", "c"} {
		if err := b.plan(id); err != nil {
			t.Fatal(err)
		}
	}
	b.do(belay.LinkTasks{Task: "a", Relation: belay.RelationBlocks, Target: "b"})
	b.begin("b")
	b.wants()
	b.begin("a")
	b.wants("start a")
	b.do(belay.MarkTask{Task: "a", Status: "failed", Reason: "x"})
	b.wants("block b")
	if p := b.d.s.Plan.Find("b"); p.Status != "blocked" || p.Reason != "task a is failed" {
		t.Errorf("%+v", p)
	}
	b.do(belay.MarkTask{Task: "a", Status: "running"})
	b.wants()
	facts, _ := b.do(belay.MarkTask{Task: "a", Status: "completed"})
	if len(facts) != 2 || facts[1].(event.TaskDependencyUpdated).Op != event.EdgeMet {
		t.Errorf("a met edge: %+v", facts)
	}
	b.wants("start b")

	b.do(belay.MarkTask{Task: "b", Status: "cancelled"})
	b.do(belay.LinkTasks{Task: "c", Relation: belay.RelationBlockedBy, Target: "b", OnFailed: belay.OnFailedRun})
	b.begin("c")
	b.wants("start c")
	if err := b.plan("d", belay.Blocker{Task: "b", OnFailed: belay.OnFailedSkip}); err != nil {
		t.Fatal(err)
	}
	b.begin("d")
	b.wants("cancel d")
}

// Guarantee: J1.
func TestThePartsOfACancelledTaskAreCancelled(t *testing.T) {
	b := planner(t)
	for _, id := range []belay.TaskID{"whole", "part", "waits", "other"} {
		if err := b.plan(id); err != nil {
			t.Fatal(err)
		}
	}
	b.do(belay.LinkTasks{Task: "part", Relation: belay.RelationParent, Target: "whole"})
	b.do(belay.LinkTasks{Task: "part", Relation: belay.RelationChild, Target: "waits"})
	b.begin("other")
	b.begin("waits")
	b.wants("start waits", "start other")
	b.begin("part")
	b.do(belay.MarkTask{Task: "whole", Status: "cancelled"})
	b.wants("cancel part")
	b.do(belay.MarkTask{Task: "part", Status: "cancelled"})
	b.wants("cancel waits")
	b.do(belay.MarkTask{Task: "waits", Status: "completed"})
	b.wants()
}

// Guarantee: J1.
func TestBadEdgesAreRefused(t *testing.T) {
	b := planner(t)
	for _, id := range []belay.TaskID{"a", "b", "c"} {
		if err := b.plan(id); err != nil {
			t.Fatal(err)
		}
	}
	b.do(belay.LinkTasks{Task: "b", Relation: belay.RelationBlockedBy, Target: "a"})
	b.do(belay.LinkTasks{Task: "b", Relation: belay.RelationBlocks, Target: "c"})
	for _, c := range []struct {
		cmd  belay.Command
		code belay.Code
		says string
	}{
		{belay.LinkTasks{Task: "a", Relation: belay.RelationBlockedBy, Target: "c"}, belay.CodeCycle, "a → c → b → a"},
		{belay.LinkTasks{Task: "a", Relation: belay.RelationBlocks, Target: "a"}, belay.CodeCycle, "a → a"},
		{belay.LinkTasks{Task: "a", Relation: belay.RelationParent, Target: "a"}, belay.CodeCycle, "a → a"},
		{belay.PlanTask{Task: "x", BlockedBy: []belay.Blocker{{Task: "x"}}}, belay.CodeCycle, "x → x"},
		{belay.PlanTask{Task: "x", BlockedBy: []belay.Blocker{{Task: "elsewhere"}}}, belay.CodeNotFound, "elsewhere"},
		{belay.LinkTasks{Task: "elsewhere", Relation: belay.RelationBlocks, Target: "a"}, belay.CodeNotFound, "elsewhere"},
		{belay.LinkTasks{Task: "a", Relation: belay.RelationBlockedBy, Target: "c", Remove: true}, belay.CodeNotFound, "no edge"},
		{belay.BeginTask{Task: "elsewhere", Turn: "t"}, belay.CodeNotFound, "elsewhere"},
	} {
		if _, _, err := b.try(c.cmd); belay.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.cmd, err)
		}
	}
	if facts, _ := b.do(belay.LinkTasks{Task: "b", Relation: belay.RelationBlockedBy, Target: "a"}); facts != nil {
		t.Errorf("an edge that is there: %v", facts)
	}
	b.begin("a")
	b.moves()
	if _, _, err := b.try(belay.LinkTasks{Task: "a", Relation: belay.RelationBlockedBy, Target: "c"}); belay.CodeOf(err) != belay.CodeBadState {
		t.Errorf("an edge of a task that runs: %v", err)
	}
	b.do(belay.LinkTasks{Task: "b", Relation: belay.RelationBlockedBy, Target: "a", Remove: true})
	b.begin("b")
	b.wants("start b")
}

// model is what a plan must do: edges, what was asked for, and how tasks stand.
type model struct {
	edges  map[string]string // FROM>BLOCKER to what happens if the blocker fails
	status map[string]string
}

func (m *model) reaches(from, to string) bool {
	return from == to || slices.ContainsFunc(ids, func(via string) bool { _, is := m.edges[from+">"+via]; return is && m.reaches(via, to) })
}

func (m *model) mayStart(id string) bool {
	return m.status[id] == "queued" && !slices.ContainsFunc(ids, func(b string) bool {
		on, is := m.edges[id+">"+b]
		return is && m.status[b] != "completed" && (m.status[b] != "failed" || on != belay.OnFailedRun)
	})
}

var ids = []string{"a", "b", "c", "d", "e", "f", "g"}

// TestRandomPlansKeepTheirOrder plays random graphs in random orders: no task starts
// before its blockers, each that may start does, and every cycle is named.
// Guarantee: J1.
func TestRandomPlansKeepTheirOrder(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		b, m := planner(t), &model{map[string]string{}, map[string]string{}}
		for _, id := range ids {
			if err := b.plan(belay.TaskID(id)); err != nil {
				t.Fatal(err)
			}
			m.status[id] = "accepted"
		}
		for step := range 80 {
			what := fmt.Sprintf("seed %d step %d", seed, step)
			one, two := ids[rnd.IntN(len(ids))], ids[rnd.IntN(len(ids))]
			switch rnd.IntN(4) {
			case 0:
				if m.status[one] != "accepted" && m.status[one] != "queued" {
					continue
				}
				on := []string{belay.OnFailedBlock, belay.OnFailedRun}[rnd.IntN(2)]
				_, _, err := b.try(belay.LinkTasks{Task: belay.TaskID(one), Relation: belay.RelationBlockedBy, Target: two, OnFailed: on})
				if circle := m.reaches(two, one); circle != (belay.CodeOf(err) == belay.CodeCycle) || circle != (err != nil) {
					t.Fatalf("%s: %s after %s: %v", what, one, two, err)
				} else if circle {
					if way := err.Error(); !strings.Contains(way, one+" → "+two) && one != two || !strings.Contains(way, " → "+one) {
						t.Fatalf("%s: the cycle of %s and %s is named %q", what, one, two, way)
					}
				} else {
					m.edges[one+">"+two] = on
				}
			case 1:
				if m.status[one] == "accepted" {
					b.begin(belay.TaskID(one))
					m.status[one] = "queued"
				}
			case 2:
				if _, is := m.edges[one+">"+two]; is {
					b.do(belay.LinkTasks{Task: belay.TaskID(one), Relation: belay.RelationBlockedBy, Target: two, Remove: true})
					delete(m.edges, one+">"+two)
				}
			case 3:
				if m.status[one] == "running" {
					m.status[one] = []string{"completed", "completed", "failed"}[rnd.IntN(3)]
					b.do(belay.MarkTask{Task: belay.TaskID(one), Status: m.status[one]})
				}
			}
			for _, told := range b.moves() {
				id, starts := strings.CutPrefix(told, "start ")
				if starts && !m.mayStart(id) {
					t.Fatalf("%s: %s starts, with %v and %v", what, id, m.edges, m.status)
				}
				if starts {
					m.status[id] = "running"
				}
			}
			if i := slices.IndexFunc(ids, m.mayStart); i >= 0 {
				t.Fatalf("%s: %s doesn't start, with %v and %v", what, ids[i], m.edges, m.status)
			}
		}
	}
}

// A task of parts ends when they have, well if enough of them did.
func TestATaskOfPartsEndsWithThem(t *testing.T) {
	for well, want := range map[int]string{5: "complete whole", 4: "complete whole", 3: "fail whole"} {
		b := planner(t)
		if _, _, err := b.try(belay.PlanTask{Task: "whole", Objective: belay.Content{Text: "all"}, Plan: belay.TaskPlan{CompleteAt: 0.8}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.try(belay.BeginTask{Task: "whole", Thread: "thr_1", Turn: "turn_w", Rules: rules}); belay.CodeOf(err) != belay.CodeBadState {
			t.Errorf("a task of parts is started: %v", err)
		}
		for i := range 5 {
			b.wants()
			id := belay.TaskID(fmt.Sprint("part", i))
			if _, _, err := b.try(belay.PlanTask{Task: id, Parent: "whole", Objective: belay.Content{Text: "one"}}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			status := "failed"
			if i < well {
				status = "completed"
			}
			b.do(belay.MarkTask{Task: belay.TaskID(fmt.Sprint("part", i)), Status: status})
		}
		b.wants(want)
		b.wants()
	}
}

// Of tasks that can start, as many run as agents may; one that waits long goes before
// those of a higher priority.
func TestTasksWaitForAPlaceAndAge(t *testing.T) {
	b := planner(t)
	b.d.s.Settings.Agents.Running = 1
	high := 1
	for _, id := range []belay.TaskID{"first", "old", "young"} {
		if err := b.plan(id); err != nil {
			t.Fatal(err)
		}
	}
	b.do(belay.MarkTask{Task: "young", Status: "accepted", Priority: &high})
	b.begin("first")
	b.wants("start first")
	b.begin("old")
	b.begin("young")
	b.wants()
	b.d.s.Plan.Find("old").Since = time.Unix(0, 0)
	b.d.s.Plan.Find("young").Since = time.Unix(0, 0).Add(11 * time.Minute)
	if rd := b.d.Next(time.Unix(0, 0).Add(time.Hour)); len(rd.Decided) > 0 {
		t.Errorf("%d facts while no place is free", len(rd.Decided))
	}
	b.do(belay.MarkTask{Task: "first", Status: "completed"})
	for _, c := range []struct {
		now  time.Duration
		want string
	}{{4 * time.Minute, "young"}, {12 * time.Minute, "old"}} {
		rd := b.d.Next(time.Unix(0, 0).Add(c.now))
		got := ""
		for _, m := range rd.Sends {
			if m.To.Kind() == belay.KindTask {
				got = m.To.ID()
			}
		}
		if got != c.want {
			t.Errorf("after %v %q starts, not %q", c.now, got, c.want)
		}
	}
}

// What a task's input is made of brings the taint of the conversations it came from; a task
// that only begins later is told nothing of them.
// Guarantee: F28.
func TestAResultBringsItsTaintIntoTheNextTask(t *testing.T) {
	for _, bound := range []bool{true, false} {
		b := newBench(t)
		b.do(belay.CreateSession{Workspace: "/ws"})
		plan := belay.TaskPlan{}
		if bound {
			plan.Input = &rules
		}
		b.do(belay.PlanTask{Task: "task_a"})
		b.do(belay.PlanTask{Task: "task_b", Plan: plan, BlockedBy: []belay.Blocker{{Task: "task_a"}}})
		b.do(belay.BeginTask{Task: "task_b", Thread: "thr_b", Turn: "turn_b", Rules: rules})
		b.do(belay.MarkTask{Task: "task_a", Status: "completed", Taint: []string{"web:example.org"}})
		sends := b.decides()
		if bound {
			if len(sends) > 0 {
				t.Fatalf("before its input is made: %v", sends)
			}
			e := event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: belay.IDs{Session: "sess_1"}, Data: event.SessionUpdated{Planned: &event.PlannedTask{Task: "task_b", Status: "queued", Text: &belay.Content{Text: "x"}}}}
			b.d.Apply(e)
			sends = b.decides()
		}
		var got []string
		for _, s := range sends {
			if c, is := s.Command.(belay.StartTask); is {
				got = append(c.Taint, "started")
			}
		}
		if want := map[bool]string{true: "[web:example.org started]", false: "[started]"}[bound]; fmt.Sprint(got) != want {
			t.Errorf("bound %v: %v", bound, got)
		}
	}
}

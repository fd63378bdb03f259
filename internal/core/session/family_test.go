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

// family is a session whose main thread works, under some limits.
func family(t *testing.T, l belay.AgentLimits) *bench {
	b := newBench(t)
	b.do(belay.CreateSession{Workspace: "/ws", Settings: belay.Settings{Agents: l}})
	b.do(belay.SubmitWork{Thread: "thr_1", Task: "task_1", Turn: "turn_1", Rules: rules})
	return b
}

// spawn asks for a child and returns it; nil and a reason when it was refused.
func (b *bench) spawn(id string, parent belay.ThreadID, background bool, priority int) (*Child, string) {
	b.t.Helper()
	_, sends := b.do(belay.SpawnSubagent{Subagent: belay.SubagentID(id), Parent: parent, Turn: "turn_1", Call: belay.CallID("call_" + id), Agent: "general",
		Text: belay.Content{Text: id}, Rules: rules, Background: background, Priority: priority})
	c := b.d.s.Family.Find(belay.SubagentID(id))
	if c == nil {
		told := sends[0].Command.(belay.TellParent)
		return nil, told.Code + ": " + told.End.Reason
	}
	return c, ""
}

// places lets the session start those that wait, and returns them.
func (b *bench) places() (started []string) {
	for rd := b.d.Next(time.Time{}); len(rd.Decided) > 0; rd = b.d.Next(time.Time{}) {
		for _, f := range rd.Decided {
			started = append(started, string(f.IDs.Subagent))
			b.d.Apply(event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
		}
	}
	return started
}

func (b *bench) endOf(id string) {
	b.do(belay.EndSubagent{Subagent: belay.SubagentID(id), End: belay.AttemptEnd{Outcome: belay.Completed}})
}

// Guarantee: F2.
func TestAChildTooManyIsRefused(t *testing.T) {
	b := family(t, belay.AgentLimits{Depth: 2, Children: 2, Total: 4})
	refused := func(id string, parent belay.ThreadID, limit string) {
		t.Helper()
		if c, why := b.spawn(id, parent, false, 0); c != nil || !strings.HasPrefix(why, "AGENT_LIMIT: "+limit+" is ") {
			t.Errorf("%s: %+v %q", id, c, why)
		}
		if p, ok := b.log[len(b.log)-1].Data.(event.SubagentFailed); !ok || p.Code != "AGENT_LIMIT" {
			t.Errorf("%s: the refusal is %+v", id, b.log[len(b.log)-1])
		}
	}
	one, _ := b.spawn("a", "thr_1", false, 0)
	two, _ := b.spawn("b", one.Thread, false, 0)
	refused("c", two.Thread, "agents-depth")
	b.spawn("d", "thr_1", false, 0)
	refused("e", "thr_1", "agents-children")
	b.endOf("d")
	if c, why := b.spawn("f", "thr_1", false, 0); c == nil {
		t.Errorf("after one has ended: %s", why)
	}
	b.endOf("f")
	refused("g", "thr_1", "agents-total")
	if facts, _ := b.do(belay.SpawnSubagent{Subagent: "a", Parent: "thr_1"}); facts != nil {
		t.Errorf("asked again: %v", facts)
	}
	if _, _, err := b.try(belay.SpawnSubagent{Subagent: "x", Parent: "thr_of_another"}); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("a thread of another session: %v", err)
	}
}

// Guarantee: F3.
func TestChildrenThatWaitForChildrenNeedNoPlace(t *testing.T) {
	b := family(t, belay.AgentLimits{Running: 2})
	var parents []belay.ThreadID
	for i := range 5 { // each of them waits for a child of its own
		c, _ := b.spawn(fmt.Sprint("p", i), "thr_1", false, 0)
		parents = append(parents, c.Thread)
		if c.Waits != (i >= 2) {
			t.Errorf("child %d waits: %v", i, c.Waits)
		}
	}
	running := []string{"p0", "p1"}
	ended := 0
	for len(running) > 0 && ended < 20 {
		id := running[0]
		running = running[1:]
		if i := slices.Index(parents, b.d.s.Family.Find(belay.SubagentID(id)).Thread); strings.HasPrefix(id, "p") && b.d.s.Family.Find(belay.SubagentID("c"+id)) == nil {
			if c, why := b.spawn("c"+id, parents[i], false, 0); c == nil {
				t.Fatal(why)
			} else if !c.Waits {
				running = append(running, "c"+id)
			}
			running = append(running, b.places()...)
			continue
		}
		b.endOf(id)
		ended++
		if strings.HasPrefix(id, "c") {
			running = append(running, strings.TrimPrefix(id, "c"))
		}
		running = append(running, b.places()...)
	}
	if ended != 10 {
		t.Errorf("%d of 10 ended: %+v", ended, b.d.s.Family)
	}
}

func TestAPlaceGoesByPriorityThenAge(t *testing.T) {
	b := family(t, belay.AgentLimits{Running: 1})
	for i, priority := range []int{0, 1, 5, 5, 0} {
		b.spawn(fmt.Sprint(i), "thr_1", true, priority)
	}
	var order []string
	b.endOf("0")
	for next := b.places(); len(next) > 0; next = b.places() {
		order = append(order, next...)
		b.endOf(next[0])
	}
	if got := strings.Join(order, " "); got != "2 3 1 4" {
		t.Errorf("started %s", got)
	}
}

func TestAClosedChildEndsWithThoseBelow(t *testing.T) {
	b := family(t, belay.AgentLimits{})
	one, _ := b.spawn("one", "thr_1", true, 0)
	two, _ := b.spawn("two", one.Thread, true, 0)
	b.spawn("three", two.Thread, true, 0)
	b.spawn("four", one.Thread, true, 0)
	b.spawn("five", "thr_1", true, 0)
	b.endOf("four")
	_, sends := b.do(belay.CloseSubagent{Subagent: "one", Reason: "enough"})
	var got []string
	for _, s := range sends {
		for _, c := range b.d.s.Family {
			if c.Task.Stream() == s.To && s.Command == (belay.CancelTask{Reason: "enough"}) {
				got = append(got, string(c.ID))
			}
		}
	}
	if strings.Join(got, " ") != "three two one" {
		t.Errorf("told to end: %v", got)
	}
	if facts, sends := b.do(belay.CloseSubagent{Subagent: "one"}); facts != nil || sends != nil {
		t.Errorf("closed again: %v %v", facts, sends)
	}
	if _, _, err := b.try(belay.CloseSubagent{Subagent: "none"}); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("one that isn't there: %v", err)
	}
}

// Guarantee: F2.
func TestAChildThatEndedGoesOnWithinTheLimits(t *testing.T) {
	b := family(t, belay.AgentLimits{Children: 1, Running: 1, Total: 2})
	one, _ := b.spawn("one", "thr_1", false, 0)
	send := belay.SendSubagentInput{Subagent: "one", Turn: "turn_x", Text: belay.Content{Text: "more"}, Parent: "thr_1", Call: "call_x"}
	_, sends := b.do(send)
	if c := sends[0].Command.(belay.ContinueTask); len(sends) != 2 || sends[0].To != one.Task.Stream() || c.Queue != belay.QueueSteer || c.Input != 1 || c.Rules != rules {
		t.Errorf("to one that works: %+v", sends)
	}
	// An end from before the text is none.
	if facts, _ := b.do(belay.EndSubagent{Subagent: "one", End: belay.AttemptEnd{Outcome: belay.Completed}}); facts != nil {
		t.Errorf("it ended before it was told: %+v", facts)
	}
	use := belay.AttemptUse{Steps: 2, Calls: 1}
	b.do(belay.EndSubagent{Subagent: "one", Inputs: 1, End: belay.AttemptEnd{Outcome: belay.Completed, AttemptUse: use}})
	b.spawn("two", "thr_1", true, 0)
	_, sends = b.do(send)
	if m := sends[0].Command.(belay.TellParent); len(sends) != 1 || m.Code != "AGENT_LIMIT" || m.Call != "call_x" || b.d.s.Family[0].open() {
		t.Errorf("no place among the children: %+v", sends)
	}
	send.Call, send.Parent = "", ""
	if _, _, err := b.try(send); belay.CodeOf(err) != belay.CodeBadState || !strings.Contains(err.Error(), "AGENT_LIMIT") {
		t.Errorf("of a person: %v", err)
	}
	b.endOf("two")
	send.Interrupt = true
	_, sends = b.do(send)
	if c := sends[0].Command.(belay.ContinueTask); len(sends) != 2 || c.Input != 2 || c.Wait || c.Queue != belay.QueueInterrupt || sends[1].Command != (belay.TellParent{Subagent: "one", Again: true}) {
		t.Errorf("it goes on: %+v", sends)
	}
	b.do(belay.EndSubagent{Subagent: "one", Inputs: 2, End: belay.AttemptEnd{Outcome: belay.Completed, AttemptUse: use}})
	if c := b.d.s.Family[0]; c.open() || c.AttemptUse != use.Plus(use) {
		t.Errorf("it used %+v in all", c.AttemptUse)
	}
	b.do(belay.CloseSubagent{Subagent: "one"})
	if _, _, err := b.try(belay.SendSubagentInput{Subagent: "none", Turn: "t"}); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("none: %v", err)
	}
	b.d.s.Settings.Agents.Children = 2
	b.d.s.Settings.Agents.Total = 3
	b.spawn("three", "thr_1", true, 0)
	b.do(belay.CloseSubagent{Subagent: "three"})
	if _, _, err := b.try(belay.SendSubagentInput{Subagent: "three", Turn: "t"}); err == nil || !strings.Contains(err.Error(), "AGENT_CLOSED") {
		t.Errorf("one that was closed: %v", err)
	}
}

// Guarantee: F6.
func TestAPauseHoldsAllBelow(t *testing.T) {
	b := family(t, belay.AgentLimits{Running: 2})
	one, _ := b.spawn("one", "thr_1", true, 0)
	b.spawn("two", one.Thread, true, 0)
	waits, _ := b.spawn("waits", one.Thread, true, 5)
	b.spawn("beside", "thr_1", true, 0)
	facts, sends := b.do(belay.PauseSubagent{Subagent: "one"})
	if len(facts) != 3 || len(sends) != 3 || !waits.Waits {
		t.Fatalf("paused: %+v %+v", facts, sends)
	}
	if facts, sends := b.do(belay.PauseSubagent{Subagent: "one"}); facts != nil || sends != nil {
		t.Errorf("paused again: %v %v", facts, sends)
	}
	// One whose call was on the way begins paused; the place that comes free isn't for
	// one that is paused.
	three, _ := b.spawn("three", one.Thread, true, 0)
	if !b.d.s.Family.Find("three").Paused {
		t.Errorf("begun below a paused one: %+v", three)
	}
	b.endOf("two")
	if got := strings.Join(b.places(), " "); got != "beside" {
		t.Errorf("started %q", got)
	}
	b.do(belay.ResumeSubagent{Subagent: "one"})
	b.endOf("beside")
	if got := strings.Join(b.places(), " "); got != "waits" {
		t.Errorf("after it was resumed %q started", got)
	}
	b.endOf("one")
	if _, _, err := b.try(belay.PauseSubagent{Subagent: "one"}); belay.CodeOf(err) != belay.CodeBadState {
		t.Errorf("one that has ended: %v", err)
	}
	if _, _, err := b.try(belay.ResumeSubagent{Subagent: "none"}); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("none: %v", err)
	}
}

// In whatever order children come and end, no limit is exceeded, no place stays free
// while a child waits, and each ends once.
// Guarantee: F2, F3.
func TestFamiliesStayWithinTheirLimits(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := belay.AgentLimits{Depth: 1 + rng.IntN(3), Children: 1 + rng.IntN(4), Running: 1 + rng.IntN(3), Total: 5 + rng.IntN(20)}
		b := family(t, l)
		for step := range 80 {
			s := &b.d.s
			threads := s.All()
			var open []string
			for _, c := range s.Family {
				if c.open() && !c.Waits {
					open = append(open, string(c.ID))
				}
			}
			switch {
			case rng.IntN(2) == 0 || len(open) == 0:
				b.spawn(fmt.Sprint(step), threads[rng.IntN(len(threads))], rng.IntN(2) == 0, rng.IntN(3))
			default:
				b.endOf(open[rng.IntN(len(open))])
			}
			b.places()
			waits := s.Family.count(func(c *Child) bool { return c.Waits && c.open() })
			switch {
			case len(s.Family) > l.Total:
				t.Fatalf("seed %d: %d children of %d", seed, len(s.Family), l.Total)
			case waits > 0 && s.Family.working() < l.Running:
				t.Fatalf("seed %d: %d wait and %d of %d places are taken", seed, waits, s.Family.working(), l.Running)
			}
			for _, th := range threads {
				if n := s.Family.count(func(c *Child) bool { return c.Parent == th && c.open() }); n > l.Children || s.Family.depth(th) > l.Depth {
					t.Fatalf("seed %d: %s has %d open children at depth %d, limits %+v", seed, th, n, s.Family.depth(th), l)
				}
			}
		}
	}
}

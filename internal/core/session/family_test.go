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
	"github.com/belay-run/belay/internal/core"
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

// TestAStricterModeOrBoundaryHoldsForChildrenToo: for those that work, those that may be told more,
// and those that come, whatever the rules say that their parents had.
// Guarantee: F4.
func TestAStricterModeOrBoundaryHoldsForChildrenToo(t *testing.T) {
	b := family(t, belay.AgentLimits{})
	told := func(sends []core.Send) string {
		var all []string
		for _, s := range sends {
			if m, ok := s.Command.(belay.LimitMode); ok {
				all = append(all, strings.TrimSpace(fmt.Sprint(s.To, " ", m.Mode, " ", m.Boundary)))
			}
		}
		return strings.Join(all, ", ")
	}
	set := func(m belay.Mode, boundary string) string {
		settings := b.d.s.Settings
		settings.Mode, settings.Boundary = m, boundary
		_, sends := b.do(belay.UpdateSession{Settings: settings})
		return told(sends)
	}
	works, _ := b.spawn("works", "thr_1", true, 0)
	one := works.Thread.Stream()
	below, _ := b.spawn("below", works.Thread, false, 0)
	two := below.Thread.Stream()
	b.endOf("below")
	if got, want := set(belay.ModePlan, ""), fmt.Sprintf("%s plan, %s plan", one, two); got != want {
		t.Errorf("told: %s, want %s", got, want)
	}
	if got := set(belay.ModePlan, ""); got != "" {
		t.Errorf("told without a change: %s", got)
	}
	_, sends := b.do(belay.SpawnSubagent{Subagent: "late", Parent: "thr_1", Agent: "general", Rules: rules})
	late, _ := OfSubagent("late")
	if got, want := told(sends), fmt.Sprintf("%s plan", late.Stream()); got != want {
		t.Errorf("a new one is told: %s, want %s", got, want)
	}
	third := late.Stream()
	if got, want := set(belay.ModePlan, "open"), fmt.Sprintf("%s plan open, %s plan open, %s plan open", one, two, third); got != want {
		t.Errorf("told: %s, want %s", got, want)
	}
	if got, want := set(belay.ModeAuto, ""), fmt.Sprintf("%s auto workspace-write, %s auto workspace-write, %s auto workspace-write", one, two, third); got != want {
		t.Errorf("told: %s, want %s", got, want)
	}
}

func TestAnAgentKnowsItsTreeAndItsPlaces(t *testing.T) {
	b := family(t, belay.AgentLimits{Depth: 2, Children: 2, Total: 4, Running: 3})
	one, _ := b.spawn("one", "thr_1", true, 0)
	below, _ := b.spawn("below", one.Thread, true, 0)
	two, _ := b.spawn("two", "thr_1", true, 0)
	f := b.d.s.Family
	if !f.Below(below.Thread, "thr_1") || !f.Below(below.Thread, one.Thread) || f.Below(below.Thread, two.Thread) || f.Below(one.Thread, below.Thread) || f.Below("thr_1", "thr_1") {
		t.Error("the tree is another one")
	}
	for thread, want := range map[belay.ThreadID]Places{"thr_1": {2, 0, 0, 1}, one.Thread: {1, 1, 0, 1}, below.Thread: {0, 2, 0, 1}} {
		if got := b.d.s.Places(thread, "turn_1"); got != want {
			t.Errorf("%s: %+v, want %+v", thread, got, want)
		}
	}
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
			b.do(belay.ReturnGrant{Thread: parents[i], Place: true})
			running = append(running, b.places()...)
			continue
		}
		b.endOf(id)
		ended++
		if parent, of := strings.CutPrefix(id, "c"); of {
			b.do(belay.AskGrants{Thread: b.d.s.Family.Find(belay.SubagentID(parent)).Thread, Place: true})
			running = append(running, parent)
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
	if _, _, err := b.try(belay.SendSubagentInput{Subagent: "1", Turn: "t"}); belay.CodeOf(err) != belay.CodeAgentWaits {
		t.Errorf("one that waits for a place takes input: %v", err)
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
	send := belay.SendSubagentInput{Subagent: "one", Turn: "turn_x", Text: belay.Content{Text: "more"}, Parent: "thr_1", Call: "call_x",
		Limits: belay.Limits{Steps: 7, Tokens: 1}} // all that its parent has beside what it lent
	_, sends := b.do(send)
	if c := sends[0].Command.(belay.ContinueTask); len(sends) != 2 || sends[0].To != one.Task.Stream() || c.Queue != belay.QueueSteer || c.Input != 1 || c.Rules != rules || !c.Rest || c.Limits != (belay.Limits{Steps: 7}) {
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
	if _, _, err := b.try(send); belay.CodeOf(err) != belay.CodeAgentLimit {
		t.Errorf("of a person: %v", err)
	}
	b.endOf("two")
	send.Interrupt = true
	_, sends = b.do(send)
	if c := sends[0].Command.(belay.ContinueTask); len(sends) != 2 || c.Input != 2 || c.Wait || c.Rest || c.Queue != belay.QueueInterrupt || sends[1].Command != (belay.TellParent{Subagent: "one", Again: true}) {
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
	if _, _, err := b.try(belay.SendSubagentInput{Subagent: "three", Turn: "t"}); belay.CodeOf(err) != belay.CodeAgentClosed {
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
			case len(open) > 0 && rng.IntN(4) == 0: // one begins to wait, or goes on
				if c := s.Family.Find(belay.SubagentID(open[rng.IntN(len(open))])); c.Rests {
					b.do(belay.AskGrants{Thread: c.Thread, Place: true})
				} else {
					b.do(belay.ReturnGrant{Thread: c.Thread, Place: true})
				}
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
			case waits > 0 && s.working() < l.Running:
				t.Fatalf("seed %d: %d wait and %d of %d places are taken", seed, waits, s.working(), l.Running)
			}
			for _, th := range threads {
				if n := s.Family.count(func(c *Child) bool { return c.Parent == th && c.open() }); n > l.Children || s.Family.depth(th) > l.Depth {
					t.Fatalf("seed %d: %s has %d open children at depth %d, limits %+v", seed, th, n, s.Family.depth(th), l)
				}
			}
		}
	}
}

// A child is told the way to it from the main thread, so that its questions say whose they are.
// Guarantee: F10.
func TestAChildKnowsItsLineage(t *testing.T) {
	b := family(t, belay.AgentLimits{Depth: 12})
	at, n := belay.ThreadID("thr_1"), 0
	for n = range 12 {
		c, _ := b.spawn(fmt.Sprint("c", n), at, true, 0)
		at = c.Thread
		i := slices.IndexFunc(b.sent, func(s core.Send) bool {
			_, opens := s.Command.(belay.OpenThread)
			return opens && s.To == at.Stream()
		})
		way := b.sent[i].Command.(belay.OpenThread).Lineage
		if len(way) != min(n+2, maxLineage) || way[0].Thread != "thr_1" || way[0].Subagent != "" || way[len(way)-1].Thread != at || way[len(way)-2].Thread != c.Parent {
			t.Errorf("at depth %d: %+v", n+1, way)
		}
	}
}

// An allowance that the session has no room for is taken back in words, not forgotten.
// Guarantee: F11.
func TestAnAllowanceTooMuchIsTakenBack(t *testing.T) {
	b := family(t, belay.AgentLimits{})
	one, _ := b.spawn("one", "thr_1", true, 0)
	share := func(n int) ([]event.Payload, []core.Send) {
		return b.do(belay.AskGrants{Thread: one.Thread, Share: &belay.SharedGrant{Grant: belay.EventID(fmt.Sprint("g", n)), Tool: "exec", Scope: "count", Count: 2}})
	}
	for n := range maxShared {
		if facts, _ := share(n); len(facts) != 1 {
			t.Fatalf("allowance %d isn't taken", n)
		}
	}
	facts, sends := share(maxShared)
	if len(facts) > 0 || len(sends) != 1 || sends[0].To != one.Thread.Stream() {
		t.Fatalf("of one too many: %+v %+v", facts, sends)
	}
	if back := sends[0].Command.(belay.RevokeGrant); back.Grant != fmt.Sprint("g", maxShared) || !strings.Contains(back.Reason, "256 allowances at most") {
		t.Errorf("it is taken back: %+v", back)
	}
	if facts, sends := share(1); facts != nil || sends != nil {
		t.Errorf("told again: %+v %+v", facts, sends)
	}
}

// Allowances whose time is over leave room for others, and are forgotten.
// Guarantee: F11.
func TestAnAllowanceWhoseTimeIsOverTakesNoRoom(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var s State
	for n := range maxShared {
		s.applyShared(event.PolicyChanged{Op: "granted", Grant: belay.EventID(fmt.Sprint("g", n)), Until: now.Add(time.Duration(n%2) * time.Hour)}, now.Add(-time.Hour))
	}
	more := belay.SharedGrant{Grant: "more", Tool: "exec"}
	if facts, _ := s.shareGrant("thr_1", more, now.Add(-time.Second)); len(facts) != 0 {
		t.Error("there is room for one too many")
	}
	facts, _ := s.shareGrant("thr_1", more, now)
	if len(facts) != 1 {
		t.Fatal("what is over takes room")
	}
	s.applyShared(facts[0].Data.(event.PolicyChanged), now)
	if len(s.Shared) != maxShared/2+1 {
		t.Errorf("%d are kept", len(s.Shared))
	}
}

// Guarantee: F11.
func TestWhatAPersonAllowsCoversTheTree(t *testing.T) {
	b := family(t, belay.AgentLimits{})
	one, _ := b.spawn("one", "thr_1", true, 0)
	below, _ := b.spawn("below", one.Thread, true, 0)
	beside, _ := b.spawn("beside", "thr_1", true, 0)
	b.do(belay.SubmitWork{Thread: "thr_2", Task: "task_2", Turn: "turn_2", Rules: rules}) // of another tree
	to := func(sends []core.Send) (threads []belay.StreamID) {
		for _, s := range sends {
			if s.To != stream {
				threads = append(threads, s.To)
			}
		}
		return threads
	}
	_, sends := b.do(belay.AskGrants{Thread: below.Thread, Share: &belay.SharedGrant{Grant: "g1", Tool: "exec", Scope: "count", Count: 2}})
	if got := to(sends); !slices.Equal(got, []belay.StreamID{"thread/thr_1", one.Thread.Stream(), beside.Thread.Stream()}) {
		t.Errorf("a grant of the tree goes to %v", got)
	}
	_, sends = b.do(belay.AskGrants{Thread: one.Thread, Share: &belay.SharedGrant{Grant: "g2", Tool: "edit", Scope: "session", Only: true}})
	if got := to(sends); !slices.Equal(got, []belay.StreamID{below.Thread.Stream()}) {
		t.Errorf("one that its agent keeps goes to %v", got)
	}
	// Who comes later has what covers its parent.
	b.spawn("later", "thr_1", true, 0)
	b.spawn("deeper", below.Thread, true, 0)
	inherited := map[string]string{}
	for _, s := range b.sent {
		if g, ok := s.Command.(belay.GiveGrant); ok && g.Shared != nil {
			for _, c := range b.d.s.Family {
				if c.Thread.Stream() == s.To {
					inherited[string(c.ID)] += string(g.Shared.Grant)
				}
			}
		}
	}
	if inherited["later"] != "g1" || inherited["deeper"] != "g1g2" {
		t.Errorf("they begin with %v", inherited)
	}
	// Two calls are two calls, whoever makes them; a thread of another tree makes none.
	over := func(thread belay.ThreadID, grant, call string) bool {
		t.Helper()
		_, sends := b.do(belay.AskGrants{Thread: thread, Use: &belay.GrantUse{Grant: belay.EventID(grant), Call: belay.CallID(call)}})
		return sends[0].Command.(belay.GiveGrant).Use.Over
	}
	if got := []bool{over("thr_2", "g1", "c0"), over(one.Thread, "g1", "c1"), over(beside.Thread, "g1", "c2"), over(below.Thread, "g1", "c3"), over("thr_1", "g2", "c4")}; !slices.Equal(got, []bool{true, false, false, true, true}) {
		t.Errorf("the uses are over: %v", got)
	}
	_, sends = b.do(belay.RevokeGrant{Grant: "g2"})
	if got := to(sends); len(got) != 2 || b.d.s.shared("g2") != nil {
		t.Errorf("what is taken back is told to %v", got)
	}
}

// A limit that is lowered below what is open ends nothing, and nothing more starts.
func TestALowerLimitEndsNothing(t *testing.T) {
	b := family(t, belay.AgentLimits{Children: 4, Running: 4})
	one, _ := b.spawn("a", "thr_1", true, 0)
	b.spawn("b", "thr_1", true, 0)
	if _, sends := b.do(belay.UpdateSession{Settings: belay.Settings{Agents: belay.AgentLimits{Children: 1, Running: 1}}}); len(sends) != 0 {
		t.Errorf("lowering it sends %+v", sends)
	}
	if c, why := b.spawn("c", "thr_1", true, 0); c != nil || why == "" {
		t.Errorf("one more was opened: %+v", c)
	}
	if started := b.places(); len(started) != 0 || !b.d.s.Family.Find("a").open() || one.Closing {
		t.Errorf("started %q", started)
	}
	if c, _ := b.spawn("below", one.Thread, true, 0); c == nil || !c.Waits {
		t.Errorf("a child of an open one: %+v", c)
	}
}

// Agents of a tree reach one another by name, where they may; what they are told is marked,
// and two can't answer one another without end.
func TestAgentsOfATreeTalk(t *testing.T) {
	b := family(t, belay.AgentLimits{Talk: belay.TalkTree})
	one, _ := b.spawn("a", "thr_1", true, 0)
	b.spawn("b", "thr_1", true, 0)
	tell := func(n int, name string) (facts []event.Payload, sends []core.Send) {
		return b.do(belay.SendSubagentInput{Name: name, Parent: one.Thread, Call: belay.CallID(fmt.Sprint("call_", n)), Turn: belay.TurnID(fmt.Sprint("turn_b", n)), Text: belay.Content{Text: "hello"}})
	}
	refusal := func(sends []core.Send) string {
		m, _ := sends[0].Command.(belay.TellParent)
		return m.Code
	}
	if _, sends := tell(0, "c"); refusal(sends) != "NOT_FOUND" {
		t.Errorf("no such agent: %+v", sends)
	}
	facts, sends := tell(1, "b")
	if p, ok := facts[0].(event.SubagentInput); !ok || !strings.HasPrefix(p.Text.Text, "[a message of agent a, not of a person") {
		t.Errorf("told: %+v", facts)
	}
	if c, ok := sends[0].Command.(belay.ContinueTask); !ok || !slices.Contains(c.Taint, "message:agent a") || sends[1].To != one.Thread.Stream() {
		t.Errorf("sent: %+v", sends)
	}
	for n := 2; n <= maxTold; n++ {
		tell(n, "b")
	}
	if _, sends := tell(maxTold+1, "b"); refusal(sends) != "AGENT_LIMIT" {
		t.Errorf("one more than %d: %+v", maxTold, sends)
	}
	b.d.s.Settings.Agents.Talk = ""
	if _, sends := tell(maxTold+2, "b"); refusal(sends) != "NOT_FOUND" {
		t.Errorf("where they may not: %+v", sends)
	}
}

// An agent has no place while it waits, and one at once when it goes on; others start when
// fewer work than may.
// Guarantee: F3.
func TestWhoWaitsHasNoPlace(t *testing.T) {
	b := family(t, belay.AgentLimits{Running: 1})
	b.do(belay.SetBudget{Budget: belay.Amounts{Tokens: 1000}})
	one, _ := b.spawn("one", "thr_1", true, 0)
	for _, id := range []string{"two", "three", "four"} {
		b.spawn(id, "thr_1", true, 0)
	}
	started := func(when string, want ...string) {
		t.Helper()
		if got := b.places(); !slices.Equal(got, want) {
			t.Errorf("%s: %v started, want %v", when, got, want)
		}
	}
	started("one works")
	b.do(belay.ReturnGrant{Thread: one.Thread, Place: true})
	started("it waits", "two")
	if facts, _ := b.do(belay.ReturnGrant{Thread: one.Thread, Place: true}); facts != nil {
		t.Errorf("told again: %v", facts)
	}
	b.do(belay.AskGrants{Thread: one.Thread, Place: true})
	started("it goes on")
	b.endOf("two")
	started("one works")
	b.do(belay.AskGrants{Thread: "thr_1", Budget: &belay.BudgetAsk{ID: "all", Least: belay.Amounts{Tokens: 1000}, Most: belay.Amounts{Tokens: 1000}}})
	b.places()
	b.do(belay.AskGrants{Thread: one.Thread, Budget: &belay.BudgetAsk{ID: "more", Least: belay.Amounts{Tokens: 10}, Most: belay.Amounts{Tokens: 10}}})
	if got := b.places(); !slices.Contains(got, "three") {
		t.Errorf("it waits for budget: %v", got)
	}
	b.do(belay.ReturnGrant{Thread: "thr_1", Budget: &belay.BudgetReturn{Closed: []string{"all"}, Back: belay.Amounts{Tokens: 1000}}})
	b.places()
	b.endOf("three")
	started("it has budget")
	b.do(belay.ReturnGrant{Thread: one.Thread, Place: true})
	b.endOf("one") // while it waits
	started("it ended", "four")
}

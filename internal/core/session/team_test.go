package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// aTeam asks for a team of three: two side by side, then one.
func aTeam(id string, parent belay.ThreadID) (belay.SpawnSubagent, []byte) {
	blocked := func(names ...string) (all []belay.Blocker) {
		for _, n := range names {
			all = append(all, belay.Blocker{Task: belay.TaskID("task_" + id + n), OnFailed: belay.OnFailedSkip})
		}
		return all
	}
	var members []belay.TeamMember
	for _, n := range []string{"gather", "count", "write"} {
		m := belay.TeamMember{Task: belay.TaskID("task_" + id + n), Agent: n + "er", Objective: belay.Content{Text: n}, Plan: belay.TaskPlan{Title: n}, Rules: rules}
		if n == "write" {
			m.BlockedBy = blocked("gather", "count")
		}
		members = append(members, m)
	}
	raw, _ := json.Marshal(members) // plain data: can't fail
	return belay.SpawnSubagent{Subagent: belay.SubagentID(id), Parent: parent, Turn: "turn_1", Call: belay.CallID("call_" + id), Agent: "audit", Text: belay.Content{Text: "look"}, Rules: rules,
		Taint: []string{"web:a"}, Team: &belay.Team{Plan: belay.TaskPlan{Title: "audit", CompleteAt: 1}, Members: belay.Ref{Digest: belay.DigestOf(raw), Size: int64(len(raw))}, Parts: 3}}, raw
}

// decides lets the session decide until nothing is left, with content that it misses, and
// returns what it sends.
func (b *bench) decides(content ...[]byte) (sends []core.Send) {
	b.t.Helper()
	for {
		for _, ref := range b.d.Missing() {
			i := slices.IndexFunc(content, func(c []byte) bool { return belay.DigestOf(c) == ref.Digest })
			var c []byte
			if i >= 0 {
				c = content[i]
			}
			if err := b.d.Supply(ref, c); err != nil {
				b.t.Fatal(err)
			}
		}
		rd := b.d.Next(time.Time{})
		sends = append(sends, rd.Sends...)
		for _, f := range rd.Decided {
			e := event.Envelope{Stream: stream, Seq: b.d.s.Seq + 1, IDs: f.IDs, Data: f.Data}
			b.d.Apply(e)
			b.log = append(b.log, e)
		}
		if len(rd.Decided) == 0 {
			return sends
		}
	}
}

// working are the names of the agents that are open, but for teams.
func (b *bench) working() (names []string) {
	for _, c := range b.d.s.Family {
		if c.open() && c.Team == nil {
			names = append(names, c.Nickname)
		}
	}
	return names
}

// memberEnds ends an agent of a team, and tells the session how its task stands.
func (b *bench) memberEnds(name string, o belay.Outcome) {
	b.t.Helper()
	c := b.d.s.Family.named(name)
	end := belay.AttemptEnd{Outcome: o, Summary: belay.Content{Text: name + " is done"}, Taint: []string{"file:" + name}, AttemptUse: belay.AttemptUse{Steps: 2, MicroUSD: 5, Charged: belay.Amounts{Tokens: 10}}}
	status := "completed"
	if o != belay.Completed {
		status, end.Reason = "failed", "it didn't work"
	}
	b.do(belay.MarkTask{Task: c.Task, Status: status, Reason: end.Reason})
	b.do(belay.EndSubagent{Subagent: c.ID, End: end})
}

// told is what the parent's thread was told of a child's end.
func told(sends []core.Send) (all []belay.TellParent) {
	for _, s := range sends {
		if m, ok := s.Command.(belay.TellParent); ok && m.End != nil {
			all = append(all, m)
		}
	}
	return all
}

// Guarantee: F28.
func TestATeamIsOneChildWhoseTaskHasParts(t *testing.T) {
	b := family(t, belay.AgentLimits{Running: 1})
	spawn, list := aTeam("t", "thr_1")
	b.do(spawn)
	if again, _ := b.do(spawn); again != nil {
		t.Errorf("asked for again: %v", again)
	}
	team := b.d.s.Family.Find("t")
	b.decides(list)
	if got := fmt.Sprint(b.working()); got != "[gather]" {
		t.Errorf("at first %s", got)
	}
	b.memberEnds("gather", belay.Completed)
	b.decides()
	if got := fmt.Sprint(b.working()); got != "[count]" {
		t.Errorf("in the one place then %s", got)
	}
	b.memberEnds("count", belay.Completed)
	b.decides()
	write := b.d.s.Family.named("write")
	if write == nil || write.Depth != 2 || write.Parent != team.Thread || write.ParentTask != team.Task {
		t.Fatalf("the last one is %+v", write)
	}
	begun := slices.IndexFunc(b.log, func(e event.Envelope) bool { return e.IDs.Subagent == write.ID })
	if p := b.log[begun].Data.(event.SubagentSpawned); p.Depth != 2 || !slices.Equal(b.d.s.Family.Find("t").Team.Taint, []string{"web:a", "file:gather", "file:count"}) {
		t.Errorf("it began as %+v", p)
	}
	b.sent = nil
	b.memberEnds("write", belay.Completed)
	sends := b.decides()
	if !slices.ContainsFunc(sends, func(s core.Send) bool {
		_, ends := s.Command.(belay.CompleteTask)
		return ends && s.To == team.Task.Stream()
	}) || len(told(sends)) > 0 {
		t.Fatalf("before its task has ended: %v", sends)
	}
	b.do(belay.MarkTask{Task: team.Task, Status: "completed"})
	ends := told(b.decides())
	if len(ends) != 1 || ends[0].Call != "call_t" {
		t.Fatalf("the parent was told %+v", ends)
	}
	end := ends[0].End
	if end.Outcome != belay.Completed || end.Summary.Text != "gather: gather is done\ncount: count is done\nwrite: write is done\n" ||
		end.Steps != 6 || end.MicroUSD != 15 || end.Charged.Tokens != 30 || fmt.Sprint(end.Taint) != "[web:a file:gather file:count file:write]" {
		t.Errorf("it ended %+v", end)
	}
	if len(told(b.sent)) > 0 {
		t.Errorf("the ends of its agents were told too: %+v", told(b.sent))
	}
	if _, _, err := b.try(belay.SendSubagentInput{Subagent: write.ID, Turn: "turn_2"}); belay.CodeOf(err) != belay.CodeAgentClosed || !strings.Contains(err.Error(), "its team has ended") {
		t.Errorf("input for an agent of a team that has ended: %v", err)
	}
	if _, _, err := b.try(belay.SendSubagentInput{Subagent: "t", Turn: "turn_2"}); belay.CodeOf(err) != belay.CodeAgentTeam {
		t.Errorf("input for a team: %v", err)
	}
}

// Guarantee: F28.
func TestATeamWhoseAgentFailsSaysSo(t *testing.T) {
	b := family(t, belay.AgentLimits{})
	spawn, list := aTeam("t", "thr_1")
	b.do(spawn)
	b.decides(list)
	team := b.d.s.Family.Find("t")
	b.memberEnds("gather", belay.Failed)
	b.memberEnds("count", belay.Completed)
	b.decides()
	b.do(belay.MarkTask{Task: team.Task, Status: "failed", Reason: "1 of 3 parts were completed"})
	ends := told(b.decides())
	if len(ends) != 1 || ends[0].End.Outcome != belay.Failed || ends[0].End.Reason != "1 of 3 parts were completed" ||
		ends[0].End.Summary.Text != "gather: failed: it didn't work\ncount: count is done\nwrite: cancelled: skipped: task task_tgather is failed\n" {
		t.Errorf("the parent was told %+v", ends)
	}
}

// A team whose agents can't all be had isn't begun, and what one has been promised no other
// agent takes.
// Guarantee: F2, F28.
func TestATeamThatCanNotBeHadIsRefused(t *testing.T) {
	b := family(t, belay.AgentLimits{Depth: 2, Total: 5})
	refused := func(id string, parent belay.ThreadID, want string) {
		t.Helper()
		spawn, _ := aTeam(id, parent)
		_, sends := b.do(spawn)
		if got := told(sends); len(got) != 1 || got[0].Code != codeAgentLimit || !strings.Contains(got[0].End.Reason, want) {
			t.Errorf("%s: %+v", id, got)
		}
	}
	one, _ := b.spawn("one", "thr_1", true, 0)
	refused("deep", one.Thread, "agents-depth is 2, and the agents of a team would be at depth 3")
	spawn, list := aTeam("t", "thr_1")
	b.do(spawn)
	if c, why := b.spawn("late", "thr_1", true, 0); c != nil || !strings.Contains(why, "agents-total is 5") {
		t.Errorf("a place that the team needs went to %+v %s", c, why)
	}
	refused("more", "thr_1", "agents-total is 5")
	b.decides(list)
	b.memberEnds("gather", belay.Completed)
	b.memberEnds("count", belay.Completed)
	b.decides()
	if got := fmt.Sprint(b.working()); got != "[ write]" {
		t.Errorf("at last %s", got)
	}
}

// Guarantee: F28.
func TestATeamThatIsPausedOrClosedBeginsNothing(t *testing.T) {
	for _, closed := range []bool{false, true} {
		b := family(t, belay.AgentLimits{Running: 1})
		spawn, list := aTeam("t", "thr_1")
		b.do(spawn)
		b.decides(list)
		if closed {
			b.do(belay.CloseSubagent{Subagent: "t", Grace: true})
		} else {
			b.do(belay.PauseSubagent{Subagent: "t"})
		}
		b.memberEnds("gather", belay.Completed)
		b.decides()
		if got := b.working(); len(got) > 0 {
			t.Errorf("closed %v: %v begins", closed, got)
		}
		if !closed {
			b.do(belay.ResumeSubagent{Subagent: "t"})
			b.decides()
			if got := fmt.Sprint(b.working()); got != "[count]" {
				t.Errorf("resumed: %v", got)
			}
			continue
		}
		team := b.d.s.Family.Find("t")
		b.do(belay.MarkTask{Task: team.Task, Status: "cancelled", Reason: "closed"})
		b.decides()
		for _, task := range []belay.TaskID{"task_tcount", "task_twrite"} {
			b.do(belay.MarkTask{Task: task, Status: "cancelled"})
		}
		if ends := told(b.decides()); len(ends) != 1 || ends[0].End.Outcome != belay.Cancelled {
			t.Errorf("closed: the parent was told %+v", ends)
		}
	}
}

// A team whose list isn't in the store fails; it never hangs.
// Guarantee: F28.
func TestATeamWithoutItsListFails(t *testing.T) {
	b := family(t, belay.AgentLimits{})
	spawn, _ := aTeam("t", "thr_1")
	b.do(spawn)
	sends := b.decides()
	task := b.d.s.Family.Find("t").Task
	if len(sends) != 1 || sends[0].To != task.Stream() || !strings.Contains(sends[0].Command.(belay.FailTask).Reason, "missing from the store") {
		t.Fatalf("sent %v", sends)
	}
	b.do(belay.MarkTask{Task: task, Status: "failed", Reason: "gone"})
	if ends := told(b.decides()); len(ends) != 1 || ends[0].End.Outcome != belay.Failed {
		t.Errorf("the parent was told %+v", ends)
	}
}

// An agent of a team that starts a team itself waits without a place, also where there is
// only one.
// Guarantee: F3, F28.
func TestATeamInATeamsAgentNeedsOnePlace(t *testing.T) {
	b := family(t, belay.AgentLimits{Running: 1})
	outer, first := aTeam("t", "thr_1")
	b.do(outer)
	b.decides(first)
	gather := b.d.s.Family.named("gather")
	inner, second := aTeam("u", gather.Thread)
	b.do(inner)
	b.do(belay.ReturnGrant{Thread: gather.Thread, Place: true})
	b.decides(first, second)
	if n := len(b.working()); n != 2 {
		t.Errorf("%d agents work: %v", n, b.working())
	}
}

package session

import (
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// A child with a worktree of its own ends when that was looked at; one that is told more
// meanwhile goes on.
// Guarantee: F22.
func TestAWorktreeIsLookedAtBeforeItsChildEnds(t *testing.T) {
	tree := belay.Worktree{Repository: "/repo", Path: "/trees/sub_1", Branch: "belay/1", Base: "c0"}
	seq := int64(0)
	d := New("session/sess_1")
	apply := func(facts ...core.Fact) {
		for _, f := range facts {
			seq++
			d.Apply(event.Envelope{Stream: "session/sess_1", Seq: seq, IDs: f.IDs, Data: f.Data})
		}
	}
	do := func(c belay.Command) []core.Send {
		t.Helper()
		facts, sends, err := d.Handle(belay.Order{Stream: "session/sess_1", Session: "sess_1", Principal: "user:ann", Command: c}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		apply(facts...)
		return sends
	}
	settles := func(want bool) {
		t.Helper()
		rd := d.Next(time.Time{})
		if (len(rd.Effects) == 1) != want || len(rd.Decided) > 0 {
			t.Fatalf("wants %+v, decides %+v", rd.Effects, rd.Decided)
		}
	}
	do(belay.CreateSession{Workspace: "/repo", Thread: "thr_1"})
	do(belay.SpawnSubagent{Subagent: "sub_1", Parent: "thr_1", Turn: "turn_1", Call: "call_1", Agent: "general", Workspace: tree.Path, Worktree: &tree})
	end := belay.EndSubagent{Subagent: "sub_1", End: belay.AttemptEnd{Outcome: belay.Completed, Changed: []string{"seen"}}}
	if sends := do(end); len(sends) > 0 {
		t.Errorf("the parent is told before: %+v", sends)
	}
	settles(true)
	do(end) // told twice
	do(belay.SendSubagentInput{Subagent: "sub_1", Turn: "turn_2", Text: belay.Content{Text: "more"}})
	settles(false)
	end.Inputs = 1
	do(end)
	settles(true)
	eff := d.Next(time.Time{}).Effects[0].(core.SettleTree)
	if eff.Tree != tree || eff.Keep {
		t.Errorf("%+v", eff)
	}
	apply(core.Fact{IDs: eff.IDs, Data: event.SubagentStatus{Status: event.SubagentSettled, Worktree: &tree, Diff: &belay.Diffstat{Files: 1}, Changed: []string{"a.txt"}}})
	rd := d.Next(time.Time{})
	if len(rd.Decided) != 1 || len(rd.Sends) != 1 {
		t.Fatalf("%+v", rd)
	}
	told := rd.Sends[0].Command.(belay.TellParent).End
	if told.Worktree.Branch != tree.Branch || told.Diff.Files != 1 || told.Changed[0] != "a.txt" || told.Outcome != belay.Completed {
		t.Errorf("the parent is told %+v", told)
	}
	apply(rd.Decided...)
	settles(false)
	gone := tree
	gone.Removed = true
	do(belay.UseWorkspace{Subagent: "sub_1", Worktree: &gone})
	if c := d.State().Family.Find("sub_1"); !c.Worktree.Removed || c.Outcome != belay.Completed {
		t.Errorf("%+v", c)
	}
}

package session

import (
	"fmt"
	"testing"

	"github.com/belay-run/belay"
)

// TestASessionOfWeeksHasABoundedState: children that ended are forgotten, but for the newest
// and those that something needs, and each turn of a person may have so many as the first.
// What programs of forgotten ones took stays counted.
// Guarantee: F2, O12.
func TestASessionOfWeeksHasABoundedState(t *testing.T) {
	b := family(t, belay.AgentLimits{Depth: 3, Children: 256, Total: 20, Running: 256})
	stays, _ := b.spawn("stays", "thr_1", true, 0)
	above, _ := b.spawn("above", "thr_1", true, 0)
	aboveThread := above.Thread
	b.spawn("below", aboveThread, true, 0)
	b.endOf("above")
	var size int
	for turn := range 40 {
		for i := range 21 {
			id := fmt.Sprintf("child_%d_%d", turn, i)
			_, sends := b.do(belay.SpawnSubagent{Subagent: belay.SubagentID(id), Parent: "thr_1", Turn: belay.TurnID(fmt.Sprintf("turn_%d", 100+turn)), Call: belay.CallID("call_" + id),
				Agent: "general", Text: belay.Content{Text: id}, Rules: rules, Background: true})
			c := b.d.s.Family.Find(belay.SubagentID(id))
			if (c == nil) != (i == 20) {
				t.Fatalf("%s: %+v %+v", id, c, sends)
			}
			if c == nil {
				continue
			}
			b.do(belay.ReturnGrant{Thread: c.Thread, Used: &belay.ProgramUse{Ended: 1, Written: 3}})
			b.endOf(id)
		}
		saved, err := b.d.Save()
		if err != nil {
			t.Fatal(err)
		}
		if turn == 20 {
			size = len(saved)
		}
		if turn > 20 && len(saved) > size+200 {
			t.Fatalf("turn %d: the state has %d bytes, and had %d", turn, len(saved), size)
		}
	}
	s := b.d.s
	for _, id := range []belay.SubagentID{stays.ID, "above", "below", "child_39_19"} {
		if s.Family.Find(id) == nil {
			t.Errorf("%s is forgotten", id)
		}
	}
	if s.Family.Find("child_0_0") != nil || len(s.Family) > maxEndedChildren+3 {
		t.Errorf("%d children are known", len(s.Family))
	}
	if got := s.others("thr_1"); got == nil || *got != (belay.ProgramUse{Ended: 800, Written: 2400}) {
		t.Errorf("programs took %+v", got)
	}
	// Agents of agents count for the turn of the person, which the first ones still have.
	for i := range 18 {
		parent := stays.Thread
		if i%2 == 0 {
			parent = "thr_1"
		}
		if c, why := b.spawn(fmt.Sprint("more", i), parent, true, 0); (c == nil) != (i >= 17) {
			t.Errorf("%d: %v %s", i, c != nil, why)
		}
	}
}

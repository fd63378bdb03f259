package thread

import (
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

func familyTools() []belay.ToolSpec {
	return append(testTools(), belay.ToolSpec{Name: "spawn_agent", Handled: handledSpawn, ReadOnly: true}, belay.ToolSpec{Name: "wait_agent", Handled: handledWait, ReadOnly: true})
}

func names(tools []belay.ToolSpec) (out []string) {
	for _, t := range tools {
		out = append(out, t.Name)
	}
	slices.Sort(out)
	return out
}

// Guarantee: F4.
func TestACompactionKeepsTheAgentsThatHaveNotEnded(t *testing.T) {
	s := &State{}
	s.Children = []*child{{ID: "sub_1", Agent: "explore", Nickname: "scout"}, {ID: "sub_2", Agent: "general", Ended: true}, {ID: "sub_3", Agent: "general"}}
	got := (&decision{State: s, rules: &Rules{}}).compact(&compaction{}).Agents
	if want := []string{"scout sub_1 (explore) is running", "sub_3 (general) is running"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAChildHasNoMoreThanItsParent(t *testing.T) {
	complete := belay.ToolSpec{Name: "complete_task", Handled: "complete"}
	parent := &Rules{Tools: familyTools(), System: "parent", Workspace: "/ws", Boundary: Boundary{Level: "L3", Network: "none"},
		Settings: belay.Settings{Mode: belay.ModePlan, Boundary: "read-only", Completion: belay.CompletionConversational, Approvals: belay.ApprovalsDeny}}
	for _, c := range []struct {
		what  string
		wish  ChildWish
		tools []string
		code  string
	}{
		{"all", ChildWish{Depth: 1}, []string{"ask_user", "complete_task", "edit", "exec", "poll", "put", "read", "solo", "spawn_agent", "wait_agent"}, ""},
		{"at the last depth", ChildWish{Depth: 3}, []string{"ask_user", "complete_task", "edit", "exec", "poll", "put", "read", "solo"}, ""},
		{"read only", ChildWish{Agent: "explore", Depth: 3}, []string{"ask_user", "complete_task", "poll", "read", "solo"}, ""},
		{"some", ChildWish{Tools: []string{"read", "edit"}, Depth: 1}, []string{"ask_user", "complete_task", "edit", "read"}, ""},
		{"one that the parent lacks", ChildWish{Tools: []string{"read", "deploy"}}, nil, "NOT_COVERED"},
		{"one that the agent lacks", ChildWish{Agent: "plan", Tools: []string{"edit"}}, nil, "NOT_COVERED"},
		{"agents at the last depth", ChildWish{Tools: []string{"spawn_agent"}, Depth: 3}, nil, "NOT_COVERED"},
		{"a pattern", ChildWish{Tools: []string{"*"}}, nil, "NOT_COVERED"},
		{"a group", ChildWish{Tools: []string{"group:files"}}, nil, "NOT_COVERED"},
		{"another spelling", ChildWish{Tools: []string{"EXEC"}}, nil, "NOT_COVERED"},
		{"an agent that there isn't", ChildWish{Agent: "root"}, nil, "UNKNOWN_AGENT"},
	} {
		child, problem := parent.Child(c.wish, "prompt", complete)
		if problem != nil {
			if problem.Code != c.code || problem.Hint == "" {
				t.Errorf("%s: %+v", c.what, problem)
			}
			continue
		}
		if got := names(child.Tools); c.code != "" || !slices.Equal(got, c.tools) {
			t.Errorf("%s: it has %v", c.what, got)
		}
		s := child.Settings
		if s.Mode != belay.ModePlan || s.Boundary != "read-only" || s.Approvals != belay.ApprovalsDeny || child.Boundary != parent.Boundary || s.Completion != belay.CompletionRequired || s.Limits != c.wish.Limits {
			t.Errorf("%s: its rules are %+v", c.what, child)
		}
	}
	if got := names(parent.Tools); len(got) != 10 || parent.System != "parent" || parent.Agent != "" {
		t.Errorf("the parent's rules have changed: %v", parent)
	}
}

// What the turn lent to an agent comes back: a conversation that a summary could shorten then
// isn't truncated before.
func TestASummaryWaitsForWhatAgentsGiveBack(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{"rules tokens=200 route=a/x:10000 max-tokens=60ktok", "open", "submit t1 tokens=2000", `model read{"path":"a"} usage=2200/10`} {
		w.do(line)
	}
	tell := func(p event.SubagentStatus) {
		w.add([]core.Fact{{IDs: belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "t1", Subagent: "sub_1"}, Data: p}}, nil)
	}
	tell(event.SubagentStatus{Status: event.SubagentRunning, Agent: "explore"})
	tell(event.SubagentStatus{Status: event.SubagentRunning, Budget: &belay.Amounts{Tokens: 50_000}})
	w.do("result 1 ok tokens=6000")
	if !w.d.s.Turn.Short || w.d.s.Compacting != nil {
		t.Errorf("it doesn't wait: %+v", w.d.s.Compacting)
	}
	tell(event.SubagentStatus{Status: event.SubagentEnded, End: &belay.AttemptEnd{Outcome: belay.Completed}})
	if w.settle(); w.d.s.Compacting == nil || w.d.s.Compacting.Strategy != string(belay.CompactHybrid) {
		t.Errorf("%+v", w.d.s.Compacting)
	}
}

// A text that comes before a sub-agent's first turn has begun is part of that turn; one
// that comes when it has ended, and before that is known, has what is left of what the
// agent was lent: the parent has the rest only when it knows of the end.
// Guarantee: F4.
func TestATextNeverTakesAwayWhatAnAgentWasLent(t *testing.T) {
	submit := func(w *world, turn belay.TurnID, more belay.SubmitTurn) {
		more.Turn, more.Kind, more.Rules, more.Text = turn, belay.TurnUser, w.keepRules(), belay.Content{Text: string(turn), Tokens: 10}
		w.handle(more)
	}
	child := func() *world {
		w := newWorld(t)
		w.rules.Tokens, w.rules.Settings.Limits.Tokens = 500, 60_000
		w.handle(belay.OpenThread{Workspace: "/ws", Depth: 1})
		return w
	}
	text := belay.SubmitTurn{Queue: belay.QueueSteer, Rest: true, Limits: belay.Limits{Steps: 5}}

	early := child()
	submit(early, "first", belay.SubmitTurn{})
	submit(early, "second", text)
	early.settle()
	if turn := early.d.s.Turn; turn == nil || len(turn.Joined) != 1 || turn.Limits.Tokens != 60_000 || turn.Limits.Steps != belay.DefaultLimits.Steps {
		t.Errorf("a text before the first turn began: %+v", turn)
	}

	late := child()
	submit(late, "first", belay.SubmitTurn{})
	late.settle()
	late.do(`model complete_task{"summary":"one"} usage=1000/2000`)
	submit(late, "second", text)
	late.settle()
	if turn := late.d.s.Turn; turn == nil || turn.Limits.Tokens != 57_000 || turn.Limits.Steps != 5 {
		t.Errorf("a text behind the end: %+v", turn)
	}
	late.do(`model complete_task{"summary":"two"} usage=1000/2000`)
	submit(late, "third", belay.SubmitTurn{Queue: belay.QueueSteer, Limits: belay.Limits{Tokens: 30_000}})
	late.settle()
	if turn := late.d.s.Turn; turn == nil || turn.Limits.Tokens != 30_000 {
		t.Errorf("a text with another loan: %+v", turn)
	}
	late.do(`model complete_task{"summary":"three"} usage=1000/2000`)
	submit(late, "fourth", text)
	late.settle()
	if turn := late.d.s.Turn; turn == nil || turn.Limits.Tokens != 27_000 {
		t.Errorf("a text behind the end that follows that: %+v", turn)
	}
}

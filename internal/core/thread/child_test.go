package thread

import (
	"slices"
	"testing"

	"github.com/belay-run/belay"
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

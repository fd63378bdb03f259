package policy

import (
	"testing"

	"github.com/belay-run/belay"
)

func TestAnExpressionSeesWhatACommandIsBehind(t *testing.T) {
	set, err := Compile(Document{Version: 1, Rules: append(BuiltinRules(),
		Rule{ID: "bare", Tier: TierUser, Verdict: Allow, Match: Match{Tool: []string{"exec"}, Command: &CommandMatch{Program: []string{"git"}}, If: "size(wrapped) == 0"}},
		Rule{ID: "nice", Tier: TierUser, Verdict: Deny, Match: Match{Tool: []string{"exec"}, If: "'nice' in wrapped"}})})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Decision{"git push": Allow, "timeout 5 git push": Ask, "true; nice git push": Deny} {
		spec := belay.ToolSpec{Name: "exec", Command: &belay.CommandArgs{Line: "command"}}
		args := []byte(`{"command":"` + line + `"}`)
		r := Request{Tool: spec, Args: args, Commands: CommandsOf(spec, args, Place{Workspace: "/w"}), Mode: belay.ModeDefault, Workspace: "/w"}
		if v := verdictOf(set, r); v.Decision != want {
			t.Errorf("%s: %s by %s, not %s", line, v.Decision, v.Rule, want)
		}
	}
}

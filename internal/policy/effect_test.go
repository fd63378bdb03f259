package policy

import (
	"testing"

	"github.com/belay-run/belay"
)

// A rule may ask for what a tool's manifest declares.
func TestRulesMatchWhatAToolDeclares(t *testing.T) {
	set, err := Compile(Document{Version: FormatVersion, Rules: append(BuiltinRules(),
		Rule{ID: "safe", Tier: TierUser, Verdict: Allow, Match: Match{Effect: []string{"pure", "idempotent"}}},
		Rule{ID: "once", Tier: TierUser, Verdict: Deny, Match: Match{Effect: []string{"at_most_once"}, Capability: []string{"deploy"}}})})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool belay.ToolSpec
		want Decision
	}{
		{belay.ToolSpec{Name: "a", Effect: belay.Idempotent}, Allow}, {belay.ToolSpec{Name: "a", Effect: belay.Recoverable}, Ask}, {belay.ToolSpec{Name: "a"}, Ask},
		{belay.ToolSpec{Name: "a", Capabilities: []string{"process", "deploy"}}, Deny}, {belay.ToolSpec{Name: "a", Effect: belay.AtMostOnce, Capabilities: []string{"deploy"}}, Deny},
		{belay.ToolSpec{Name: "a", Effect: belay.Pure, Capabilities: []string{"deploy"}}, Allow}, {belay.ToolSpec{Name: "a", Effect: "made-up"}, Ask},
	} {
		if v := verdictOf(set, Request{Tool: c.tool, Mode: belay.ModeDefault}); v.Decision != c.want {
			t.Errorf("%+v: %s by %s", c.tool, v.Decision, v.Rule)
		}
	}
	if _, err := Compile(Document{Version: FormatVersion, Rules: []Rule{{ID: "a", Verdict: Deny, Match: Match{Effect: []string{"twice"}}}}}); belay.CodeOf(err) != belay.CodeBadPolicy {
		t.Errorf("an effect that there isn't: %v", err)
	}
}

package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
)

// What is said of a rule is what the gate does with it: it speaks here exactly
// if it is among the rules that spoke there, and else a matcher is named.
// Guarantee: G24.
func TestConsideringIsJudging(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, r := compiled(t, anyRules(t)...), fullRequest(t)
		r.Grants = nil
		speaks := map[string]bool{}
		for _, c := range set.Consider(&r) {
			if c.Misses == "" {
				speaks[c.Rule] = true
			}
		}
		matched := set.judge(&r).Matched
		for _, h := range matched {
			if !speaks[h.Rule] {
				t.Fatalf("%s spoke, and is not said to", h.Rule)
			}
			delete(speaks, h.Rule)
		}
		if len(speaks) > 0 {
			t.Fatalf("%v are said to speak, and did not", speaks)
		}
	})
}

func TestWhatMissesIsNamed(t *testing.T) {
	no := false
	for _, c := range []struct {
		match Match
		want  string
	}{
		{Match{Mode: []belay.Mode{"plan"}}, "mode"}, {Match{Does: []string{"completes"}}, "does"}, {Match{Agent: []string{"x*"}}, "agent"},
		{Match{Capability: []string{"network"}}, "capability"}, {Match{Level: "L2"}, "level"}, {Match{Rerun: true}, "rerun"}, {Match{Flow: []string{"secret"}}, "flow"},
		{Match{Taint: []string{"any"}}, "taint"}, {Match{Command: &CommandMatch{Program: []string{"npm"}}}, "command"}, {Match{Path: &PathMatch{Match: []string{"x/**"}}}, "path"},
		{Match{Host: []string{"x.org"}}, "host"}, {Match{Args: []ArgMatch{{Path: "command", Exists: &no}}}, "args"}, {Match{If: "program == 'npm'"}, "if"}, {Match{}, ""},
	} {
		set := compiled(t, Rule{ID: "r", Tier: TierUser, Match: c.match, Verdict: Ask})
		spec := belay.ToolSpec{Name: "exec", Command: line, Destructive: true, Capabilities: []string{"process"}}
		args := []byte(`{"command":"git push"}`)
		got := set.Consider(&Request{Tool: spec, Args: args, Commands: CommandsOf(spec, args, Place{Workspace: "/w"}), Mode: "default", Workspace: "/w", Level: "L0"})
		i := slices.IndexFunc(got, func(k RuleTrace) bool { return k.Rule == "user/r" })
		if i < 0 || got[i].Misses != c.want {
			t.Errorf("%+v: %+v, want %q", c.match, got, c.want)
		}
	}
}

func TestEveryExampleIsTried(t *testing.T) {
	d := Document{Version: 1, Rules: []Rule{{ID: "r", Tier: TierUser, Match: Match{Tool: []string{"exec"}, Command: &CommandMatch{Program: []string{"git"}}}, Verdict: Ask, Where: "f:1:1",
		Examples: Examples{Match: []Example{{Command: "git push"}, {Command: "ls"}}, NoMatch: []Example{{Command: "git log"}, {Command: "ls"}}}}}}
	got, err := Try(d)
	if err != nil {
		t.Fatal(err)
	}
	var ok []bool
	for _, x := range got {
		ok = append(ok, x.OK())
	}
	if !slices.Equal(ok, []bool{true, false, false, true}) || got[1].Where != "f:1:1" || got[1].Example != `command "ls"` {
		t.Errorf("%+v", got)
	}
	if _, err := Compile(d); err == nil {
		t.Error("a rule that fails its examples is compiled")
	}
}

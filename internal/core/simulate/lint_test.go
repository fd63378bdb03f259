package simulate

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

func texts(found []Finding) string {
	var out []string
	for _, f := range found {
		if f.Code != "example" {
			out = append(out, fmt.Sprintf("%s %s %s %s: %s", f.Level, f.Code, f.Rule, f.Where, f.Text))
		}
	}
	return strings.Join(out, "\n")
}

// Guarantee: G31.
func TestWhatLintFinds(t *testing.T) {
	type m = policy.Match
	git := &policy.CommandMatch{Program: []string{"git"}}
	push := &policy.CommandMatch{Program: []string{"git"}, Prefix: []string{"push"}}
	yes, no := true, false
	x := []string{"exec"}
	const allow, ask, deny = policy.Allow, policy.Ask, policy.Deny
	rule := func(v policy.Decision, match m) policy.Rule { return policy.Rule{Verdict: v, Match: match} }
	for _, c := range []struct {
		name  string
		rules []policy.Rule
		want  string
	}{
		{"nothing", []policy.Rule{rule(allow, m{Tool: x, Command: git}), rule(ask, m{Tool: x, Command: push}), rule(deny, m{Tool: []string{"write"}, Path: &policy.PathMatch{Match: []string{"x/**"}}})}, ""},
		{"a deny covers", []policy.Rule{rule(deny, m{Tool: x, Command: git}), rule(allow, m{Tool: x, Command: push})}, "error shadowed user/r1 f.yaml:2:5: it can never decide: user/r0 at f.yaml:1:5 denies all that it speaks of, and a deny is final"},
		{"a built-in deny covers", []policy.Rule{rule(allow, m{Tool: []string{"write"}, Does: []string{"changes"}, Mode: []belay.Mode{belay.ModePlan}})}, "error shadowed user/r0 f.yaml:1:5: it can never decide: builtin/plan-deny denies all that it speaks of, and a deny is final"},
		{"a louder ask covers", []policy.Rule{{Verdict: ask, Priority: 9, Match: m{Tool: x}}, rule(allow, m{Tool: x, Command: git})}, "error shadowed user/r1 f.yaml:2:5: it can never decide: user/r0 at f.yaml:1:5 asks about all that it speaks of, with priority 9 over 0"},
		{"an ask of the same priority covers", []policy.Rule{rule(ask, m{}), rule(allow, m{Tool: x, Command: git})}, "error shadowed user/r1 f.yaml:2:5: it can never decide: user/r0 at f.yaml:1:5 asks about all that it speaks of, with priority 0 over 0"},
		{"an allow silences no ask for what it doesn't see", []policy.Rule{{Verdict: allow, Priority: 9, Match: m{Tool: x}}, rule(ask, m{Tool: x, Command: git})}, ""},
		{"the same twice", []policy.Rule{rule(ask, m{Tool: x}), rule(ask, m{Tool: x, Command: git})}, "warning redundant user/r1 f.yaml:2:5: user/r0 at f.yaml:1:5 already says ask of all that it speaks of"},
		{"contradicting", []policy.Rule{rule(allow, m{Tool: x, Command: git}), rule(deny, m{Tool: x, Command: git})}, "error contradicts user/r0 f.yaml:1:5: it says allow of exactly the calls of which user/r1 at f.yaml:2:5 says deny, which is stricter"},
		{"contradicting ask", []policy.Rule{rule(ask, m{Tool: x, Command: git}), rule(allow, m{Tool: x, Command: git})}, "error contradicts user/r1 f.yaml:2:5: it says allow of exactly the calls of which user/r0 at f.yaml:1:5 says ask, which is stricter"},
		{"another tier asks", []policy.Rule{{Verdict: ask, Tier: policy.TierAdmin, Match: m{Tool: x}}, rule(allow, m{Tool: x, Command: git})}, "warning overruled user/r1 f.yaml:2:5: it can't allow anything: admin/r0 at f.yaml:1:5 of tier admin asks about all that it speaks of"},
		{"another tier asks, but may be silenced", []policy.Rule{{Verdict: ask, Tier: policy.TierAdmin, Match: m{Tool: x}}, {Verdict: allow, Tier: policy.TierAdmin, Priority: 5, Match: m{Tool: x, Command: push}}, rule(allow, m{Tool: x, Command: git})}, ""},
		{"no such tool", []policy.Rule{rule(ask, m{Tool: []string{"exce"}})}, "warning no_tool user/r0 f.yaml:1:5: no tool of this workspace has such a name: exce; did you mean exec?"},
		{"an empty group", []policy.Rule{rule(ask, m{Tool: []string{"group:none"}})}, "error no_tool user/r0 f.yaml:1:5: it means no tool: the groups that it names are empty"},
		{"all excluded", []policy.Rule{rule(ask, m{Tool: x, NotTool: []string{"e*"}})}, "error no_tool user/r0 f.yaml:1:5: not_tool excludes every tool that it could mean"},
		{"no command line", []policy.Rule{rule(ask, m{Tool: []string{"group:files"}, Command: git})}, "error never user/r0 f.yaml:1:5: it can never match: read: command: it runs no command line (and 1 more tools)"},
		{"no file", []policy.Rule{rule(ask, m{Tool: []string{"fetch"}, Path: &policy.PathMatch{Where: "inside"}})}, "error never user/r0 f.yaml:1:5: it can never match: fetch: path: none of its arguments names a file"},
		{"never writes", []policy.Rule{rule(ask, m{Tool: []string{"read"}, Path: &policy.PathMatch{Access: "write"}})}, "error never user/r0 f.yaml:1:5: it can never match: read: path.access: it never does write a file"},
		{"no host", []policy.Rule{rule(ask, m{Tool: []string{"read"}, Host: []string{"x.org"}})}, "error never user/r0 f.yaml:1:5: it can never match: read: host: none of its arguments names a host"},
		{"no capability", []policy.Rule{rule(ask, m{Tool: x, Capability: []string{"network"}})}, "error never user/r0 f.yaml:1:5: it can never match: exec: capability: it declares none of network"},
		{"never does", []policy.Rule{rule(ask, m{Tool: []string{"read"}, Does: []string{"runs", "edits"}})}, "error never user/r0 f.yaml:1:5: it can never match: read: does: it never runs, edits"},
		{"no argument", []policy.Rule{rule(ask, m{Tool: x, Args: []policy.ArgMatch{{Path: "cmd", Exists: &yes}}})}, "error never user/r0 f.yaml:1:5: it can never match: exec: args: it has no argument cmd"},
		{"no argument, which is what it asks for", []policy.Rule{rule(ask, m{Tool: x, Args: []policy.ArgMatch{{Path: "cmd", Exists: &no}}})}, ""},
		{"an open schema", []policy.Rule{rule(ask, m{Tool: []string{"write"}, Args: []policy.ArgMatch{{Path: "x.y", Exists: &yes}}})}, ""},
		{"a tilde", []policy.Rule{rule(ask, m{Tool: []string{"read"}, Path: &policy.PathMatch{Match: []string{"~/.ssh/**"}}})}, "error never user/r0 f.yaml:1:5: it can never match: path.match: ~ has no meaning in a path; write the folder out"},
		{"a strange taint", []policy.Rule{rule(ask, m{Tool: x, Taint: []string{"internet"}})}, "warning never user/r0 f.yaml:1:5: taint: \"internet\" is no kind that anything brings; the kinds are none, any, web, mcp, message, tool, child, memory, import, workspace, secret"},
		{"everything", []policy.Rule{rule(allow, m{})}, "warning broad user/r0 f.yaml:1:5: it allows every call of every tool"},
		{"what steers is meant by name", []policy.Rule{rule(ask, m{Tool: []string{"complete_*"}})}, "warning no_tool user/r0 f.yaml:1:5: no tool of this workspace has such a name: complete_*"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := numbered(c.rules)
			if _, err := policy.Compile(d); err != nil {
				t.Fatal(err)
			}
			if got := texts(Lint(d, specs)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// What lint calls an error is one: such a rule never decides a call, and one
// that can never match never does.
// Guarantee: G31.
func TestWhatLintCallsAnErrorNeverDecides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := numbered(anyRules(t, 1))
		set, err := policy.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		found := Lint(d, specs)
		for range 8 {
			r := anyRequest(t)
			v := policy.Evaluate(set, &r)
			for _, f := range found {
				if f.Level != LintError {
					continue
				}
				if f.Code == "never" && set.Speaks(f.Rule, &r) {
					t.Fatalf("%s speaks of %s %s: %s", f.Rule, r.Tool.Name, r.Args, f.Text)
				}
				decides := v.Rule == f.Rule
				for _, c := range v.Commands {
					decides = decides || c.Rule == f.Rule
				}
				if decides {
					t.Fatalf("%s decides %s %s: %s", f.Rule, r.Tool.Name, r.Args, f.Text)
				}
			}
		}
	})
}

// Of a file of as many rules as there may be, all about one tool, a bounded
// number of pairs is compared, and it is said that not all were.
// Guarantee: G31.
func TestTheLargestFileIsLintedInPart(t *testing.T) {
	var rules []policy.Rule
	for i := range policy.MaxRules - len(policy.BuiltinRules()) {
		rules = append(rules, policy.Rule{Verdict: policy.Ask, Match: policy.Match{Tool: []string{"exec"}, Command: &policy.CommandMatch{Program: []string{fmt.Sprintf("p%d", i)}}}})
	}
	d := numbered(rules)
	found := Lint(d, specs)
	if got := found[len(found)-1]; got.Code != "unfinished" || got.Level != LintWarning {
		t.Errorf("the last finding is %+v", got)
	}
}

package simulate

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

var (
	exec = belay.ToolSpec{Name: "exec", Destructive: true, Access: belay.Write, Capabilities: []string{"process"}, Command: &belay.CommandArgs{Line: "command"},
		Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"number","minimum":1,"maximum":600},"shell":{"type":"string","enum":["sh","bash"]}},"required":["command"],"additionalProperties":false}`)}
	read = belay.ToolSpec{Name: "read", ReadOnly: true, PathArg: "path", Access: belay.Read,
		Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"array","items":{"type":"integer"}}},"required":["path"],"additionalProperties":false}`)}
	write = belay.ToolSpec{Name: "write", PathArg: "path", Access: belay.Write, Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}
	fetch = belay.ToolSpec{Name: "fetch", HostArg: "url", Capabilities: []string{"network"}, Input: json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"}},"additionalProperties":{"type":"boolean"}}`)}
	done  = belay.ToolSpec{Name: "complete_task", Handled: "complete", Input: json.RawMessage(`{"type":"object"}`)}
	specs = []belay.ToolSpec{exec, read, write, fetch, done}
)

// numbered gives rules a place and the tier user, if they have none.
func numbered(rules []policy.Rule) policy.Document {
	d := policy.Document{Version: policy.FormatVersion, Rules: policy.BuiltinRules(), Groups: []policy.Group{{Name: "none"}, {Name: "files", Tools: []string{"read", "write"}}}}
	for i, r := range rules {
		if r.ID == "" {
			r.ID = fmt.Sprintf("r%d", i)
		}
		if r.Tier == "" {
			r.Tier = policy.TierUser
		}
		r.Where = fmt.Sprintf("f.yaml:%d:5", i+1)
		d.Rules = append(d.Rules, r)
	}
	return d
}

func compiled(t interface{ Fatal(...any) }, rules ...policy.Rule) *policy.Set {
	set, err := policy.Compile(numbered(rules))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func anyRule(t *rapid.T, i int) policy.Rule {
	some := func(name string, from ...string) []string {
		if !rapid.Bool().Draw(t, "has "+name) {
			return nil
		}
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 2, rapid.ID[string]).Draw(t, name)
	}
	r := policy.Rule{ID: fmt.Sprintf("r%d", i), Tier: rapid.SampledFrom([]policy.Tier{policy.TierWorkspace, policy.TierUser}).Draw(t, "tier"), Priority: rapid.IntRange(0, 2).Draw(t, "priority"),
		Verdict: rapid.SampledFrom([]policy.Decision{policy.Allow, policy.Ask, policy.Deny}).Draw(t, "verdict"),
		Match: policy.Match{Tool: some("tool", "exec", "read", "write", "e*", "*", "group:files"), NotTool: some("not", "read", "w*"), Does: some("does", "reads", "changes", "runs", "edits"),
			Taint: some("taint", "any", "none", "web"), Flow: some("flow", "egress", "secret"), Host: some("host", "x.org", "*.org")}}
	if rapid.Bool().Draw(t, "args") {
		r.Args = []policy.ArgMatch{{Path: rapid.SampledFrom([]string{"command", "path", "nothing"}).Draw(t, "arg"), Contains: rapid.SampledFrom([]string{"a", "git"}).Draw(t, "contains")}}
	}
	if rapid.Bool().Draw(t, "command") {
		r.Command = &policy.CommandMatch{Program: some("program", "git", "curl", "g*"), NotProgram: some("notprogram", "rm"), Subcommand: some("sub", "push", "log"), Class: some("class", "read-only", "network", "unparsable", "destructive"), Prefix: some("prefix", "push"),
			Matches: rapid.SampledFrom([]string{"", "git", "x^git", "^rm"}).Draw(t, "matches")}
	}
	if rapid.Bool().Draw(t, "path") {
		r.Path = &policy.PathMatch{Match: some("match", "**", "src/**", "/etc/**"), Where: rapid.SampledFrom([]string{"", "inside", "outside"}).Draw(t, "where"), Access: rapid.SampledFrom([]string{"", "read", "write"}).Draw(t, "access")}
	}
	return r
}

func anyRules(t *rapid.T, least int) (rules []policy.Rule) {
	for i := range rapid.IntRange(least, 5).Draw(t, "rules") {
		rules = append(rules, anyRule(t, i))
	}
	return rules
}

func anyRequest(t *rapid.T) policy.Request {
	spec := rapid.SampledFrom(specs).Draw(t, "tool")
	r := policy.Request{Tool: spec, Mode: rapid.SampledFrom([]belay.Mode{belay.ModeDefault, belay.ModePlan, belay.ModeAuto}).Draw(t, "mode"), Workspace: "/w", Level: "L0", Network: "full"}
	switch spec.Name {
	case "exec":
		line := rapid.SampledFrom([]string{"git log", "git push", "git -c a=b push", "rm -rf src", "curl x.org", "curl a.x.org", "$X", "cat src/a", "cat /etc/passwd", "echo a > src/b; git push", "touch src/c", "cat .env"}).Draw(t, "line")
		r.Args = json.RawMessage(fmt.Sprintf(`{"command":%q}`, line))
	case "fetch":
		r.Args = json.RawMessage(`{"url":"https://a.x.org/"}`)
	default:
		p := rapid.SampledFrom([]string{"src/a", "b", "/etc/passwd", ".env"}).Draw(t, "path")
		r.Paths, r.Args = []string{p}, json.RawMessage(fmt.Sprintf(`{"path":%q}`, p))
	}
	r.Commands = policy.CommandsOf(spec, r.Args, policy.Place{Workspace: "/w", Home: "/h"})
	if k := rapid.SampledFrom([]string{"", "web", "secret"}).Draw(t, "taint"); k != "" {
		r.Taint = []policy.Taint{{Kind: k}}
	}
	return r
}

// An explanation says what the gate does, gives every rule that spoke its fate,
// and ends with something that would change the verdict.
// Guarantee: G24.
func TestAnExplanationIsTheVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, r := compiled(t, anyRules(t, 0)...), anyRequest(t)
		v, e := policy.Evaluate(set, &r), Explain(set, r)
		if e.Decision != v.Decision || e.Rule != v.Rule || e.Code != v.ReasonCode || len(e.Matched) != len(v.Matched) || len(e.Commands) != len(v.Commands) {
			t.Fatalf("the verdict is %+v, explained as %+v", v, e)
		}
		spoke := map[string]bool{}
		for i, h := range e.Matched {
			if h.Rule != v.Matched[i].Rule || h.Lost != v.Matched[i].Lost || h.Why == "" {
				t.Fatalf("%+v is explained as %+v", v.Matched[i], h)
			}
			spoke[h.Rule] = true
		}
		for _, s := range e.Silent {
			if spoke[s.Rule] || s.Misses == "" {
				t.Fatalf("%+v is said to be silent", s)
			}
		}
		if len(e.Next) == 0 {
			t.Fatal("nothing is said to change it")
		}
	})
}

// A rule that is offered does what is said, speaks of its example, and never
// allows what content from outside made the gate ask about.
// Guarantee: G24.
func TestAnOfferedRuleDoesWhatIsSaid(t *testing.T) {
	offered := 0
	rapid.Check(t, func(t *rapid.T) {
		set, r := compiled(t, anyRules(t, 0)...), anyRequest(t)
		want := rapid.SampledFrom([]policy.Decision{policy.Allow, policy.Ask}).Draw(t, "want")
		rules := candidates(set, r, want)
		if len(rules) == 0 {
			return
		}
		offered++
		before := policy.Evaluate(set, &r)
		with, err := add(set, rules...)
		if err != nil {
			t.Fatal(err)
		}
		if got := policy.Evaluate(with, &r).Decision; got != want {
			t.Fatalf("it is %s, not %s", got, want)
		}
		if want == policy.Allow && slices.Contains(before.Tags, "taint") {
			t.Fatalf("%+v allows what is tainted", rules)
		}
		for _, x := range rules {
			if c := x.Command; c != nil && len(c.Class) != 1 {
				t.Fatalf("%+v covers more than one class", x)
			}
		}
	})
	if offered == 0 {
		t.Error("no rule was ever offered")
	}
	args := []byte(`{"command":"curl https://x.org/a"}`)
	r := policy.Request{Tool: exec, Args: args, Mode: belay.ModeDefault, Workspace: "/w", Level: "L0", Network: "full", Commands: policy.CommandsOf(exec, args, policy.Place{Workspace: "/w"})}
	if len(candidates(compiled(t), r, policy.Allow)) != 1 {
		t.Error("no rule is offered for a host")
	}
	r.Taint = []policy.Taint{{Kind: "web", Origin: "x.org"}}
	if got := candidates(compiled(t), r, policy.Allow); len(got) > 0 {
		t.Errorf("%+v is offered to a tainted thread", got)
	}
}

func TestARuleIsOfferedForWhatWasAsked(t *testing.T) {
	for _, c := range []struct {
		tool belay.ToolSpec
		args string
		want string
	}{
		{exec, `{"command":"npm test"}`, `allow-npm-test {"tool":["exec"],"command":{"program":["npm"],"class":["write-workspace"],"prefix":["test"]},"if":"args.command == \"npm test\""} [{command: npm test}]`},
		{exec, `{"command":"git push origin main"}`, `allow-git-push {"tool":["exec"],"command":{"program":["git"],"class":["network"],"prefix":["push"]},"if":"args.command == \"git push origin main\""} [{command: git push origin main}]`},
		{exec, `{"command":"$X"}`, ""},
		{exec, `{"command":""}`, ""},
		{exec, `[]`, ""},
		{write, `{"path":"docs/a/b.md"}`, `allow-write-docs-a {"tool":["write"],"path":{"match":["docs/a/*"],"where":"inside"}} [{path: docs/a/b.md}]`},
		{write, `{"path":"b.md"}`, `allow-write-b.md {"tool":["write"],"path":{"match":["b.md"],"where":"inside"}} [{path: b.md}]`},
	} {
		r := policy.Request{Tool: c.tool, Args: json.RawMessage(c.args), Mode: belay.ModeDefault, Workspace: "/w", Level: "L0", Network: "full", Commands: policy.CommandsOf(c.tool, []byte(c.args), policy.Place{Workspace: "/w"})}
		var in struct{ Path string }
		if json.Unmarshal(r.Args, &in) == nil && in.Path != "" {
			r.Paths = []string{in.Path}
		}
		got := ""
		for _, x := range candidates(compiled(t), r, policy.Allow) {
			m, err := json.Marshal(x.Match)
			if err != nil {
				t.Fatal(err)
			}
			got = fmt.Sprintf("%s %s [", x.ID, m)
			for _, e := range x.Examples.Match {
				if e.Command != "" {
					got += "{command: " + e.Command + "}"
				} else {
					got += "{path: " + e.Path + "}"
				}
			}
			got += "]"
		}
		if got != c.want {
			t.Errorf("%s %s: got\n%s\nwant\n%s", c.tool.Name, c.args, got, c.want)
		}
	}
}

package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// TestTaintIsNamedWithTheWaysOut: what is asked or denied because of taint says what the
// conversation has from outside, whence, and each way out that there is for this call.
// Guarantee: G15.
func TestTaintIsNamedWithTheWaysOut(t *testing.T) {
	const trust, rule, hints, folder, wait = "t in the chat, or belay approve ID --clear-taint", "a rule with taint", "trust-hints: true", "trusted: in your policy.yaml", "--approvals=wait"
	web, desk, key, ws := Taint{Kind: TaintWeb, Origin: "a.example"}, Taint{Kind: TaintMCP, Origin: "desk"}, Taint{Kind: TaintSecret, Origin: ".env"}, Taint{Kind: TaintWorkspace, Origin: "/ws"}
	read := Request{Tool: belay.ToolSpec{Name: "read", ReadOnly: true, PathArg: "path", Access: belay.Read}, Paths: []string{".env"}, Workspace: "/ws"}
	server := func(local bool) Request {
		spec := belay.ToolSpec{Name: "mcp__books__add", Server: "books", Untrusted: true, Destructive: true, Capabilities: []string{capNetwork}}
		if local {
			spec.Capabilities, spec.Bounds, spec.Access = []string{capProcess}, &belay.ToolBounds{Network: belay.NetworkFull}, belay.Write
		}
		return Request{Tool: spec, Args: json.RawMessage("{}"), Workspace: "/ws", Level: "L3", Network: belay.NetworkFull, Confine: true}
	}
	exec := runLine("make")
	exec.Grants = []Grant{{Tool: "exec", Tier: TierUser, Kind: "answer"}}
	egress := Rule{ID: "mine", Tier: TierUser, Verdict: Ask, Match: Match{Tool: []string{"exec"}, Taint: []string{"web"}}}
	for _, c := range []struct {
		name  string
		r     Request
		taint []Taint
		rules []Rule
		names []string
		ways  []string
		not   []string
	}{
		{"a page", fetch("fetch"), []Taint{ws, web}, nil, []string{"web:a.example"}, []string{trust, rule}, []string{hints, "/ws", folder}},
		{"two origins", exec, []Taint{web, desk}, nil, []string{"web:a.example", "mcp:desk"}, []string{trust, rule}, []string{hints}},
		{"a server over HTTP", server(false), []Taint{desk}, nil, []string{"mcp:desk"}, []string{trust, rule}, []string{hints}},
		{"a server's program", server(true), []Taint{desk}, nil, []string{"mcp:desk"}, []string{trust, rule, hints, "server books"}, nil},
		{"a secret to read", read, []Taint{web}, nil, []string{"web:a.example"}, []string{trust, rule}, []string{hints, folder}},
		{"a secret to read, of strangers", read, []Taint{ws}, nil, []string{"workspace:/ws"}, []string{trust, rule, folder}, []string{hints}},
		{"a secret that was read", exec, []Taint{web, key}, nil, []string{"web:a.example", "secret:.env"}, []string{trust}, []string{rule, hints}},
		{"a person's rule", exec, []Taint{web}, []Rule{egress}, []string{"web:a.example"}, []string{trust, rule}, []string{hints}},
		{"no taint", exec, nil, []Rule{{ID: "mine", Tier: TierAdmin, Verdict: Ask, Match: Match{Tool: []string{"exec"}}}}, nil, nil, []string{trust, rule, hints}},
		{"taint is no reason", exec, []Taint{ws}, []Rule{{ID: "mine", Tier: TierAdmin, Verdict: Ask, Match: Match{Tool: []string{"exec"}}}}, nil, nil, []string{trust, rule, hints, "/ws"}},
	} {
		for _, how := range []string{"asked", "headless", "never"} {
			r := c.r
			r.Mode, r.Taint, r.Headless = belay.ModeDefault, c.taint, how == "headless"
			if how == "never" {
				r.Mode = belay.ModeNever
			}
			v := verdictOf(compiled(t, c.rules...), r)
			if want := map[string]Decision{"asked": Ask}[how]; v.Decision == Allow || want != "" && v.Decision != want {
				t.Errorf("%s, %s: %s (%s)", c.name, how, v.Decision, v.Rule)
			}
			for _, name := range c.names {
				if !strings.Contains(v.Reason, name) {
					t.Errorf("%s, %s: the reason doesn't name %s: %s", c.name, how, name, v.Reason)
				}
			}
			for _, way := range c.ways {
				if !strings.Contains(v.Hint, way) {
					t.Errorf("%s, %s: the hint doesn't name %q: %s", c.name, how, way, v.Hint)
				}
			}
			for _, not := range c.not {
				if strings.Contains(v.Hint+v.Reason, not) {
					t.Errorf("%s, %s: %q is no way out of this, or no reason: %s; %s", c.name, how, not, v.Reason, v.Hint)
				}
			}
			if how == "headless" && !strings.Contains(v.Hint, wait) {
				t.Errorf("%s: the hint doesn't say how to be asked: %s", c.name, v.Hint)
			}
		}
	}
}

// TestManyOriginsAreNamedInPart: a reason stays short, and has the newest ones.
func TestManyOriginsAreNamedInPart(t *testing.T) {
	r := fetch("fetch")
	r.Mode = belay.ModeDefault
	for _, h := range "abcdefghij" {
		r.Taint = append(r.Taint, Taint{Kind: TaintWeb, Origin: string(h) + ".example"})
	}
	if v := verdictOf(Builtin(), r); !strings.Contains(v.Reason, "is in the conversation (web:j.example, web:i.example, web:h.example, web:g.example, web:f.example, web:e.example, 4 more), and") {
		t.Error(v.Reason)
	}
}

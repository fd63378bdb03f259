package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
)

// line is what exec declares.
var line = &belay.CommandArgs{Line: "command", Argv: "argv", Dir: "dir", Env: "env"}

func compiled(t interface{ Fatal(...any) }, rules ...Rule) *Set {
	s, err := Compile(Document{Version: 1, Rules: append(BuiltinRules(), rules...), Groups: []Group{{Name: "files", Tools: []string{"read", "edit"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func anyRule(t *rapid.T, i int) Rule {
	r := Rule{ID: fmt.Sprint("r", i), Tier: rapid.SampledFrom(Tiers[1:]).Draw(t, "tier"), Priority: rapid.IntRange(0, 3).Draw(t, "priority"), Verdict: rapid.SampledFrom(decisions[1:]).Draw(t, "verdict")}
	pick := func(name string, from ...string) []string {
		if rapid.IntRange(0, 3).Draw(t, name+"?") > 0 {
			return nil
		}
		return []string{rapid.SampledFrom(from).Draw(t, name)}
	}
	r.Tool = pick("tool", "read", "ed*", "exec", "group:files")
	r.NotTool = pick("not", "exec", "read")
	r.Does = pick("does", "reads", "edits", "changes", "runs")
	r.Taint = pick("taint", "none", "any", "secret", "web")
	r.Host = pick("host", "a.example", "*.example")
	r.Flow = pick("flow", "egress", "secret")
	if rapid.IntRange(0, 3).Draw(t, "path?") == 0 {
		r.Path = &PathMatch{Match: pick("glob", "**/*", "a", "/etc/**"), Where: rapid.SampledFrom([]string{"", "inside", "outside"}).Draw(t, "where"), Access: rapid.SampledFrom([]string{"", "read", "write"}).Draw(t, "how")}
	}
	if rapid.IntRange(0, 3).Draw(t, "command?") == 0 {
		r.Command = &CommandMatch{Program: pick("program", "git", "g*"), Class: pick("class", words(classes)...), Prefix: pick("prefix", "push")}
	}
	if rapid.IntRange(0, 4).Draw(t, "if?") == 0 {
		r.If = rapid.SampledFrom([]string{"tool == 'exec'", "args.n > 1", "size(paths) == 1", "program == 'git'"}).Draw(t, "if")
	}
	return r
}

func anyRules(t *rapid.T) (rules []Rule) {
	for i := range rapid.IntRange(0, 6).Draw(t, "rules") {
		rules = append(rules, anyRule(t, i))
	}
	return rules
}

func anyCommand(t *rapid.T) Command {
	return Command{Name: rapid.SampledFrom([]string{"git", "ls", "/tmp/git"}).Draw(t, "program"), Args: rapid.SampledFrom([][]string{nil, {"push"}, {"-C", "x", "push"}, {".env"}}).Draw(t, "argv"),
		Class: rapid.SampledFrom(classes).Draw(t, "class"), Reads: rapid.SampledFrom([][]string{nil, {"/ws/a"}, {"/etc/passwd"}}).Draw(t, "reads"),
		Hosts: rapid.SampledFrom([][]string{nil, {"a.example"}, {"b.test"}}).Draw(t, "hosts")}
}

func fullRequest(t *rapid.T) Request {
	r := anyRequest(t)
	r.Workspace = "/ws"
	r.Args = json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"n":2}`, `{"n":"x"}`, `[]`, `3`}).Draw(t, "args"))
	r.Level = rapid.SampledFrom([]string{"", "L0", "L2"}).Draw(t, "level")
	r.Tool.Capabilities = rapid.SampledFrom([][]string{nil, {"network"}, {"process"}, {"secrets"}}).Draw(t, "caps")
	for range rapid.IntRange(0, 2).Draw(t, "taints") {
		r.Taint = append(r.Taint, Taint{Kind: rapid.SampledFrom([]string{"web", "tool", TaintWorkspace, TaintSecret}).Draw(t, "kind"), Origin: "x", Seq: 1})
	}
	if r.Tool.Handled == "" && rapid.Bool().Draw(t, "shell") {
		r.Tool.Command = line
		for range rapid.IntRange(0, 3).Draw(t, "commands") {
			r.Commands = append(r.Commands, anyCommand(t))
		}
	}
	return r
}

// Law: deny is final. Whatever rules there are, one more deny only makes
// verdicts stricter, and if it speaks of the call the call is denied.
// Guarantee: G1.
func TestADenyNeverWeakensAndIsFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := anyRules(t), fullRequest(t)
		more := anyRule(t, 99)
		more.Verdict = Deny
		before, after := verdictOf(compiled(t, rules...), r), verdictOf(compiled(t, append(rules, more)...), r)
		if rank(after.Decision) < rank(before.Decision) {
			t.Fatalf("%+v: %s became %s", r, before.Decision, after.Decision)
		}
		if slices.ContainsFunc(after.Matched, func(h Hit) bool { return h.Decision == Deny }) && after.Decision != Deny {
			t.Fatalf("%+v: a deny spoke, and it is %s", r, after.Decision)
		}
	})
}

// A workspace that nobody trusts can ask and deny: neither weakens anything.
// Guarantee: G13.
func TestWhatNarrowsNeverWeakens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := anyRules(t), fullRequest(t)
		more := anyRule(t, 99)
		more.Tier, more.Verdict = TierWorkspace, rapid.SampledFrom([]Decision{Ask, Deny}).Draw(t, "narrow")
		for i := range rules {
			if rules[i].Tier == TierWorkspace {
				rules[i].Tier = TierUser
			}
		}
		before, after := verdictOf(compiled(t, rules...), r), verdictOf(compiled(t, append(rules, more)...), r)
		if rank(after.Decision) < rank(before.Decision) {
			t.Fatalf("%+v: %s (%s) became %s (%s)", r, before.Decision, before.Rule, after.Decision, after.Rule)
		}
	})
}

// No rule that isn't an allow ever makes a call allowed.
func TestOnlyAnAllowAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := fullRequest(t)
		v := verdictOf(compiled(t, anyRules(t)...), r)
		if v.Decision == Allow && !slices.ContainsFunc(v.Matched, func(h Hit) bool { return h.Decision == Allow && h.Rule == v.Rule }) {
			t.Fatalf("%+v: allowed by %+v", r, v)
		}
	})
}

// The order of rules doesn't matter beyond tier and priority.
func TestTheOrderOfRulesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := anyRules(t), fullRequest(t)
		other := rapid.Permutation(rules).Draw(t, "order")
		a, b := verdictOf(compiled(t, rules...), r), verdictOf(compiled(t, other...), r)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%+v:\n%+v\n%+v", r, a, b)
		}
	})
}

// A command line is what its strictest command is: every one must be allowed,
// any can deny.
// Guarantee: G18.
func TestACommandLineIsItsStrictestCommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := anyRules(t), fullRequest(t)
		r.Tool.Command, r.Tool.Handled = line, ""
		if len(r.Commands) == 0 {
			r.Commands = []Command{anyCommand(t), anyCommand(t)}
		}
		set := compiled(t, rules...)
		want := Decision("")
		for i := range r.Commands {
			alone := r
			alone.Commands = r.Commands[i : i+1]
			want = Join(want, verdictOf(set, alone).Decision)
		}
		if v := verdictOf(set, r); v.Decision != want || r.Use.Use == "" && set.Permits(r.Mode) && len(v.Commands) != len(r.Commands) {
			t.Fatalf("%+v: %s, its commands alone %s", r, v.Decision, want)
		}
	})
}

// What a tainted thread could leak needs a person or a rule that names it, and
// once a secret is known nothing but a person lets it out.
// Guarantee: G15.
func TestTaintIsNotSilenced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := anyRules(t), fullRequest(t)
		r.Taint = []Taint{{Kind: "web", Origin: "x", Seq: 1}}
		secret := rapid.Bool().Draw(t, "secret")
		if secret {
			r.Taint = append(r.Taint, Taint{Kind: TaintSecret, Origin: ".env", Seq: 2})
		}
		v := verdictOf(compiled(t, rules...), r)
		if v.Decision != Allow || r.Tool.Handled != "" {
			return
		}
		for _, sub := range subjectsOf(&r) {
			i := slices.IndexFunc(rules, func(o Rule) bool { return v.Rule == o.name() })
			if sub.egress && (secret || i < 0 || !seesOf(&rules[i]).egress) || sub.secret && (i < 0 || !seesOf(&rules[i]).secret) {
				t.Fatalf("%+v: allowed by %s", r, v.Rule)
			}
		}
	})
}

// TestTheBuiltInRulesHaveTheirDigest: it is found out later than others'.
func TestTheBuiltInRulesHaveTheirDigest(t *testing.T) {
	s, err := Compile(*Builtin().Document())
	if err != nil {
		t.Fatal(err)
	}
	if got := Builtin().Digest(); got == "" || got != s.Digest() || got != Builtin().Digest() {
		t.Errorf("got %s, want %s", got, s.Digest())
	}
}

// Bypass needs an administrator's rule; then nothing but deny and what would
// leak a secret stops a call.
// Guarantee: G19.
func TestBypassNeedsAnAdministrator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := fullRequest(t)
		r.Mode, r.Headless, r.Taint = belay.ModeBypass, false, nil
		permit := Rule{ID: "bypass", Match: Match{Mode: []belay.Mode{belay.ModeBypass}}, Verdict: Allow}
		for _, tier := range Tiers[1:] {
			permit.Tier = tier
			v := verdictOf(compiled(t, permit), r)
			if want := map[bool]Decision{true: Allow, false: Deny}[tier == TierAdmin]; v.Decision != want {
				t.Fatalf("permitted by %s: %s (%s) of %+v", tier, v.Decision, v.Rule, r)
			}
		}
	})
}

// Guarantee: G1.
func TestPrecedence(t *testing.T) {
	exec := Request{Tool: belay.ToolSpec{Name: "exec"}, Mode: belay.ModeDefault}
	rule := func(tier Tier, priority int, d Decision) Rule {
		return Rule{ID: fmt.Sprintf("%s-%d-%s", tier, priority, d), Tier: tier, Priority: priority, Verdict: d, Match: Match{Tool: []string{"exec"}}}
	}
	grant := func(kind string) Request {
		r := exec
		r.Grants = []Grant{{Tool: "exec", Tier: TierUser, Kind: kind}}
		return r
	}
	for name, c := range map[string]struct {
		rules []Rule
		r     Request
		want  Decision
		by    string
	}{
		"an allow silences the mode":               {[]Rule{rule(TierAgent, 0, Allow)}, exec, Allow, "agent/agent-0-allow"},
		"the higher priority speaks":               {[]Rule{rule(TierUser, 1, Ask), rule(TierUser, 2, Allow)}, exec, Allow, "user/user-2-allow"},
		"ask beats allow at the same":              {[]Rule{rule(TierUser, 2, Ask), rule(TierUser, 2, Allow)}, exec, Ask, "user/user-2-ask"},
		"a deny of any priority is final":          {[]Rule{rule(TierAgent, 0, Deny), rule(TierAdmin, 999, Allow)}, exec, Deny, "agent/agent-0-deny"},
		"also in its own tier":                     {[]Rule{rule(TierUser, 0, Deny), rule(TierUser, 9, Allow)}, exec, Deny, "user/user-0-deny"},
		"one tier that asks is enough":             {[]Rule{rule(TierWorkspace, 0, Ask), rule(TierAdmin, 999, Allow)}, exec, Ask, "workspace/workspace-0-ask"},
		"of equal verdicts the highest is named":   {[]Rule{rule(TierUser, 999, Allow), rule(TierAdmin, 0, Allow)}, exec, Allow, "admin/admin-0-allow"},
		"a grant is above the user's asks":         {[]Rule{rule(TierUser, 999, Ask)}, grant("rule"), Allow, "grant/exec"},
		"what was given before meets a file's ask": {[]Rule{rule(TierWorkspace, 0, Ask)}, grant("rule"), Ask, "workspace/workspace-0-ask"},
		"an answer settles it":                     {[]Rule{rule(TierWorkspace, 0, Ask)}, grant("answer"), Allow, "grant/exec"},
		"but not what an administrator asks":       {[]Rule{rule(TierAdmin, 0, Ask)}, grant("answer"), Ask, "admin/admin-0-ask"},
		"and no grant meets a deny":                {[]Rule{rule(TierWorkspace, 0, Deny)}, grant("answer"), Deny, "workspace/workspace-0-deny"},
	} {
		if v := verdictOf(compiled(t, c.rules...), c.r); v.Decision != c.want || v.Rule != c.by {
			t.Errorf("%s: %s by %s, want %s by %s", name, v.Decision, v.Rule, c.want, c.by)
		}
	}
}

// Every mode has its meaning, for each kind of call.
// Guarantee: G4.
func TestModes(t *testing.T) {
	command := func(class Class, reads ...string) Request {
		return Request{Tool: belay.ToolSpec{Name: "exec", Command: line, Destructive: true, Capabilities: []string{"process"}}, Commands: []Command{{Name: "x", Class: class, Reads: reads}}}
	}
	edit := func(path string) Request {
		return Request{Tool: belay.ToolSpec{Name: "edit", PathArg: "path", Access: belay.Write}, Paths: []string{path}}
	}
	calls := []struct {
		name string
		r    Request
	}{
		{"read", Request{Tool: belay.ToolSpec{Name: "read", ReadOnly: true, PathArg: "path", Access: belay.Read}, Paths: []string{"a"}}},
		{"look", command(ReadOnly, "/ws/a")}, {"look outside", command(ReadOnly, "/etc/passwd")}, {"edit", edit("a")}, {"edit outside", edit("../a")},
		{"build", command(WriteWorkspace)}, {"fetch", command(Network)}, {"remove", command(Destructive)}, {"escape", command(EscapeAttempt)}, {"riddle", command(Unparsable)},
	}
	var b strings.Builder
	for _, level := range []string{"L0", "L2"} {
		for _, m := range belay.Modes {
			fmt.Fprintf(&b, "%s %s:", level, m)
			for _, c := range calls {
				r := c.r
				r.Mode, r.Level, r.Workspace = m, level, "/ws"
				fmt.Fprintf(&b, " %s", map[Decision]string{Allow: "+", Ask: "?", Deny: "-"}[verdictOf(Builtin(), r).Decision])
			}
			b.WriteString("\n")
		}
	}
	//    read look outside edit outside build fetch remove escape riddle
	const want = `L0 default: + + ? ? ? ? ? ? ? ?
L0 plan: + + ? - - - - - - -
L0 accept_edits: + + ? + ? ? ? ? ? ?
L0 auto: + + ? + ? + ? ? ? ?
L0 on_request: + + ? + ? ? ? ? ? ?
L0 on_failure: + + ? + ? ? ? ? ? ?
L0 untrusted: + + ? ? ? ? ? ? ? ?
L0 never: + + - - - - - - - -
L0 bypass: - - - - - - - - - -
L2 default: + + ? ? ? ? ? ? ? ?
L2 plan: + + ? - - - - - - -
L2 accept_edits: + + ? + ? ? ? ? ? ?
L2 auto: + + ? + ? + ? ? ? ?
L2 on_request: + + ? + ? + ? ? ? ?
L2 on_failure: + + + + ? + + + ? ?
L2 untrusted: + + ? ? ? ? ? ? ? ?
L2 never: + + - - - - - - - -
L2 bypass: - - - - - - - - - -
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// A condition that gives no answer is a reason to be careful, never to allow.
func TestAConditionWithoutAnAnswerAllowsNothing(t *testing.T) {
	bomb := "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, a+b+c+d > 0))))"
	for _, text := range []string{"args.missing == 1", "args.n.startsWith('x')", bomb} {
		for _, d := range []Decision{Allow, Ask, Deny} {
			set := compiled(t, Rule{ID: "if", Tier: TierUser, Verdict: d, Match: Match{Tool: []string{"read"}, If: text}})
			v := verdictOf(set, Request{Tool: belay.ToolSpec{Name: "read", ReadOnly: true}, Args: json.RawMessage(`{"n":1}`), Mode: belay.ModeDefault})
			if spoke := v.Rule == "user/if"; spoke != (d != Allow) {
				t.Errorf("%s: a rule that says %s spoke: %v", text[:20], d, spoke)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	args := json.RawMessage(`{"a":{"b":[1,"two",{"c":true}]},"text":"hello","n":1.50,"none":null}`)
	num := func(f float64) *float64 { return &f }
	yes, no := true, false
	for _, c := range []struct {
		m    ArgMatch
		want bool
	}{
		{ArgMatch{Path: "a.b.0", Equals: 1.0}, true}, {ArgMatch{Path: "a.b.1", Equals: "two"}, true}, {ArgMatch{Path: "a.b.2.c", Equals: true}, true},
		{ArgMatch{Path: "a.b.9", Equals: 1}, false}, {ArgMatch{Path: "a.b.x", Equals: 1}, false}, {ArgMatch{Path: "n", Equals: 1.5}, true}, {ArgMatch{Path: "n", Equals: "1.5"}, false},
		{ArgMatch{Path: "text", Contains: "ell"}, true}, {ArgMatch{Path: "text", Matches: "^h.*o$"}, true}, {ArgMatch{Path: "text", Matches: "^e"}, false}, {ArgMatch{Path: "n", Matches: "1"}, false},
		{ArgMatch{Path: "a.b", Contains: "two"}, true}, {ArgMatch{Path: "a.b", Contains: "tw"}, false}, {ArgMatch{Path: "n", Less: num(2)}, true}, {ArgMatch{Path: "n", Greater: num(2)}, false},
		{ArgMatch{Path: "text", Less: num(2)}, false}, {ArgMatch{Path: "none", Exists: &yes}, true}, {ArgMatch{Path: "gone", Exists: &no}, true}, {ArgMatch{Path: "gone", Exists: &yes}, false},
	} {
		a, err := argumentOf(&c.m)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.holds(&arguments{raw: args}); got != c.want {
			t.Errorf("%+v: %v", c.m, got)
		}
		for _, odd := range []string{"", "[]", "3", `"x"`, "null", "{"} {
			if a.holds(&arguments{raw: json.RawMessage(odd)}) && c.m.Exists == nil {
				t.Errorf("%+v holds for %q", c.m, odd)
			}
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.go", "a.go", true}, {"*.go", "x/y/a.go", true}, {"src/*.go", "src/a.go", true}, {"src/*.go", "src/x/a.go", false}, {"src/**", "src/x/a.go", true}, {"src/**", "src", true},
		{"src/", "src/a", true}, {"**/.git/**", ".git/config", true}, {"**/.git/**", "a/b/.git/x/y", true}, {"**/.git/**", "a.git/x", false}, {"/etc/*", "/etc/passwd", true}, {"/etc/*", "etc/passwd", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"**/b/**/d", "a/b/c/d", true}, {"**/b/**/d", "a/b/d", true}, {"**/b/**/d", "b/x/b/y", false}, {"src/**", "src/../x", false},
	} {
		if got := Glob(c.pattern, c.path); got != c.want {
			t.Errorf("%s of %s: %v", c.pattern, c.path, got)
		}
	}
}

func TestSecretsAreKnownByName(t *testing.T) {
	for p, want := range map[string]bool{
		".env": true, "a/.env": true, ".env.local": true, ".env.example": false, "config/prod.env": true, "/home/u/.ssh/id_rsa": true, "/home/u/.ssh/id_rsa.pub": false, "~/.AWS/credentials": true,
		"/proc/self/environ": true, "@.env": true, "--file=.env": true, "main.go": false, "environment.md": false, "keys.go": false, "server.key": true, "": false,
	} {
		if got := Secret(p); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
}

func TestAPatternMayNameASecret(t *testing.T) {
	for p, want := range map[string]bool{"/ws/.env*": true, "*": true, "src/*": true, "*.go": false, "src/*.md": false, "a/*.pem": true, ".ssh/*.txt": true, "a.go": false, "[a-z]*.json": false, "k[e]y": true} {
		if got := maybeSecret(p); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
}

func TestCapsAndOwners(t *testing.T) {
	set, err := Compile(Document{Version: 1, Rules: BuiltinRules(), Groups: []Group{{Name: "web", Tools: []string{"web_*"}}}, Caps: []Cap{{Tool: "group:web", Calls: 5}, {Tool: "web_fetch", Calls: 2}, {Tool: "*", Calls: 9}}, OwnerOnly: []string{"Gate*"}})
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]int{"web_fetch": 2, "web_search": 5, "read": 9} {
		if got, ok := set.CapOf(tool); !ok || got != want {
			t.Errorf("%s: %d, %v", tool, got, ok)
		}
	}
	r := Request{Tool: belay.ToolSpec{Name: "gateway", ReadOnly: true}, Mode: belay.ModeDefault}
	if v := verdictOf(set, r); v.Decision != Allow {
		t.Errorf("the owner: %+v", v)
	}
	r.Guest = true
	if v := verdictOf(set, r); v.Decision != Deny || v.ReasonCode != "OWNER_ONLY" {
		t.Errorf("a guest: %+v", v)
	}
}

func TestCapabilitiesNarrow(t *testing.T) {
	rules, err := CapabilityRules(TierAgent, []string{"filesystem-read", "git-access", "command-jq", "api-key-storage", "special_tool"})
	if err != nil {
		t.Fatal(err)
	}
	set := compiled(t, rules...)
	call := func(tool string, readOnly bool, program string) Decision {
		r := Request{Tool: belay.ToolSpec{Name: tool, ReadOnly: readOnly}, Mode: belay.ModeDefault}
		if program != "" {
			r.Tool.Command, r.Commands = line, []Command{{Name: program, Class: ReadOnly}}
		}
		return verdictOf(set, r).Decision
	}
	for _, c := range []struct {
		tool     string
		readOnly bool
		program  string
		want     Decision
	}{{"read", true, "", Allow}, {"write", false, "", Deny}, {"exec", false, "git", Allow}, {"exec", false, "jq", Allow}, {"exec", false, "curl", Deny}, {"special_tool", false, "", Ask}, {"web_fetch", true, "", Deny}} {
		if got := call(c.tool, c.readOnly, c.program); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.program, got, c.want)
		}
	}
	if v := verdictOf(set, Request{Tool: belay.ToolSpec{Name: "complete_task", Handled: "complete"}, Mode: belay.ModeDefault}); v.Decision != Allow {
		t.Errorf("an agent can't end its turn: %+v", v)
	}
}

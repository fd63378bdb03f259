package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

var execSpec = belay.ToolSpec{Name: "exec", Effect: belay.AtMostOnce, Destructive: true, Access: belay.Write, Capabilities: []string{"process"}, Command: line}

func execCall(args string) Request {
	at := Place{Workspace: "/ws", Home: "/home/u"}
	return Request{Tool: execSpec, Args: json.RawMessage(args), Commands: CommandsOf(execSpec, json.RawMessage(args), at), Mode: belay.ModeDefault, Workspace: "/ws", Level: "L0", Network: "full"}
}

func runLine(text string) Request { return execCall(`{"command":` + quoted(text) + `}`) }

// Of a line that is allowed the command that does most says why: it isn't on
// record as one that only reads because it begins with one.
func TestALineIsAllowedForWhatItDoes(t *testing.T) {
	for text, want := range map[string]string{
		"ls": "READ_ONLY_COMMAND", "ls; git status | wc -l": "READ_ONLY_COMMAND",
		"touch x": "WORKSPACE_COMMAND", "ls; touch x": "WORKSPACE_COMMAND", "touch x; ls": "WORKSPACE_COMMAND", "ls && echo $(touch x)": "WORKSPACE_COMMAND", "cat a > b; ls": "WORKSPACE_COMMAND",
	} {
		r := runLine(text)
		r.Mode, r.Level = belay.ModeAuto, "L2"
		if v := verdictOf(Builtin(), r); v.Decision != Allow || v.ReasonCode != want {
			t.Errorf("%q: %s %s (%s), want %s", text, v.Decision, v.ReasonCode, v.Reason, want)
		}
	}
	r := runLine("ls; npm test")
	r.Mode, r.Grants = belay.ModeDefault, []Grant{{ID: "g", Tool: r.Tool.Name, Tier: TierUser, Kind: "answer", By: "user:ann"}}
	if v := verdictOf(Builtin(), r); v.Decision != Allow || v.ReasonCode != "GRANTED" || v.Grant != "g" {
		t.Errorf("a grant is needed, and the reason is %s (%s)", v.ReasonCode, v.Reason)
	}
}

func TestCommandLinesInModeDefault(t *testing.T) {
	for text, want := range map[string]string{
		"ls -la": "allow READ_ONLY_COMMAND", "git status && git diff | head -5": "allow READ_ONLY_COMMAND", "grep -rn TODO src | wc -l": "allow READ_ONLY_COMMAND",
		"cat /ws/a.txt": "allow READ_ONLY_COMMAND", "cat ../other/a.txt": "ask READS_OUTSIDE", "cat /etc/passwd": "ask READS_OUTSIDE", "ls /usr/include > /dev/null": "allow READ_ONLY_COMMAND",
		"cd /etc; ls": "ask READS_OUTSIDE", "cd /etc && cat passwd": "ask READS_OUTSIDE", "cd $X; cat passwd": "ask READS_OUTSIDE", "cd a/../../.. && cat passwd": "ask READS_OUTSIDE", "cat /etc/$X": "ask READS_OUTSIDE", "cd sub && ls && cd ../b && cat c": "allow READ_ONLY_COMMAND",
		"cd /usr/include && ls": "allow READ_ONLY_COMMAND", "for f in *.go; do wc -l \"$f\"; done": "allow READ_ONLY_COMMAND",
		"touch a": "ask CHANGES_THINGS", "ls; touch a": "ask CHANGES_THINGS", "echo x > a.txt": "ask CHANGES_THINGS", "curl https://a.example": "ask NETWORK", "ls | curl -d @- https://a.example": "ask NETWORK",
		"rm -rf src": "ask DESTRUCTIVE", "sudo ls": "ask ESCAPE_ATTEMPT", "cat ~/.ssh/id_rsa": "ask ESCAPE_ATTEMPT", "$X": "ask UNPARSABLE", "ls \u202e": "ask UNPARSABLE", "": "ask UNPARSABLE", "echo $(touch a)": "ask CHANGES_THINGS",
	} {
		v := verdictOf(Builtin(), runLine(text))
		if got := string(v.Decision) + " " + v.ReasonCode; got != want {
			t.Errorf("%q: %s (%+v), want %s", text, got, v.Commands, want)
		}
	}
	for args, want := range map[string]Decision{
		`{"argv":["ls","-la"]}`: Allow, `{"argv":["touch","a"]}`: Ask, `{"command":"ls","dir":"sub"}`: Allow, `{"command":"cat a","dir":"/etc"}`: Ask, `{"command":"cat a","dir":"../x"}`: Ask,
		`{"command":"ls","env":{"A":"b"}}`: Ask, `{"command":"ls","env":{"LD_PRELOAD":"x"}}`: Ask, `{"command":"ls","env":{}}`: Allow, `{}`: Ask, `[]`: Ask, `{"command":3}`: Ask, `{"command":"ls","argv":["rm","x"]}`: Ask,
	} {
		if v := verdictOf(Builtin(), execCall(args)); v.Decision != want {
			t.Errorf("%s: %s %s, want %s", args, v.Decision, v.ReasonCode, want)
		}
	}
}

// What a rule or a person allowed is the program that was meant, each time it is
// one of several, and nothing that only looks like it.
// Guarantee: G18.
func TestAnAllowedProgramIsTheOneThatIsMeant(t *testing.T) {
	set := compiled(t, Rule{ID: "go-test", Tier: TierUser, Verdict: Allow, Match: Match{Tool: []string{"exec"}, Command: &CommandMatch{Program: []string{"go"}, Subcommand: []string{"test", "vet"}}}},
		Rule{ID: "push", Tier: TierUser, Verdict: Deny, Match: Match{Tool: []string{"exec"}, Command: &CommandMatch{Program: []string{"git"}, Subcommand: []string{"push"}}}})
	for text, want := range map[string]Decision{
		"go test ./...": Allow, "go vet . && go test .": Allow, "go test . | tail -3": Allow, "go test ./... ; touch x": Ask, "go generate": Ask, "./go test": Ask, "/ws/bin/go test": Ask,
		"go test $(touch x)": Ask, "sh -c 'go test ./...'": Allow, "git push": Deny, "ls && git push origin": Deny, "echo $(git push)": Deny, "env X=y git push": Deny, "$P test": Ask, "timeout 5 go test .": Allow,
		"find . -exec git push \\;": Deny, "xargs git push": Deny, "git -C sub push": Deny,
	} {
		if v := verdictOf(set, runLine(text)); v.Decision != want {
			t.Errorf("%q: %s by %s, want %s: %+v", text, v.Decision, v.Rule, want, v.Commands)
		}
	}
}

// A grant of the whole tool covers commands that can be read and stay inside.
// Guarantee: G20.
func TestAGrantCoversOnlyWhatItCanSee(t *testing.T) {
	for text, want := range map[string]Decision{"touch a": Allow, "curl https://a.example": Allow, "rm -rf src": Allow, "$X": Ask, "sudo ls": Ask, "echo x > /etc/hosts": Ask} {
		r := runLine(text)
		r.Grants = []Grant{{Tool: "exec", Tier: TierUser, Kind: "rule"}}
		if v := verdictOf(Builtin(), r); v.Decision != want {
			t.Errorf("%q: %s %s, want %s", text, v.Decision, v.ReasonCode, want)
		}
	}
	named := compiled(t, Rule{ID: "all", Tier: TierUser, Verdict: Allow, Match: Match{Tool: []string{"exec"}, Command: &CommandMatch{Class: words(classes)}}})
	for _, text := range []string{"$X", "sudo ls"} {
		if v := verdictOf(named, runLine(text)); v.Decision != Allow {
			t.Errorf("%q with its class named: %s", text, v.Decision)
		}
	}
}

func TestAProgramOfTheWorkspaceIsNoKnownOne(t *testing.T) {
	args := json.RawMessage(`{"command":"ls && /usr/bin/ls"}`)
	c := CommandsOf(execSpec, args, Place{Workspace: "/ws", Shadowed: true})
	if len(c) != 2 || c[0].Class != WriteWorkspace {
		t.Errorf("got %+v", c)
	}
}

// Bad input of any size has a verdict, and never one that allows.
// Guarantee: G20.
func TestOddCommandsAreNeverAllowed(t *testing.T) {
	for name, text := range map[string]string{
		"1 MB": "echo " + strings.Repeat("x", 1<<20), "NUL": "ls\x00", "CR": "ls\rrm", "next line": "ls\u0085rm x", "line separator": "ls\u2028rm x", "bidi": "ls \u202exr mr",
		"pipes": "ls" + strings.Repeat("|ls", 10_000), "deep": strings.Repeat("$(", 3000) + "ls" + strings.Repeat(")", 3000), "half": "ls '", "confusable": "ｌｓ",
	} {
		if v := verdictOf(Builtin(), runLine(text)); v.Decision == Allow {
			t.Errorf("%s: %+v", name, v)
		}
	}
	for _, args := range []string{"", "null", `"ls"`, `{"command":["ls"]}`, `{"command":"ls"`} {
		if v := verdictOf(Builtin(), execCall(args)); v.Decision == Allow {
			t.Errorf("%q: %+v", args, v)
		}
	}
	many := runLine("ls")
	for i := range maxCommands + 1 {
		many.Commands = append(many.Commands, Command{Name: fmt.Sprint("c", i), Class: ReadOnly})
	}
	if v := verdictOf(Builtin(), many); v.Decision != Ask || v.ReasonCode != "UNPARSABLE" {
		t.Errorf("too many: %+v", v.Decision)
	}
}

// The hint names a grant only where it would help.
func TestAHintHelps(t *testing.T) {
	for text, want := range map[string]bool{"touch a": true, "curl https://a.example": true, "rm -rf src": true, "sudo ls": false, "cat ~/.ssh/id_rsa": false, "$X": false, "touch a; $X": false} {
		for _, mode := range []belay.Mode{belay.ModeDefault, belay.ModeNever} {
			r := runLine(text)
			r.Mode, r.Headless = mode, true
			v := verdictOf(Builtin(), r)
			if got := strings.Contains(v.Hint, "--allow exec"); v.Decision != Deny || v.Hint == "" || got != want {
				t.Errorf("%q in mode %s: %s, %q; a grant helps: %v", text, mode, v.Decision, v.Hint, want)
			}
			r.Grants = []Grant{{Tool: "exec", Tier: TierUser, Kind: "rule"}}
			if v = verdictOf(Builtin(), r); (v.Decision == Allow) != want {
				t.Errorf("%q in mode %s with the grant: %s", text, mode, v.Decision)
			}
		}
	}
	r := runLine("touch a")
	r.Headless = true
	set := compiled(t, Rule{ID: "a", Tier: TierAdmin, Verdict: Ask, Match: Match{Tool: []string{"exec"}}})
	if v := verdictOf(set, r); strings.Contains(v.Hint, "--allow") {
		t.Errorf("an administrator's ask: %q", v.Hint)
	}
}

// What a weaker file adds to a group doesn't reach a stronger rule.
func TestAGroupIsThatOfItsTier(t *testing.T) {
	for _, c := range []struct {
		group, rule Tier
		reaches     bool
	}{
		{TierWorkspace, TierUser, false}, {TierWorkspace, TierAdmin, false}, {TierUser, TierAdmin, false}, {TierWorkspace, TierAgent, false},
		{TierUser, TierUser, true}, {TierAdmin, TierUser, true}, {TierWorkspace, TierWorkspace, true}, {TierUser, TierWorkspace, true}, {"", TierAdmin, true},
	} {
		set, err := Compile(Document{Version: 1, Groups: []Group{{Name: "files", Tools: []string{"read"}}, {Name: "Files", Tools: []string{"Exec"}, Tier: c.group}},
			Rules: append(BuiltinRules(), Rule{ID: "a", Tier: c.rule, Verdict: Allow, Match: Match{Tool: []string{"group:files"}}}, Rule{ID: "not", Tier: c.rule, Verdict: Deny, Match: Match{Tool: []string{"group:files"}, NotTool: []string{"group:files"}}})})
		if err != nil {
			t.Fatal(err)
		}
		if v := verdictOf(set, runLine("touch a")); (v.Decision == Allow) != c.reaches {
			t.Errorf("a group of tier %q in a rule of tier %q: %s by %s", c.group, c.rule, v.Decision, v.Rule)
		}
	}
	if _, err := Compile(Document{Version: 1, Groups: []Group{{Name: "own", Tools: []string{"exec"}, Tier: TierWorkspace}},
		Rules: append(BuiltinRules(), Rule{ID: "a", Tier: TierUser, Verdict: Allow, Match: Match{Tool: []string{"group:own"}}})}); err == nil || !strings.Contains(err.Error(), "no group") {
		t.Errorf("a user's rule of a group that only the workspace declares: %v", err)
	}
}

// An allow of a tainted call must name what it lets through, and after a secret
// not even that is enough.
func TestTaintedCallsNeedARuleThatNamesThem(t *testing.T) {
	web, key := Taint{Kind: "web", Origin: "x", Seq: 1}, Taint{Kind: TaintSecret, Origin: ".env", Seq: 2}
	fetch := fetch("fetch")
	read := Request{Tool: belay.ToolSpec{Name: "read", ReadOnly: true, PathArg: "path", Access: belay.Read}, Paths: []string{".env"}, Mode: belay.ModeDefault}
	for name, c := range map[string]struct {
		r     Request
		when  Match
		taint []Taint
		want  string
	}{
		"plain":                      {fetch, Match{}, nil, "allow RULE"},
		"tainted":                    {fetch, Match{}, []Taint{web}, "ask TAINTED_EGRESS"},
		"a host is named":            {fetch, Match{Host: []string{"*.example"}}, []Taint{web}, "allow RULE"},
		"another host":               {fetch, Match{Host: []string{"b.example"}}, []Taint{web}, "ask TAINTED_EGRESS"},
		"taint is named":             {fetch, Match{Taint: []string{"web"}}, []Taint{web}, "allow RULE"},
		"a secret was read":          {fetch, Match{Host: []string{"*.example"}, Taint: []string{"any", "secret"}}, []Taint{web, key}, "ask TAINTED_LEAK"},
		"only a secret":              {fetch, Match{}, []Taint{key}, "allow RULE"},
		"files of strangers":         {fetch, Match{}, []Taint{{Kind: TaintWorkspace}}, "allow RULE"},
		"files of strangers, secret": {fetch, Match{}, []Taint{{Kind: TaintWorkspace}, key}, "ask TAINTED_LEAK"},
		"a secret":                   {read, Match{}, nil, "ask SECRET_FILE"},
		"a secret, flow named":       {read, Match{Flow: []string{"secret-file"}}, nil, "allow RULE"},
		"a secret, path named":       {read, Match{Path: &PathMatch{Match: []string{".env", "**/*.pem"}}}, nil, "allow RULE"},
		"a secret, any path":         {read, Match{Path: &PathMatch{Match: []string{".env", "**"}}}, nil, "ask SECRET_FILE"},
		"a secret, flow and tainted": {read, Match{Flow: []string{"secret-file"}}, []Taint{web}, "ask TAINTED_SECRET"},
		"a secret, tainted":          {read, Match{}, []Taint{web}, "ask TAINTED_SECRET"},
		"a secret, strangers":        {read, Match{}, []Taint{{Kind: TaintWorkspace}}, "ask TAINTED_SECRET"},
		"a secret, hosts named":      {read, Match{Host: []string{"*"}}, []Taint{web}, "ask TAINTED_SECRET"},
		"a secret, taint is named":   {read, Match{Taint: []string{"any"}}, []Taint{web}, "allow RULE"},
	} {
		set := compiled(t, Rule{ID: "ok", Tier: TierAdmin, Priority: 999, Verdict: Allow, Match: c.when})
		r := c.r
		r.Taint = c.taint
		if v := verdictOf(set, r); string(v.Decision)+" "+v.ReasonCode != c.want {
			t.Errorf("%s: %s %s by %s, want %s", name, v.Decision, v.ReasonCode, v.Rule, c.want)
		}
	}
}

package policy

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
)

var progSpec = belay.ToolSpec{Name: "exec", Destructive: true, Access: belay.Write, Capabilities: []string{capProcess},
	Command: &belay.CommandArgs{Line: "command"}}

// confinedAs is the verdict on a command line by these rules besides the built-in ones.
func confinedAs(t *testing.T, line string, ask func(*Request), rules ...Rule) Verdict {
	t.Helper()
	s, err := Compile(Document{Version: FormatVersion, Rules: append(BuiltinRules(), rules...), Boundaries: []Boundary{
		{Boundary: belay.Boundary{Name: "net", Network: belay.NetworkFull, Write: []string{"/srv/cache"}}, Tier: TierUser},
	}})
	if err != nil {
		t.Fatal(err)
	}
	args, _ := json.Marshal(map[string]string{"command": line})
	r := Request{Tool: progSpec, Args: args, Commands: CommandsOf(progSpec, args, Place{Workspace: "/ws"}), Mode: belay.ModeDefault, Workspace: "/ws",
		Level: "L3", Network: "full", Confine: true}
	ask(&r)
	return verdictOf(s, r)
}

// Guarantee: G51.
func TestEveryModeNamesItsBoundaryAndTheLeastLevel(t *testing.T) {
	for _, c := range []struct {
		mode     belay.Mode
		line     string
		level    string
		decision Decision
		boundary string
		least    belay.Level
	}{
		{belay.ModeDefault, "touch a", "L3", Ask, "workspace-write", "L0"},
		{belay.ModeDefault, "touch a", "L0", Ask, "workspace-write", "L0"},
		{belay.ModeDefault, "ls", "L1", Allow, "read-only", "L0"},
		{belay.ModeUntrusted, "ls", "L3", Allow, "read-only", "L0"},
		{belay.ModeDefault, "ls && touch a", "L3", Ask, "workspace-write", "L0"},
		{belay.ModePlan, "ls", "L3", Allow, "read-only", "L0"},
		{belay.ModeUntrusted, "touch a", "L3", Ask, "workspace-write", "L0"},
		{belay.ModeAuto, "touch a", "L3", Allow, "workspace-write", "L2"},
		{belay.ModeAuto, "touch a", "L2", Allow, "workspace-write", "L2"},
		{belay.ModeAuto, "touch a", "L1", Ask, "workspace-write", "L2"},
		{belay.ModeAuto, "ls", "L1", Ask, "read-only", "L2"},
		{belay.ModeOnRequest, "touch a", "L2", Allow, "workspace-write", "L2"},
		{belay.ModeOnRequest, "touch a", "L1", Ask, "workspace-write", "L2"},
		{belay.ModeOnFailure, "curl http://x.test", "L2", Allow, "workspace-write", "L2"},
		{belay.ModeOnFailure, "rm -r b", "L0", Ask, "workspace-write", "L2"},
	} {
		v := confinedAs(t, c.line, func(r *Request) { r.Mode, r.Level = c.mode, c.level })
		if v.Decision != c.decision || v.Boundary != c.boundary || v.Bound == nil || v.MinLevel != c.least && !(c.least == "L0" && v.MinLevel == "") {
			t.Errorf("%s at %s, %s: %s in %s, at least %s (%s); want %s in %s, at least %s", c.mode, c.level, c.line, v.Decision, v.Boundary, v.MinLevel, v.Reason, c.decision, c.boundary, c.least)
		}
	}
}

// Guarantee: G52.
func TestAWeakerLevelIsNeverTakenSilently(t *testing.T) {
	weak := func(r *Request) { r.Mode, r.Level = belay.ModeAuto, "L1" }
	v := confinedAs(t, "touch a", weak)
	if v.Decision != Ask || v.ReasonCode != codeBoundaryWeak || !strings.Contains(v.Reason, "wants level L2, and this machine gives L1") {
		t.Errorf("asked about: %s %s %q", v.Decision, v.ReasonCode, v.Reason)
	}
	v = confinedAs(t, "touch a", func(r *Request) { weak(r); r.Headless = true })
	if v.Decision != Deny || !strings.Contains(v.Hint, "--boundary full") {
		t.Errorf("with nobody to ask it is denied, and the flag is named: %s %q", v.Decision, v.Hint)
	}
	v = confinedAs(t, "touch a", func(r *Request) { weak(r); r.Boundary = belay.BoundaryFull })
	if v.Decision != Allow || !v.Bound.Unbounded() {
		t.Errorf("who names boundary full demands nothing: %s %s", v.Decision, v.Boundary)
	}
	named := func(r *Request) { r.Level, r.Boundary = "L1", "workspace-write" }
	if v = confinedAs(t, "ls", named); v.Decision != Ask || v.MinLevel != belay.L2 {
		t.Errorf("a boundary that somebody named is demanded: %s at least %s", v.Decision, v.MinLevel)
	}
	degrade := Rule{ID: "weak-ok", Tier: TierUser, Match: Match{Tool: []string{"exec"}}, Verdict: Allow, Degrade: Allow}
	if v = confinedAs(t, "touch a", weak, degrade); v.Decision != Allow || v.MinLevel != belay.L1 {
		t.Errorf("a user's rule accepts less: %s at least %s (%s)", v.Decision, v.MinLevel, v.Reason)
	}
	for _, bad := range []Rule{
		{ID: "r", Tier: TierWorkspace, Verdict: Allow, Degrade: Allow},
		{ID: "r", Tier: TierUser, Verdict: Ask, Degrade: Allow},
		{ID: "r", Tier: TierUser, Verdict: Allow, Degrade: Deny},
	} {
		if _, err := Compile(Document{Version: 1, Rules: []Rule{bad}}); belay.CodeOf(err) != belay.CodeBadPolicy {
			t.Errorf("%s of tier %s with degrade %s: %v", bad.Verdict, bad.Tier, bad.Degrade, err)
		}
	}
}

// Guarantee: G51.
func TestRulesNameBoundariesAndOnlyTrustedOnesWiden(t *testing.T) {
	rule := func(tier Tier, boundary string, narrows bool) Rule {
		return Rule{ID: "b", Tier: tier, Match: Match{Tool: []string{"exec"}}, Verdict: Ask, Boundary: boundary, Narrows: narrows}
	}
	for _, c := range []struct {
		name, want string
		rules      []Rule
		line       string
		boundary   string
	}{
		{"a user's widens", "net", []Rule{rule(TierUser, "net", false)}, "go test", ""},
		{"a user's leaves it", "full", []Rule{rule(TierUser, "full", false)}, "go test", ""},
		{"a trusted workspace's widens", "net", []Rule{rule(TierWorkspace, "net", false)}, "go test", ""},
		{"a stranger's doesn't", "workspace-write", []Rule{rule(TierWorkspace, "full", true)}, "go test", ""},
		{"a stranger's narrows", "read-only", []Rule{rule(TierWorkspace, "read-only", true)}, "go test", ""},
		{"a stranger's narrows what is named", "read-only", []Rule{rule(TierWorkspace, "read-only", true)}, "go test", "net"},
		{"one that nobody knows changes nothing", "workspace-write", []Rule{rule(TierUser, "gone", false)}, "go test", ""},
		{"of a line every part has a say", "workspace-write", []Rule{{ID: "go", Tier: TierUser, Match: Match{Command: &CommandMatch{Program: []string{"go"}}}, Verdict: Allow, Boundary: "full"}}, "go test && rm -r b", ""},
		{"in whichever order", "workspace-write", []Rule{{ID: "go", Tier: TierUser, Match: Match{Command: &CommandMatch{Program: []string{"go"}}}, Verdict: Allow, Boundary: "full"}}, "rm -r b && go test", ""},
		{"and a line of that part alone has it", "full", []Rule{{ID: "go", Tier: TierUser, Match: Match{Command: &CommandMatch{Program: []string{"go"}}}, Verdict: Allow, Boundary: "full"}}, "go test && go vet", ""},
	} {
		v := confinedAs(t, c.line, func(r *Request) { r.Boundary = c.boundary }, c.rules...)
		if v.Boundary != c.want || v.Bound.Name != c.want {
			t.Errorf("%s: it gets %s (by %s), want %s", c.name, v.Boundary, v.BoundBy, c.want)
		}
	}
}

// TestWhatOnlyReadsRunsInABoundaryThatReads: whoever allows a line that only reads, it gets
// the session's boundary without its writes and its network, unless a rule names another.
// Guarantee: G96.
func TestWhatOnlyReadsRunsInABoundaryThatReads(t *testing.T) {
	granted := []Grant{{Tool: "exec", Tier: TierUser, Kind: "rule"}}
	named := Rule{ID: "n", Tier: TierUser, Match: Match{Tool: []string{"exec"}}, Verdict: Allow, Boundary: "net"}
	plain := Rule{ID: "n", Tier: TierUser, Match: Match{Tool: []string{"exec"}}, Verdict: Allow}
	for _, c := range []struct {
		name, line, boundary, level, want string
		grants                            []Grant
		rules                             []Rule
		decision                          Decision
	}{
		{"by the built-in rule", "grep -rn x .", "", "L3", "read-only", nil, nil, Allow},
		{"by a grant", "cat /srv/x", "", "L3", "read-only", granted, nil, Allow},
		{"by a rule without a boundary", "cat /srv/x", "", "L3", "read-only", nil, []Rule{plain}, Allow},
		{"by a rule that names one", "cat a", "", "L3", "net", nil, []Rule{named}, Allow},
		{"of a boundary of one's own", "ls", "net", "L3", "net, only reading", nil, nil, Allow},
		{"though nothing else is confined", "ls", "full", "L3", "full, only reading", nil, nil, Allow},
		{"but for what shows the machine", "ps aux | grep x", "full", "L3", "full", nil, nil, Allow},
		{"if that is plain", "ps aux | grep $(whoami)", "full", "L3", "full", nil, nil, Ask},
		{"and where nothing could hold it", "ls", "full", "L0", "full", nil, nil, Allow},
		{"also at L2", "ls", "", "L2", "read-only", nil, nil, Allow},
		{"with what more than reads it is the session's", "ls && go test", "", "L3", "workspace-write", granted, nil, Allow},
		{"whatever it hides", "set -- 'b[$(touch x)]'; echo $(($1))", "", "L3", "read-only", nil, nil, Allow},
		{"but not beside what changes", "mkdir d; echo $((x))", "", "L3", "workspace-write", nil, nil, Ask},
		{"an own place isn't outside", "ls /tmp /var/tmp /dev/shm/x", "", "L3", "read-only", nil, nil, Allow},
		{"where there is none it is", "ls /tmp", "", "L2", "read-only", nil, nil, Ask},
		{"the shell's own files aren't", "diff <(ls a) <(ls b) && head -c 100 /dev/urandom", "", "L3", "read-only", nil, nil, Allow},
	} {
		v := confinedAs(t, c.line, func(r *Request) {
			r.Boundary, r.Grants, r.Level, r.Dialect = c.boundary, c.grants, c.level, bash
			for i := range r.Grants {
				r.Grants[i].Dialect = bash
			}
			r.Commands = CommandsOf(progSpec, r.Args, Place{Workspace: "/ws", Dialect: bash}.Within(c.level, c.boundary))
		}, c.rules...)
		if v.Decision != c.decision || v.Boundary != c.want {
			t.Errorf("%s: %s: %s in %s (%s), want %s in %s", c.name, c.line, v.Decision, v.Boundary, v.Reason, c.decision, c.want)
		}
	}
	kept, _ := (&Set{doc: Document{Boundaries: []Boundary{{Boundary: belay.Boundary{Name: "own", Write: []string{"/srv/a"}, Read: []string{"/srv/b"}, Network: belay.NetworkFull, Least: belay.L3, Limits: belay.ProcessLimits{OpenFiles: 9}}}}}}).Bound("own")
	is := onlyReading(kept).Is
	if !is.Reads() || !slices.Equal(is.Read, []string{"/srv/a", "/srv/b"}) || is.Least != belay.L3 || is.Limits.OpenFiles != 9 || !onlyReading(kept).Within(kept) {
		t.Errorf("of %+v is left %+v", kept.Is, is)
	}
}

// TestWhereNothingHoldsItALineMustBePlain: below level L2 what only reads runs unasked if
// nobody can read its text in two ways.
// Guarantee: G97.
func TestWhereNothingHoldsItALineMustBePlain(t *testing.T) {
	for line, want := range map[string]Decision{
		"ls -la src | head -20 && echo ok || true; wc -l *.go": Allow, "D=src; ls $D \"$D/a\"": Allow, "grep -rn 'x y' . 2>/dev/null": Allow, "git log --oneline | head": Allow, "cat a 2>&1 | sort": Allow, "sed -n '1,20p' a": Allow, "sed 's/a/b/' a": Allow, "echo $X; grep -q \"$X\" a": Allow, "cd sub && ls": Allow, "find . -name '*.go' | xargs wc -l": Allow,
		"echo $((1+1))": Ask, "cat $X": Ask, "ls $(pwd)": Ask, "for f in a b; do cat $f; done": Ask, "f() { ls; }; f": Ask, "cat <a": Ask, "RANDOM='a[$(id)]'": Ask, "X='a[$(id)]'; ls $X": Ask, "ls {a[0]}<a": Ask, "bash -c ls": Ask, "npm ls": Ask, "go list ./...": Ask,
		"docker ps": Ask, "awk '{print}' a": Ask, "sed 's/a/b/e' a": Ask, "sort $X": Ask, "sort \"$X\"": Ask, "diff <(ls a) <(ls b)": Ask, "echo ${X:-a}": Ask, "ls &": Ask, "git help log": Ask, "grep --unknown a b": Ask, "cloc --vcs=x .": Ask, "trap ls EXIT": Ask, "ps e": Ask,
	} {
		v := confinedAs(t, line, func(r *Request) {
			r.Level, r.Dialect = "L0", bash
			r.Commands = CommandsOf(progSpec, r.Args, Place{Workspace: "/ws", Dialect: bash}.Within("L0", ""))
		})
		if v.Decision != want {
			t.Errorf("%s: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}

// Guarantee: G55.
func TestACallMayAskForAnotherBoundary(t *testing.T) {
	wish := func(mode belay.Mode, b string) func(*Request) {
		return func(r *Request) { r.Mode, r.Wish = mode, RequestedBoundary{b, "the tests need it"} }
	}
	v := confinedAs(t, "touch a", wish(belay.ModeOnRequest, "full"))
	if v.Decision != Ask || v.ReasonCode != codeWider || v.Boundary != "full" || !strings.Contains(v.Reason, "asks for boundary full: the tests need it") {
		t.Errorf("a wider one is asked about: %s %s %s %q", v.Decision, v.ReasonCode, v.Boundary, v.Reason)
	}
	if v = confinedAs(t, "touch a", wish(belay.ModeOnRequest, "read-only")); v.Decision != Allow || v.Boundary != "read-only" {
		t.Errorf("a narrower one is taken: %s %s", v.Decision, v.Boundary)
	}
	if v = confinedAs(t, "ls", wish(belay.ModePlan, "full")); v.Decision != Deny {
		t.Errorf("mode plan gives nothing: %s", v.Decision)
	}
	if v = confinedAs(t, "touch a", wish(belay.ModeNever, "full")); v.Decision != Deny {
		t.Errorf("mode never asks nobody: %s", v.Decision)
	}
	alone := func(r *Request) { wish(belay.ModeOnRequest, "full")(r); r.Headless = true }
	if v = confinedAs(t, "touch a", alone); v.Decision != Deny || !strings.Contains(v.Hint, "--boundary full") {
		t.Errorf("with nobody to ask it is denied, and the flag is named: %s %q", v.Decision, v.Hint)
	}
	deny := Rule{ID: "no", Tier: TierAdmin, Match: Match{Tool: []string{"exec"}}, Verdict: Deny}
	if v = confinedAs(t, "touch a", wish(belay.ModeOnRequest, "full"), deny); v.Rule != "admin/no" {
		t.Errorf("a deny stays: %s by %s", v.Decision, v.Rule)
	}
}

// TestAYesCoversWhatACommandSaysItNeeds: who is asked about a command isn't asked
// again when its boundary stops what its text says.
func TestAYesCoversWhatACommandSaysItNeeds(t *testing.T) {
	plain := func(*Request) {}
	for _, c := range []struct{ line, want string }{
		{"touch /srv/out/a", "workspace-write, write /srv/out"},
		{"touch /srv/out/a /srv/out/b && cp x /opt/y/z", "workspace-write, write /srv/out, write /opt/y"},
		{"curl http://x.test", "workspace-write, network"},
		{"touch a", "workspace-write"},
		{"touch /ws/.git/hooks/a", "workspace-write, may leave .git/hooks/a"},
		{"echo x >sub/.envrc && sed -i s/a/b/ .github/workflows/*.yml", "workspace-write, may leave sub/.envrc, may leave .github/workflows"},
		{"touch /ws/.belay/belay.yaml", "workspace-write"},
		{"touch /home/ann/.ssh/config", "workspace-write"},
		{"touch /a", "workspace-write"},
	} {
		if v := confinedAs(t, c.line, plain); v.Decision != Ask || v.Boundary != c.want {
			t.Errorf("%s: %s in %s, want %s", c.line, v.Decision, v.Boundary, c.want)
		}
	}
	granted := func(r *Request) { r.Grants = []Grant{{Tool: "exec", Tier: TierUser, Kind: "rule"}} }
	if v := confinedAs(t, "curl http://x.test", granted); v.Decision != Allow || v.Boundary != "workspace-write" {
		t.Errorf("what is allowed is still confined: %s in %s", v.Decision, v.Boundary)
	}
}

func boundGen(t *rapid.T) Bound {
	var b Bound
	b.Is.Name = rapid.SampledFrom(BuiltinBoundaries).Draw(t, "base")
	b.Name = b.Is.Name
	b.Is.Leave = rapid.SliceOfN(rapid.SampledFrom([]string{"/ws/.envrc", "/ws/.vscode", "/ws/.vscode/x"}), 0, 2).Draw(t, "leave")
	b.Is.History = rapid.Bool().Draw(t, "history")
	if b.Unbounded() {
		b.Is.Network = belay.NetworkFull
		return b
	}
	b.Is.Network = rapid.SampledFrom([]string{"none", "hosts", "full"}).Draw(t, "network")
	if b.Is.Network == "hosts" {
		b.Is.Hosts = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a:1", "b:2"}), 1, 2, rapid.ID[string]).Draw(t, "hosts")
	}
	place := rapid.SampledFrom([]string{"/", "/a", "/a/b", "/ab", "/c"})
	b.Is.Write = rapid.SliceOfN(place, 0, 2).Draw(t, "write")
	b.Is.Read = rapid.SliceOfN(place, 0, 2).Draw(t, "read")
	b.Is.Limits.Memory = int64(rapid.IntRange(0, 2).Draw(t, "memory"))
	b.Is.Limits.MemoryShare = rapid.IntRange(0, 2).Draw(t, "share")
	return b
}

// TestMeetAllowsWhatBothAllow holds the laws of a meet over boundaries.
// Guarantee: G51.
func TestMeetAllowsWhatBothAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := boundGen(t), boundGen(t), boundGen(t)
		m := Meet(a, b)
		if !m.as(Meet(b, a)) || !Meet(a, a).as(a) || !Meet(Meet(a, b), c).as(Meet(a, Meet(b, c))) {
			t.Fatalf("no meet: %+v of %+v and %+v", m, a, b)
		}
		if !m.Within(a) || !m.Within(b) {
			t.Fatalf("it allows more than one of them: %+v of %+v and %+v", m, a, b)
		}
		declared := func(b Bound, name string) Boundary {
			d := Boundary{Boundary: b.Is, Base: b.Is.Name}
			d.Name = name
			return d
		}
		two := &Set{doc: Document{Boundaries: []Boundary{declared(a, "a"), declared(b, "b")}}}
		set, name := two.Meet("a", "b")
		if is, ok := set.Bound(name); !ok || !is.as(m) {
			t.Fatalf("%s is %+v, want %+v", name, is, m)
		}
		set, name = two.Meet("a", "c")
		if is, ok := set.Bound(name); !ok || len(is.Is.Write) > 0 || is.Is.Network != belay.NetworkNone {
			t.Fatalf("with one that isn't known %s is %+v", name, is)
		}
		for _, p := range []string{"/a/x", "/a/b/x", "/ab/x", "/c", "/x"} {
			may := func(b Bound) bool {
				return b.Unbounded() || slices.ContainsFunc(b.Is.Write, func(w string) bool { return below(p, w) })
			}
			if may(m) != (may(a) && may(b)) {
				t.Fatalf("%s: %v in %+v of %+v and %+v", p, may(m), m, a, b)
			}
		}
	})
}

// TestBuiltInBoundariesHaveLimits: what everybody runs in can't take the machine
// with it; full, which confines nothing, limits nothing.
// Guarantee: T70.
func TestBuiltInBoundariesHaveLimits(t *testing.T) {
	for name, want := range map[string]belay.ProcessLimits{
		belay.BoundaryReadOnly: belay.DefaultProcessLimits, belay.BoundaryWorkspace: belay.DefaultProcessLimits, belay.BoundaryFull: {},
	} {
		b, ok := Builtin().Bound(name)
		if !ok || b.Is.Limits != want {
			t.Errorf("%s has %+v", name, b.Is.Limits)
		}
	}
	if belay.DefaultProcessLimits.Processes < 1000 || belay.DefaultProcessLimits.MemoryShare == 0 {
		t.Errorf("the limits are %+v", belay.DefaultProcessLimits)
	}
}

// TestATaintedConversationAsksOnlyForWhatCanSend: of commands whose boundary has no
// network only those ask that a yes would give one. Where the machine can't keep them
// from it, or a rule or the call brings another boundary, they ask as before.
// Guarantee: G15.
func TestATaintedConversationAsksOnlyForWhatCanSend(t *testing.T) {
	net := Rule{ID: "net", Tier: TierUser, Verdict: Allow, Boundary: "net", Match: Match{Tool: []string{"exec"}}}
	for _, c := range []struct {
		name, line string
		ask        func(*Request)
		rules      []Rule
		want       string
	}{
		{name: "a folder", line: "mkdir -p build", want: "allow CONFINED"},
		{name: "tests", line: "go test ./...", want: "allow CONFINED"},
		{name: "a list", line: "mkdir -p build && go test ./... | tail -3", want: "allow CONFINED"},
		{name: "a secret was read", line: "go test ./...", ask: func(r *Request) { r.Taint = append(r.Taint, Taint{Kind: TaintSecret, Origin: ".env"}) }, want: "allow CONFINED"},
		{name: "what wants the network", line: "mkdir build; curl https://a.example", want: "ask TAINTED_EGRESS"},
		{name: "files alone", line: "go test ./...", ask: func(r *Request) { r.Level = "L2" }, want: "allow CONFINED"},
		{name: "no namespaces", line: "go test ./...", ask: func(r *Request) { r.Level = "L1" }, want: "ask TAINTED_EGRESS"},
		{name: "no boundary", line: "go test ./...", ask: func(r *Request) { r.Boundary = "full" }, want: "ask TAINTED_EGRESS"},
		{name: "a boundary with hosts", line: "go test ./...", ask: func(r *Request) { r.Boundary = "net" }, want: "ask TAINTED_EGRESS"},
		{name: "what a person gave the call", line: "go test ./...", ask: func(r *Request) {
			r.Widened = &Bound{Name: "wider", Is: belay.Boundary{Name: belay.BoundaryWorkspace, Network: belay.NetworkFull}}
		}, want: "ask TAINTED_EGRESS"},
		{name: "what the call asks for", line: "go test ./...", ask: func(r *Request) { r.Wish.Boundary = "net" }, want: "ask WIDER_BOUNDARY"},
		{name: "a rule with a network", line: "make deploy", ask: func(r *Request) { r.Mode = belay.ModeDefault }, rules: []Rule{net}, want: "ask CHANGES_THINGS"},
		{name: "a rule with a network, untainted", line: "make deploy", ask: func(r *Request) { r.Mode, r.Taint = belay.ModeDefault, nil }, rules: []Rule{net}, want: "allow RULE"},
		{name: "a grant", line: "make x", ask: func(r *Request) {
			r.Mode, r.Grants = belay.ModeDefault, []Grant{{Tool: "exec", Tier: TierUser, Kind: "answer"}}
		}, want: "allow GRANTED"},
	} {
		v := confinedAs(t, c.line, func(r *Request) {
			r.Mode, r.Taint = belay.ModeOnRequest, []Taint{{Kind: "web", Origin: "a.example"}}
			if c.ask != nil {
				c.ask(r)
			}
		}, c.rules...)
		if got := string(v.Decision) + " " + v.ReasonCode; got != c.want {
			t.Errorf("%s: %q: %s (%s), want %s", c.name, c.line, got, v.Reason, c.want)
		}
	}
}

// TestHarmlessLinesAskNothing holds lines that only read against the gate: where a boundary
// holds them to that, and where nothing does.
// Guarantee: G73, G97.
func TestHarmlessLinesAskNothing(t *testing.T) {
	f, err := os.Open("shell/testdata/harmless.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	asked, all := map[string]int{}, 0
	for in := bufio.NewScanner(f); in.Scan(); all++ {
		var j struct{ Cmd string }
		if err := json.Unmarshal(in.Bytes(), &j); err != nil {
			t.Fatal(err)
		}
		for _, level := range []string{"L3", "L0"} {
			v := confinedAs(t, j.Cmd, func(r *Request) {
				r.Level, r.Dialect, r.Workspace = level, bash, "/srv/proj"
				r.Commands = CommandsOf(progSpec, r.Args, Place{Workspace: "/srv/proj", Home: "/home/ada", Dialect: bash}.Within(level, ""))
			})
			if v.Decision != Allow {
				asked[level]++
				t.Logf("%s at %s: %s", j.Cmd, level, v.Reason)
			}
		}
	}
	share := func(level string) float64 { return 100 * float64(all-asked[level]) / float64(all) }
	t.Logf("of %d harmless lines run unasked: %.1f %% at L3, %.1f %% where nothing confines them", all, share("L3"), share("L0"))
	if share("L3") < 97 || share("L0") < 80 {
		t.Errorf("too many ask")
	}
}

package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/policy"
)

// suggest is what is suggested for a log.
func (l *log) suggest(t interface{ Fatal(...any) }, set *policy.Set, least, most int) (*AskStats, []*Suggestion) {
	var cases []*Case
	r := NewReader(l.get)
	for _, e := range l.facts {
		c, err := r.Apply(e)
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			cases = append(cases, c)
		}
	}
	var asks AskStats
	for _, c := range cases {
		asks.Take(c, set)
	}
	all := asks.Suggest(set, least, most)
	for _, s := range all {
		for _, c := range cases {
			s.Take(c, set)
		}
	}
	return &asks, Sound(all, least, most)
}

func (l *log) exec(lines ...string) {
	for _, line := range lines {
		l.call(policy.Builtin(), "exec", fmt.Sprintf(`{"command":%q}`, line), nil)
	}
}

func TestFrequentQuestionsBecomeRules(t *testing.T) {
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	l.exec("npm test", "npm test --silent", "npm test", "npm test && touch a", "npm run build", "git log")
	for _, p := range []string{"src/a.go", "src/b.go", "src/a.go", "docs/c.md"} {
		l.call(policy.Builtin(), "write", fmt.Sprintf(`{"path":%q}`, p), nil)
	}
	asks, got := l.suggest(t, policy.Builtin(), 3, 5)
	if asks.Decisions != 10 || asks.Asked != 9 || len(asks.Unfit) > 0 {
		t.Errorf("got %+v", asks)
	}
	var have []string
	for _, s := range got {
		have = append(have, fmt.Sprintf("%s spares %d of %d (%d allowed, %d asked, %d denied) in %d: %q +%d; %d examples", s.Rule.ID, s.Spared, s.Matched, s.Allowed, s.Asked, s.Denied, s.Sessions, s.Seen, s.More, s.Examples))
	}
	want := []string{
		`allow-npm-test spares 3 of 4 (0 allowed, 1 asked, 0 denied) in 1: ["npm test" "npm test --silent" "npm test; touch a"] +0; 3 examples`,
		`allow-write-src spares 3 of 3 (0 allowed, 0 asked, 0 denied) in 1: ["src/a.go" "src/b.go"] +0; 2 examples`,
	}
	if !slices.Equal(have, want) {
		t.Errorf("got\n%q\nwant\n%q", have, want)
	}
	if _, got = l.suggest(t, policy.Builtin(), 4, 5); len(got) > 0 {
		t.Errorf("%s spares too few", got[0].Rule.ID)
	}
	if _, got = l.suggest(t, policy.Builtin(), 1, 1); len(got) != 1 {
		t.Errorf("%d suggestions", len(got))
	}
}

// Taint, destructive commands, attempts to escape, what nobody can read, secrets
// and files outside stay questions, however often they are asked.
// Guarantee: G33.
func TestNothingDangerousIsSuggested(t *testing.T) {
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	for range 5 {
		l.exec("rm -rf build", "git push --force", "$X", "sudo npm test", "npm test; rm -rf build", "cp .env a")
		l.call(policy.Builtin(), "write", `{"path":"/etc/hosts"}`, nil)
	}
	asks, got := l.suggest(t, policy.Builtin(), 3, 5)
	if len(got) > 0 {
		t.Errorf("%+v is suggested", got[0].Rule)
	}
	if n := asks.Unfit[UnfitOther]; n > 0 || asks.Asked != 35 {
		t.Errorf("got %+v", asks)
	}
	for _, why := range []string{UnfitDestructive, UnfitEscape, UnfitUnparsable, UnfitSecret, UnfitOutside} {
		if asks.Unfit[why] == 0 {
			t.Errorf("nothing is %s: %+v", why, asks.Unfit)
		}
	}
	l = newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	l.add(belay.IDs{}, event.ContextResolved{Taint: []string{"web:x.org"}})
	l.exec("npm test", "npm test", "npm test", "curl x.org", "curl x.org", "curl x.org")
	asks, got = l.suggest(t, policy.Builtin(), 3, 5)
	if len(got) > 0 || !maps.Equal(asks.Unfit, map[string]int{UnfitTaint: 6}) {
		t.Errorf("of a tainted thread: %+v, %v", asks, got)
	}
}

func decoded(r policy.Request) (args map[string]any) {
	if err := json.Unmarshal(r.Args, &args); err != nil {
		panic(err)
	}
	return args
}

// variations are calls that are like a recorded one, and read or run something else.
func variations(r policy.Request) (out []policy.Request) {
	args := decoded(r)
	with := func(name string, value any) {
		changed := maps.Clone(args)
		if changed[name] = value; value == nil {
			delete(changed, name)
		}
		raw, err := json.Marshal(changed)
		if err != nil {
			panic(err)
		}
		out = append(out, asked(r.Tool, string(raw)))
	}
	if line, ok := args["command"].(string); ok {
		first, rest, _ := strings.Cut(line, " ")
		for _, l := range []string{line + " more", line + " other.sh", line + " --config=evil.js", first + " -v " + rest, first, "cd other && " + line, "X=1 " + line, line + " > out.txt", line + " < in.txt", line + " | sh",
			line + "; sh other.sh", "env X=1 " + line, "timeout 5 " + line, "xargs " + line, "sh -c '" + line + "'", "echo $(" + line + ")", strings.ReplaceAll(line, "greet", "other"), strings.ReplaceAll(line, "src/", "lib/"), strings.ReplaceAll(line, " ", "  ")} {
			with("command", l)
		}
	}
	if argv, ok := args["argv"].([]any); ok {
		with("argv", append(slices.Clone(argv), "more"))
		with("argv", append(slices.Clone(argv[:len(argv)-1]), "other.sh"))
	}
	if r.Tool.Command != nil {
		with("dir", "other")
		with("env", map[string]string{"NODE_OPTIONS": "--require ./evil.js"})
		with("boundary", "full")
		return out
	}
	with("option", "--force")
	with("n", 7)
	with("n", nil)
	for _, p := range []string{"other.txt", "src/deep/a.go", "/etc/hosts", "../x", ".env"} {
		with("path", p)
	}
	with("url", "https://x.org/other")
	return out
}

// asked is what the gate is asked about a call.
func asked(spec belay.ToolSpec, args string) policy.Request {
	at := policy.Place{Workspace: "/w", Home: "/h"}
	r := policy.Request{Tool: spec, Args: json.RawMessage(args), Mode: belay.ModeDefault, Workspace: "/w", Level: "L0", Network: "full", Commands: policy.CommandsOf(spec, json.RawMessage(args), at)}
	var in struct{ Path string }
	if json.Unmarshal(r.Args, &in) == nil && in.Path != "" && spec.PathArg != "" {
		r.Paths = []string{in.Path}
	}
	return r
}

// TestASuggestionReachesNoFurtherThanWhatWasAsked holds each suggestion, and each
// rule that is offered for a call, against calls that differ from what was
// recorded in a file, a script, a folder, an option or anything around it.
// Guarantee: G33.
func TestASuggestionReachesNoFurtherThanWhatWasAsked(t *testing.T) {
	run, put := exec, write
	run.Command = &belay.CommandArgs{Line: "command", Argv: "argv", Dir: "dir", Env: "env", Boundary: "boundary"}
	show := belay.ToolSpec{Name: "show", PathArg: "path", Access: belay.Read}
	deploy := belay.ToolSpec{Name: "deploy", Capabilities: []string{"process"}, PathArg: "path", Access: belay.Write}
	line := func(l string) policy.Request { return asked(run, fmt.Sprintf(`{"command":%q}`, l)) }
	calls := []policy.Request{
		asked(run, `{"argv":["sh","greet.sh"]}`), asked(run, `{"command":"make","dir":"src"}`), asked(run, `{"command":"make","env":{"CC":"gcc"},"timeout":3}`),
		asked(put, `{"path":"src/a.go"}`), asked(show, `{"path":"src/a.go","n":3}`), asked(fetch, `{"url":"https://x.org/a"}`), asked(deploy, `{"path":"src/a.go","option":"--dry"}`),
	}
	for _, l := range []string{"sh greet.sh", "bash -x greet.sh", "python3 greet.py", "node greet.js", "npm test", "npm run greet", "make", "make greet", "go run ./greet", "cat ~/.bashrc", "touch src/a", "cp src/a src/b", "timeout 5 sh greet.sh",
		"find src -name a -exec sh greet.sh {} +", "xargs -a src/list touch", "env A=b make", "cd src && make", "sed -i s/a/b/ src/a", "echo hi > src/a", "git commit -m greet", "git log && npm test", "sort 'a b' -o src/a"} {
		calls = append(calls, line(l))
	}
	// These ask about what reads, too: then a rule is suggested for that.
	asks := compiled(t, policy.Rule{Verdict: policy.Ask, Match: policy.Match{Tool: []string{"show", "exec"}}})
	suggested := 0
	for _, set := range []*policy.Set{policy.Builtin(), asks} {
		same := func(r policy.Request) bool {
			return slices.ContainsFunc(calls, func(c policy.Request) bool {
				return c.Tool.Name == r.Tool.Name && reflect.DeepEqual(decoded(c), decoded(r))
			}) ||
				r.Tool.Name == "write" && len(r.Paths) == 1 && path.Dir(r.Paths[0]) == "src"
		}
		hold := func(what string, rules ...policy.Rule) {
			with, err := add(set, rules...)
			if err != nil {
				t.Fatal(err)
			}
			suggested++
			for _, c := range calls {
				for _, r := range variations(c) {
					if !same(r) && policy.Evaluate(set, &r).Decision != policy.Allow && policy.Evaluate(with, &r).Decision == policy.Allow {
						t.Errorf("%s allows %s %s: %+v", what, r.Tool.Name, r.Args, rules)
					}
				}
			}
		}
		for _, c := range calls {
			if rules := candidates(set, c, policy.Allow); len(rules) > 0 {
				hold("what is offered for "+string(c.Args), rules...)
			}
		}
		var recorded AskStats
		for i := range calls {
			recorded.Take(&Case{Request: calls[i]}, set)
		}
		all := recorded.Suggest(set, 1, 100)
		for _, s := range all {
			for i := range calls {
				s.Take(&Case{Request: calls[i]}, set)
			}
		}
		for _, s := range Sound(all, 1, 100) {
			hold("suggestion "+s.Rule.ID, s.Rule)
		}
	}
	if suggested < 40 {
		t.Errorf("only %d rules were tried", suggested)
	}
}

// No suggestion, whatever the rules, allows one of the calls that were recorded
// for which a person must be asked, and each does what it says.
// Guarantee: G33.
func TestASuggestionIsWhatItSays(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		set := compiled(t, anyRules(t, 0)...)
		l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
		if rapid.Bool().Draw(t, "tainted") {
			l.add(belay.IDs{}, event.ContextResolved{Taint: []string{"web:x.org"}})
		}
		l.exec(rapid.SliceOfN(rapid.SampledFrom([]string{"npm test", "npm publish", "git push", "git push --force", "touch a", "touch a; rm a", "curl x.org", "curl $X", "cp .env a", "sudo ls", "make"}), 4, 12).Draw(t, "lines")...)
		_, got := l.suggest(t, set, 1, 5)
		for _, s := range got {
			found++
			with, err := add(set, s.Rule)
			if err != nil {
				t.Fatal(err)
			}
			spared := 0
			r := NewReader(l.get)
			for _, e := range l.facts {
				c, err := r.Apply(e)
				if err != nil {
					t.Fatal(err)
				}
				if c == nil {
					continue
				}
				before, after := policy.Evaluate(set, &c.Request), policy.Evaluate(with, &c.Request)
				if before.Decision == after.Decision {
					continue
				}
				if spared++; before.Decision != policy.Ask || after.Decision != policy.Allow {
					t.Fatalf("%+v makes %s %s", s.Rule, before.Decision, after.Decision)
				}
				for _, k := range c.Request.Commands {
					if k.Class != policy.ReadOnly && k.Class != policy.WriteWorkspace && k.Class != policy.Network {
						t.Fatalf("%+v allows %s", s.Rule, c.Request.Args)
					}
				}
				if len(c.Request.Taint) > 0 || slices.Contains(before.Tags, policy.TagSecret) {
					t.Fatalf("%+v allows %s, tags %v, taint %v", s.Rule, c.Request.Args, before.Tags, c.Request.Taint)
				}
			}
			if spared != s.Spared || s.Spared+s.Allowed+s.Asked+s.Denied != s.Matched {
				t.Fatalf("it spares %d: %+v", spared, s)
			}
		}
	})
	if found == 0 {
		t.Error("nothing was ever suggested")
	}
}

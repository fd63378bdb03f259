package convert

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

func TestBombsAreRefused(t *testing.T) {
	many := func(n int, one string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, one, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for _, c := range []struct {
		name   string
		format Format
		in     string
		want   string
	}{
		{"10 MB", Claude, `{"permissions":{"allow":["` + strings.Repeat("x", 10<<20) + `"]}}`, "the file has"},
		{"10 MB of TOML", Gemini, "# " + strings.Repeat("x", 10<<20), "the file has"},
		{"100,000 rules", Claude, `{"permissions":{"deny":[` + many(100_000, `"Bash(c%d:*)",`) + `]}}`, "there are 100000 rules"},
		{"more rules here than there", Claude, `{"permissions":{"deny":[` + many(15_000, `"Bash(c%d:*)",`) + `]}}`, "rules; 20000 are the most"},
		{"100,000 tables", Gemini, strings.Repeat("[[rule]]\ntoolName='a'\ndecision='deny'\n", 100_000), "there are 100000 entries in rule;"},
		{"too many agents", OpenClaw, `{"agents":{"list":[` + many(30_000, `{"id":"a%d"},`) + `]}}`, "there are 30000 entries in list;"},
		{"too many entries of agents", OpenClaw, `{"agents":{"entries":{` + many(30_000, `"a%d":{},`) + `}}}`, "there are 30000 entries in agents.entries;"},
		{"too many rules of cowork", Cowork, `{"version":"1.0","rules":[` + strings.Repeat("{},", 30_000) + `{}]}`, "there are 30001 entries in rules;"},
		{"deep JSON", Cowork, strings.Repeat("[", 1<<20), "levels of nesting"},
		{"deep JSON5", OpenClaw, strings.Repeat("{a:", 1<<20), "levels of nesting"},
		{"deep TOML", Gemini, "x = " + strings.Repeat("[", 1<<20), "levels of nesting"},
		{"deep inline tables", Gemini, "x = " + strings.Repeat("{a=", 1<<18), "levels of nesting"},
		{"a key of many parts", Gemini, strings.Repeat("a.", 1<<18) + "a = 1", ""},
		{"a large regular expression", Gemini, "[[rule]]\ntoolName='run_shell_command'\ncommandRegex='(a{1000}){20}'\ndecision='deny'\npriority=1", ""},
		{"nothing", Gemini, "", "there is no [[rule]]"},
		{"nothing in JSON", Claude, "", "ends before it is complete"},
		{"NUL", OpenClaw, "{\x00}", "this isn't JSON"},
		{"two values", Cowork, `{"version":"1.0","rules":[]} {}`, "something follows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Read(c.format, []byte(c.in), Options{Name: "F"})
			if c.want == "" && err == nil {
				return // read, and named rule by rule
			}
			e, ok := errors.AsType[*belay.Error](err)
			if !ok || e.Code != belay.CodeBadPolicy || !strings.Contains(e.Message, c.want) || e.Hint == "" {
				t.Errorf("%v (%T) of %v, not %q with a code and a hint", err, err, r != nil, c.want)
			}
		})
	}
}

func TestWhatIsTooLargeForARuleIsLost(t *testing.T) {
	for _, re := range []string{"(a{1000}){20}", strings.Repeat("x", 3000)} {
		r, err := Read(Gemini, []byte("[[rule]]\ntoolName='run_shell_command'\ncommandRegex='"+re+"'\ndecision='deny'\npriority=1"), Options{Name: "F"})
		if err != nil || r.Count(Lost) != 1 || len(r.Document.Rules) != 0 {
			t.Errorf("%.20s: %v, %+v", re, err, r)
		}
	}
}

func TestAFormatIsGuessedOnlyIfItIsClear(t *testing.T) {
	for in, want := range map[string]Format{
		"[[rule]]\ntoolName = 'x'": Gemini, `{"permissions": {}}`: Claude, "// mine\n{tools: {}}": OpenClaw, `{"version": "1.0", "defaults": {}, "rules": []}`: Cowork,
		`{"permissions": {}, "tools": {}}`: "", `{}`: "", "": "", "x = 1": "", "version: 1\nrules: []": "", `{"rules": []}`: "", `[1]`: "",
	} {
		if got, ok := Guess([]byte(in)); got != want || ok != (want != "") {
			if !(want == "" && !ok) {
				t.Errorf("%q is %q, %t, not %q", in, got, ok, want)
			}
		}
	}
}

// Guarantee: G46.
func TestOnlyWhatIsNewWidens(t *testing.T) {
	r, err := Read(Claude, []byte(`{"permissions":{"allow":["Bash(npm test:*)","WebSearch"],"deny":["Bash(curl:*)"]}}`), Options{Name: "F"})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Widens(policy.Builtin()); len(got) != 2 {
		t.Errorf("%d rules widen: %v", len(got), got)
	}
	set, err := policy.Compile(policy.Document{Version: 1, Rules: append(policy.BuiltinRules(), r.Document.Rules[len(r.Document.Rules)-1])})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Widens(set); len(got) != 1 || got[0].ID != "claude-allow-bash-npm-test" {
		t.Errorf("these widen: %v", got)
	}
}

// Whatever a file holds, reading it ends with rules or with an error that says
// where.
func FuzzRead(f *testing.F) {
	for _, format := range formats {
		for _, c := range readCases(f, "testdata/"+string(format)+".txt") {
			f.Add(string(format), whole(format, c.in))
		}
	}
	f.Fuzz(func(t *testing.T, format, in string) {
		r, err := Read(Format(format), []byte(in), Options{Name: "F", Home: "/home/u"})
		if e, ok := errors.AsType[*belay.Error](err); err != nil && (!ok || e.Code == belay.CodeInternal) {
			t.Fatalf("%v (%T)", err, err)
		}
		if err != nil {
			return
		}
		for _, rule := range r.Document.Rules {
			if rule.Tier != policy.TierUser {
				t.Fatalf("a rule of the tier %s", rule.Tier)
			}
		}
		allows := 0
		for _, i := range r.Items {
			if i.Says == policy.Allow {
				allows += len(i.Rules)
			}
			if i.Kept == Lost && len(i.Rules) == 0 && i.Why == "" {
				t.Fatalf("%s is lost without a word", i.Source)
			}
		}
		for _, rule := range r.Document.Rules {
			if rule.Verdict == policy.Allow {
				allows--
			}
		}
		if allows < 0 {
			t.Fatal("there are more allows than the source has")
		}
	})
}

// Count is how many items are kept so.
func (r *Result) Count(k Fidelity) (n int) {
	for _, i := range r.Items {
		if i.Kept == k {
			n++
		}
	}
	return n
}

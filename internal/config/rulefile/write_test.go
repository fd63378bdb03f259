package rulefile

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// What is written is read as the same rules again, whatever their texts hold.
func TestWrittenRulesAreReadAgain(t *testing.T) {
	text := rapid.OneOf(rapid.SampledFrom([]string{"no", "Null", "~", "a: b", "- x", "#c", "'", `"`, `\d+`, "*", "&a", "@x", "%y", "1", "1e3", "0x1", " a ", "a\nb", "tab\t", "é", " ", "{x}", "[", "!t", "|", "...", "---", "a,b"}), rapid.StringN(1, 12, 40))
	rapid.Check(t, func(t *rapid.T) {
		words := func(name string) []string { return rapid.SliceOfN(text, 0, 3).Draw(t, name) }
		one := func(name string) string { return rapid.OneOf(rapid.Just(""), text).Draw(t, name) }
		yes := true
		r := policy.Rule{ID: "r", Priority: rapid.IntRange(0, 999).Draw(t, "priority"), Verdict: policy.Ask, Reason: one("reason"), Code: one("code"), Hint: one("hint"), Tags: words("tags"), Boundary: one("boundary"),
			Match: policy.Match{Tool: words("tool"), NotTool: words("not"), Does: words("does"), Agent: words("agent"), Capability: words("capability"), Host: words("host"), Taint: words("taint"),
				Flow: words("flow"), Level: one("level"), Rerun: rapid.Bool().Draw(t, "rerun"), If: one("if")}}
		for _, m := range words("mode") {
			r.Mode = append(r.Mode, belay.Mode(m))
		}
		if rapid.Bool().Draw(t, "command") {
			r.Command = &policy.CommandMatch{Program: words("program"), NotProgram: words("notprogram"), Subcommand: words("sub"), Class: words("class"), Prefix: words("prefix"), Matches: one("matches")}
		}
		if rapid.Bool().Draw(t, "path") {
			r.Path = &policy.PathMatch{Match: words("match"), Where: one("where"), Access: one("access")}
		}
		if rapid.Bool().Draw(t, "args") {
			n := 2.5
			r.Args = []policy.ArgMatch{{Path: "a", Equals: one("equals")}, {Path: "b", Contains: one("contains")}, {Path: "c", Matches: one("re")}, {Path: "d", Less: &n}, {Path: "e", Greater: &n}, {Path: "f", Exists: &yes}}
		}
		if rapid.Bool().Draw(t, "examples") {
			r.Examples = policy.Examples{Match: []policy.Example{{Command: text.Draw(t, "line")}, {Tool: one("t"), Path: one("p"), Access: one("acc"), Host: one("h"), Mode: belay.Mode(one("m")), Agent: one("ag"), Capability: words("cap"), Taint: words("ta"), Args: json.RawMessage(`{"a":["b"]}`)}},
				NoMatch: []policy.Example{{Host: "x"}}}
		}
		written := Write([]policy.Rule{r})
		l := &Layers{}
		if err := l.Add("f.yaml", []byte(written), policy.TierUser, true); err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		got := l.doc.Rules[0]
		got.Tier, got.Where = "", ""
		want, have := asJSON(t, r), asJSON(t, got)
		if d := cmp.Diff(want, have); d != "" {
			t.Fatalf("%s\n%s", d, written)
		}
	})
}

func asJSON(t *rapid.T, r policy.Rule) string {
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// hundred are 100 rules, 20 of them with an expression, all about one tool.
func hundred(t testing.TB) *Set { return compiled(t, hundredRules()...) }

func hundredRules() (rules []Rule) {
	for i := range 100 {
		r := Rule{ID: fmt.Sprint("r", i), Tier: Tiers[1+i%4], Priority: i, Verdict: Ask, Match: Match{Tool: []string{"fetch", "exec"}, Args: []ArgMatch{{Path: "n", Equals: float64(i + 1000)}}}}
		if i%5 == 0 {
			r.Args, r.If = nil, fmt.Sprintf("tool == 'fetch' && has(args.url) && args.url.startsWith('https://x%d') && size(paths) == 0", i)
		}
		rules = append(rules, r)
	}
	return rules
}

// tenThousand are 10,000 rules of which 50 can speak of one tool.
func tenThousand(t testing.TB) *Set {
	var rules []Rule
	for i := range 10_000 {
		name := fmt.Sprint("tool", i/50)
		if i%50 == 49 {
			name += "_*"
		}
		rules = append(rules, Rule{ID: fmt.Sprint("r", i), Tier: TierUser, Priority: i % 1000, Verdict: Ask, Match: Match{Tool: []string{name}, Args: []ArgMatch{{Path: "n", Equals: 5.0}}}})
	}
	return compiled(t, rules...)
}

func fetch(tool string) Request {
	return Request{Tool: belay.ToolSpec{Name: tool, Capabilities: []string{"network"}, HostArg: "url"}, Mode: belay.ModeDefault, Args: json.RawMessage(`{"n":1,"url":"https://a.example/x"}`)}
}

func p99(b *testing.B, once func()) {
	b.ReportAllocs()
	took := make([]time.Duration, 0, 100_000)
	for b.Loop() {
		begun := time.Now()
		once()
		if len(took) < cap(took) {
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

func BenchmarkEvaluate(b *testing.B) {
	b.Run("builtin", func(b *testing.B) {
		r := fetch("fetch")
		p99(b, func() { verdictOf(Builtin(), r) })
	})
	b.Run("100 rules, 20 with CEL", func(b *testing.B) {
		s, r := hundred(b), fetch("fetch")
		p99(b, func() { verdictOf(s, r) })
	})
	b.Run("10000 rules, 50 of one tool", func(b *testing.B) {
		s, r := tenThousand(b), fetch("tool77")
		p99(b, func() { verdictOf(s, r) })
	})
	b.Run("command line", func(b *testing.B) {
		s, args := compiled(b), json.RawMessage(`{"command":"git status && grep -rn TODO src | head -20"}`)
		p99(b, func() {
			r := Request{Tool: execSpec, Args: args, Mode: belay.ModeDefault, Workspace: "/ws", Commands: CommandsOf(execSpec, args, Place{Workspace: "/ws"})}
			verdictOf(s, r)
		})
	})
}

func BenchmarkCompile(b *testing.B) {
	for name, rules := range map[string][]Rule{"builtin": nil, "10000": tenThousand(b).doc.Rules[len(BuiltinRules()):]} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				compiled(b, rules...)
			}
		})
	}
}

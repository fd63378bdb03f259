package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// TestWhatAnExpressionCostsIsCounted asks expressions about a text of 512 KB. One
// that could look at it any number of times gives no answer; one that looks once
// for each word that somebody wrote does.
func TestWhatAnExpressionCostsIsCounted(t *testing.T) {
	raw, err := json.Marshal(map[string]any{"text": strings.Repeat("a", 1<<19), "n": 1})
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Tool: belay.ToolSpec{Name: "read"}, Args: raw}
	for text, answers := range map[string]bool{
		"args.text.contains('b') || args.text.startsWith('a')":                                true,
		"tool == 'read' && size(paths) == 0 && !(args.n in [2, 3]) && has(args.text)":         true,
		"args.n == 1 ? mode == '' : class == 'network'":                                       true,
		"args.text.matches('(a|b)*c')":                                                        false,
		"[1,2,3,4,5,6,7,8,9].all(x, [1,2,3,4,5,6,7,8,9].all(y, !args.text.contains('b')))":    false,
		strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(x, ", 9) + "true" + strings.Repeat(")", 9): false,
	} {
		c, bad := (&conditions{}).compile(text)
		if bad != nil {
			t.Fatal(bad)
		}
		if holds, ok := c.holds(&r, &subject{tool: "read", args: &arguments{raw: raw}}); ok != answers || holds != answers {
			t.Errorf("%s: holds %v, answers %v", text, holds, ok)
		}
	}
}

// TestArgumentsAreReadOnce counts what judging allocates: reading the arguments
// again for each of many rules would take several allocations for each.
func TestArgumentsAreReadOnce(t *testing.T) {
	few, many := compiled(t, hundredRules()[:20]...), compiled(t, hundredRules()...)
	r := fetch("fetch")
	count := func(s *Set) float64 { return testing.AllocsPerRun(100, func() { verdictOf(s, r) }) }
	a, b := count(few), count(many)
	if perRule := (b - a) / 80; perRule > 1 {
		t.Errorf("20 rules take %.0f allocations, 100 take %.0f", a, b)
	}
}

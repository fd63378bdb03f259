package policies

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/simulate"
	"github.com/belay-run/belay/internal/policy"
)

// RulesLinted is what was found in rules.
type RulesLinted struct {
	Rules    int `json:"rules"` // that people wrote
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`

	Findings []simulate.Finding `json:"-"`
}

// Lint finds rules that can never decide, or that contradict each other. A rule that
// can't be made ready is an error with its place.
func Lint(doc policy.Document, specs []belay.ToolSpec) (*RulesLinted, error) {
	if _, err := policy.Try(doc); err != nil {
		return nil, err
	}
	out := &RulesLinted{Findings: simulate.Lint(doc, specs)}
	for i := range doc.Rules {
		if doc.Rules[i].Where != "" {
			out.Rules++
		}
	}
	for _, f := range out.Findings {
		switch f.Level {
		case simulate.LintError:
			out.Errors++
		case simulate.LintWarning:
			out.Warnings++
		default:
			out.Notes++
		}
	}
	return out, nil
}

// RulesTested is what came of the examples of rules.
type RulesTested struct {
	Rules    int `json:"rules"` // that people wrote
	Examples int `json:"examples"`
	Failed   int `json:"failed"`
	Without  int `json:"without"` // rules that have no example

	Results []policy.ExampleResult `json:"-"`
}

// Test tries the examples of rules.
func Test(doc policy.Document) (*RulesTested, error) {
	tried, err := policy.Try(doc)
	if err != nil {
		return nil, err
	}
	out := &RulesTested{Examples: len(tried), Results: tried}
	for i := range doc.Rules {
		r := &doc.Rules[i]
		if r.Where == "" {
			continue
		}
		out.Rules++
		if len(r.Examples.Match)+len(r.Examples.NoMatch) == 0 {
			out.Without++
		}
	}
	for _, t := range tried {
		if !t.OK() {
			out.Failed++
		}
	}
	return out, nil
}

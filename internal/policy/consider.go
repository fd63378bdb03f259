package policy

import "slices"

// RuleTrace is a rule that was held against a call, or against one simple
// command of it.
type RuleTrace struct {
	Rule   string // as facts call it
	Part   int    // which simple command, from 0
	Misses string // the matcher that didn't hold; empty: the rule speaks
}

// Consider holds every rule that could speak of a tool against a call, and says
// of those that don't which of their matchers didn't hold first. It answers as
// Evaluate judges: a rule speaks here exactly if it does there.
func (s *Set) Consider(r *Request) []RuleTrace {
	if s == nil {
		return nil
	}
	var out []RuleTrace
	r = s.asConfined(r)
	subjects := subjectsOf(r)
	rules := s.about(subjects[0].tool)
	for part := range subjects {
		for _, c := range rules {
			out = append(out, RuleTrace{Rule: c.name, Part: part, Misses: c.misses(r, &subjects[part])})
		}
	}
	return out
}

// RuleOf is the rule that facts call by a name, or nil.
func (s *Set) RuleOf(name string) *Rule {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.rules, func(c rule) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.rules[i].Rule
}

// Name is the rule as facts call it.
func (r *Rule) Name() string { return r.name() }

// Speaks reports whether a rule of the set speaks of a call: of a command line, an
// allow of each simple command and another verdict of one.
func (s *Set) Speaks(name string, r *Request) bool {
	i := slices.IndexFunc(s.rules, func(c rule) bool { return c.name == name })
	return i >= 0 && s.rules[i].speaks(s.asConfined(r), subjectsOf(r))
}

// ExampleResult is one example of a rule, and what came of it.
type ExampleResult struct {
	Rule    string // as facts call it
	Where   string // of the rule
	Example string // in a few words
	Want    bool   // the rule must speak of it
	Speaks  bool   // it does
	rule    *Rule
}

// OK reports whether the example holds.
func (t ExampleResult) OK() bool { return t.Want == t.Speaks }

// Try holds every rule of a document against its examples, also behind one that
// fails. An error is a document that can't be made ready for another reason.
func Try(d Document) ([]ExampleResult, error) {
	s, err := prepare(d)
	if err != nil {
		return nil, err
	}
	return s.examples(), nil
}

// Like reports whether a name, or another pattern, fits a pattern in which * stands
// for anything, as rules compare names.
func Like(pattern, name string) bool { return like(pattern, name) }

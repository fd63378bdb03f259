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
	for part := range subjects {
		sub := &subjects[part]
		for i := range s.candidates(sub.tool) {
			c := &s.rules[i]
			if c.forTool(sub.tool) {
				out = append(out, RuleTrace{Rule: c.name, Part: part, Misses: c.misses(r, sub)})
			}
		}
	}
	return out
}

// misses is speaks with a reason: it is empty exactly if the rule speaks.
func (c *rule) misses(r *Request, sub *subject) string {
	if c.speaks(r, sub) {
		return ""
	}
	m := &c.Match
	for _, q := range []struct {
		name string
		asks bool
		only Match
	}{
		{"mode", len(m.Mode) > 0, Match{Mode: m.Mode}}, {"does", len(m.Does) > 0, Match{Does: m.Does}}, {"agent", len(m.Agent) > 0, Match{Agent: m.Agent}},
		{"capability", len(m.Capability) > 0, Match{Capability: m.Capability}}, {"effect", len(m.Effect) > 0, Match{Effect: m.Effect}}, {"level", m.Level != "", Match{Level: m.Level}}, {"rerun", m.Rerun, Match{Rerun: true}},
	} {
		one := rule{Rule: &Rule{Match: q.only, Verdict: c.Verdict}}
		if q.asks && !one.standing(r, sub) {
			return q.name
		}
	}
	switch {
	case !c.standing(r, sub):
		return "tool"
	case len(c.Flow) > 0 && !c.flows(sub):
		return "flow"
	case len(c.Taint) > 0 && !c.taints(r.Taint):
		return "taint"
	case c.Command != nil && !c.runs(sub):
		return "command"
	case c.Path != nil && !c.touches(sub):
		return "path"
	case len(c.hosts) > 0 && !c.reaches(sub):
		return "host"
	case c.Verdict == Allow && !c.sees.covers(r, sub):
		return "cover" // an allow that doesn't name what this call could do
	}
	if i := slices.IndexFunc(c.args, func(a argument) bool { return !a.holds(sub.args) }); i >= 0 {
		return "args"
	}
	return "if"
}

// RuleOf is the rule that facts call by a name, or nil.
func (s *Set) RuleOf(name string) *Rule {
	if s == nil {
		return nil
	}
	for i := range s.rules {
		if s.rules[i].name == name {
			return s.rules[i].Rule
		}
	}
	return nil
}

// Name is the rule as facts call it.
func (r *Rule) Name() string { return r.name() }

// Speaks reports whether a rule of the set speaks of a call: of a command line, an
// allow of each simple command and another verdict of one.
func (s *Set) Speaks(name string, r *Request) bool {
	for i := range s.rules {
		c := &s.rules[i]
		if c.name != name {
			continue
		}
		r = s.asConfined(r)
		n, subjects := 0, subjectsOf(r)
		for k := range subjects {
			if c.forTool(subjects[k].tool) && c.speaks(r, &subjects[k]) {
				n++
			}
		}
		return n == len(subjects) || n > 0 && c.Verdict != Allow
	}
	return false
}

// ExampleResult is one example of a rule, and what came of it.
type ExampleResult struct {
	Rule    string // as facts call it
	Where   string // of the rule
	Example string // in a few words
	Want    bool   // the rule must speak of it
	Speaks  bool   // it does
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
	var out []ExampleResult
	for i := range s.rules {
		c := &s.rules[i]
		for _, e := range c.Examples.Match {
			out = append(out, ExampleResult{c.name, c.Where, e.String(), true, c.meets(e)})
		}
		for _, e := range c.Examples.NoMatch {
			out = append(out, ExampleResult{c.name, c.Where, e.String(), false, c.meets(e)})
		}
	}
	return out, nil
}

// Like reports whether a name, or another pattern, fits a pattern in which * stands
// for anything, as rules compare names.
func Like(pattern, name string) bool { return like(pattern, name) }

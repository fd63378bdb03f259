// Package simulate lets people try rules before they count, and understand
// those that do: why a call gets its verdict, which recorded calls other rules
// would judge otherwise, which rules can never decide, and which rule would
// spare the questions that are asked most. It promises that it judges as the
// gate does, that a call which can't be judged again is never counted as
// unchanged, and that a rule it suggests was tried on what was recorded.
//
// It is pure: facts and content are handed in, and it prints nothing.
package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// Explanation is a verdict on a call and how it came about.
type Explanation struct {
	Tool     string          `json:"tool"`
	Mode     string          `json:"mode"`
	Decision policy.Decision `json:"decision"`
	Source   string          `json:"source"` // rule, grant, mode, headless
	Rule     string          `json:"rule"`
	Where    string          `json:"where,omitempty"` // file:line:column of the rule; none: it is built in
	Tier     policy.Tier     `json:"tier"`
	Priority int             `json:"priority"`
	Code     string          `json:"reasonCode"`
	Reason   string          `json:"reason"`
	Hint     string          `json:"hint,omitempty"`
	Boundary string          `json:"boundary,omitempty"`

	BoundaryBy string      `json:"boundaryBy,omitempty"` // who named it
	Least      belay.Level `json:"least,omitempty"`      // without which it isn't run
	Limits     string      `json:"limits,omitempty"`     // of the boundary, in the words of files
	Tags       []string    `json:"tags,omitempty"`
	Taint      []string    `json:"taint,omitempty"`    // as kind:origin
	Matched    []Matched   `json:"matched,omitempty"`  // every rule that spoke, the strongest voice first
	Silent     []Unmatched `json:"silent,omitempty"`   // rules that people wrote for the tool and that didn't speak
	Omitted    int         `json:"omitted,omitempty"`  // silent rules that aren't here
	Commands   []Simple    `json:"commands,omitempty"` // of a command line
	Next       []Next      `json:"next"`               // what would change it
}

// Matched is a rule that spoke of the call.
type Matched struct {
	Rule     string          `json:"rule"`
	Where    string          `json:"where,omitempty"`
	Tier     policy.Tier     `json:"tier"`
	Priority int             `json:"priority"`
	Decision policy.Decision `json:"decision"`
	Lost     bool            `json:"lost,omitempty"`
	Why      string          `json:"why"` // it decided, agreed or lost
}

// Unmatched is a rule that could have spoken of the call, and the first of its
// matchers that didn't hold.
type Unmatched struct {
	Rule   string `json:"rule"`
	Where  string `json:"where,omitempty"`
	Misses string `json:"misses"`
}

// Simple is one simple command of a command line.
type Simple struct {
	Command  string          `json:"command"`
	Class    policy.Class    `json:"class"`
	Reason   string          `json:"reason,omitempty"` // why it has this class
	Wrapped  []string        `json:"wrapped,omitempty"`
	Decision policy.Decision `json:"decision"`
	Rule     string          `json:"rule"`
}

// Next is something that would change the verdict: a command, or rules to write.
type Next struct {
	Command string        `json:"command,omitempty"`
	Rules   []policy.Rule `json:"rules,omitempty"` // tried: with them the verdict is Verdict
	Place   string        `json:"place,omitempty"` // where to change something
	Effect  string        `json:"effect"`
}

// maxSilent bounds the rules that didn't speak; a file may have thousands.
const maxSilent = 50

// Explain judges a call as the gate does and explains the verdict.
func Explain(set *policy.Set, r policy.Request) Explanation {
	v := policy.Evaluate(set, &r)
	e := Explanation{Tool: r.Tool.Name, Mode: string(r.Mode), Decision: v.Decision, Source: v.Source, Rule: v.Rule, Where: whereOf(set, v.Rule), Tier: v.Tier,
		Priority: v.Priority, Code: v.ReasonCode, Reason: v.Reason, Hint: v.Hint, Boundary: v.Boundary, BoundaryBy: v.BoundBy, Least: v.MinLevel, Tags: v.Tags}
	if v.Bound != nil {
		e.Limits = policy.LimitsText(v.Bound.Is.Limits)
	}
	for _, t := range r.Taint {
		e.Taint = append(e.Taint, strings.TrimSuffix(t.Kind+":"+t.Origin, ":"))
	}
	considered := set.Consider(&r)
	e.commands(r, v)
	e.hear(set, v, considered)
	e.silence(set, considered)
	e.Next = advise(set, r, v)
	return e
}

func whereOf(set *policy.Set, name string) string {
	if r := set.RuleOf(name); r != nil {
		return r.Where
	}
	return ""
}

func (e *Explanation) commands(r policy.Request, v policy.Verdict) {
	for i, j := range v.Commands {
		s := Simple{Command: j.Name, Class: j.Class, Decision: j.Decision, Rule: j.Rule}
		if i < len(r.Commands) && len(v.Commands) == len(r.Commands) {
			c := r.Commands[i]
			s.Command, s.Reason, s.Wrapped = strings.TrimSpace(c.Name+" "+strings.Join(c.Args, " ")), c.Reason, c.Wrapped
		}
		e.Commands = append(e.Commands, s)
	}
}

// hear lists who spoke, and why who lost did.
func (e *Explanation) hear(set *policy.Set, v policy.Verdict, considered []policy.RuleTrace) {
	parts := map[string][]int{}
	for _, c := range considered {
		if c.Misses == "" {
			parts[c.Rule] = append(parts[c.Rule], c.Part)
		}
	}
	for _, h := range v.Matched {
		x := Matched{Rule: h.Rule, Where: whereOf(set, h.Rule), Tier: h.Tier, Priority: h.Priority, Decision: h.Decision, Lost: h.Lost}
		x.Why = fate(set, v, h, parts[h.Rule])
		e.Matched = append(e.Matched, x)
	}
}

// fate returns why a rule that spoke decided, agreed or lost. parts are the simple
// commands it spoke of.
func fate(set *policy.Set, v policy.Verdict, h policy.Hit, parts []int) string {
	if h.Rule == v.Rule && !h.Lost {
		return "it decides"
	}
	if h.Rule == v.Rule {
		return "it decides, and its question can't be answered here"
	}
	if elsewhere(v, parts) {
		return "it spoke of another command of the line, and the strictest verdict counts"
	}
	if !h.Lost {
		return "it says the same; a stronger voice is named"
	}
	winner := set.RuleOf(v.Rule)
	switch {
	case v.Source == "mode", v.Source == "headless":
		return "the verdict would be ask, and questions are denied"
	case v.Decision == policy.Deny:
		return "a deny is final"
	case winner != nil && winner.Firm:
		return "the built-in rule that decides is firm: no allow silences it"
	case h.Tier == policy.TierDefault && v.Tier != policy.TierDefault:
		return "built-in rules speak only when no other tier does"
	case h.Tier == v.Tier && h.Priority < v.Priority:
		return fmt.Sprintf("its priority %d is below %d of the same tier", h.Priority, v.Priority)
	case h.Tier == v.Tier && h.Priority == v.Priority:
		return "at the same priority ask beats allow"
	case v.Source == "grant":
		return "what a person allowed stands above it"
	case v.Decision == policy.Ask:
		return "one tier asks, so the call is asked about"
	}
	return "a rule of its tier with a higher priority silences it"
}

// elsewhere reports whether a rule spoke of none of the commands that the verdict
// is due to.
func elsewhere(v policy.Verdict, parts []int) bool {
	if len(v.Commands) < 2 {
		return false
	}
	return !slices.ContainsFunc(parts, func(p int) bool { return p < len(v.Commands) && v.Commands[p].Rule == v.Rule })
}

// silence lists the rules of people that didn't speak at all.
func (e *Explanation) silence(set *policy.Set, considered []policy.RuleTrace) {
	spoke, seen := map[string]bool{}, map[string]bool{}
	for _, c := range considered {
		if c.Misses == "" {
			spoke[c.Rule] = true
		}
	}
	for _, c := range considered {
		where := whereOf(set, c.Rule)
		if spoke[c.Rule] || seen[c.Rule] || strings.HasPrefix(c.Rule, "builtin/") {
			continue
		}
		seen[c.Rule] = true
		if len(e.Silent) == maxSilent {
			e.Omitted++
			continue
		}
		e.Silent = append(e.Silent, Unmatched{Rule: c.Rule, Where: where, Misses: cmp.Or(missing[c.Misses], c.Misses)})
	}
}

// missing says in words what a matcher that doesn't hold means.
var missing = map[string]string{
	"tool": "it names no tool, and this one steers the turn", "mode": "mode: it is for other modes", "does": "does: the call does something else",
	"agent": "agent: it is for other agents", "capability": "capability: the tool declares none of them", "level": "level: the boundary is weaker",
	"rerun": "rerun: the call wasn't lost before", "flow": "flow: nothing of that kind flows", "taint": "taint: the conversation isn't tainted so",
	"command": "command: the call runs something else", "path": "path: the call's files don't fit", "host": "host: the call's hosts don't fit",
	"cover": "an allow must name what this call could do: its class, its hosts, or taint", "args": "args: an argument doesn't fit", "if": "if: the expression doesn't hold",
}

// advise returns what would change a verdict. A rule that it names was tried.
func advise(set *policy.Set, r policy.Request, v policy.Verdict) []Next {
	var out []Next
	wrote := set.RuleOf(v.Rule)
	if wrote != nil && wrote.Where != "" {
		out = append(out, Next{Place: wrote.Where, Effect: fmt.Sprintf("the rule %s decides; change or remove it there", v.Rule)})
	}
	want, effect := policy.Allow, "allows such calls"
	if v.Decision == policy.Allow {
		want, effect = policy.Ask, "asks about such calls"
	}
	if rules := candidates(set, r, want); len(rules) > 0 {
		out = append(out, Next{Rules: rules, Effect: effect + "; write it to your policy.yaml"})
	}
	switch {
	case v.Source == "headless":
		out = append(out, Next{Command: "belay run --approvals wait", Effect: "asks instead of denying, and waits for an answer"})
	case v.ReasonCode == "MODE_PLAN" || v.ReasonCode == "NO_POLICY" || v.Source == "mode":
		out = append(out, Next{Command: "belay run --mode default", Effect: "asks about what changes things"})
	case v.Source == "grant":
		out = append(out, Next{Command: "belay run, without --allow " + r.Tool.Name, Effect: "lets the rules decide"})
	case v.Decision == policy.Ask && len(out) == 0:
		out = append(out, Next{Command: "belay approve ACTION", Effect: "allows one call; no rule that is offered here would"})
	}
	if len(out) == 0 {
		out = append(out, Next{Place: "policy.yaml", Effect: cmp.Or(v.Hint, "no rule that is offered here would; write one that names the call")})
	}
	return out
}

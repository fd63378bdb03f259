package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
)

// Levels of findings.
const (
	LintError   = "error"   // the rule can't do what it is there for
	LintWarning = "warning" // it may not have the intended effect
	LintNote    = "note"
)

// Finding is something about a rule that its author should see.
type Finding struct {
	Level string `json:"level"` // error, warning, note
	Code  string `json:"code"`  // shadowed, contradicts, redundant, overruled, never, no_tool, broad, example, limits, unfinished
	Rule  string `json:"rule,omitempty"`
	Where string `json:"where,omitempty"` // file:line:column
	Text  string `json:"text"`
	Other string `json:"other,omitempty"` // the rule that is to blame
	There string `json:"there,omitempty"` // where that one is
}

// maxPairs bounds how many pairs of rules are compared, so that a file of
// thousands of rules for one tool is looked at in a second or two.
const maxPairs = 2_000_000

// Lint looks for rules that can never decide, that contradict each other, that
// ask for what no tool of specs declares, or that have no example. What it calls
// an error follows from the rules alone; it may miss some. Findings are in the
// order of the document.
func Lint(d policy.Document, specs []belay.ToolSpec) []Finding {
	l := &linter{specs: specs, groups: map[string][]string{}}
	for _, g := range d.Groups {
		name := strings.ToLower(g.Name)
		for _, t := range g.Tools {
			l.groups[name] = append(l.groups[name], strings.ToLower(strings.TrimSpace(t)))
		}
	}
	for i := range d.Rules {
		l.rules = append(l.rules, l.ready(&d.Rules[i]))
	}
	l.index()
	for i := range l.rules {
		if b := &l.rules[i]; b.Where != "" {
			l.alone(b)
			l.beside(i)
		}
	}
	for _, b := range d.Boundaries {
		l.out = append(l.out, Finding{Level: LintNote, Code: "limits", Where: b.Where, Text: "boundary " + b.Name + " has limits: " + policy.LimitsText(b.Limits)})
	}
	if l.pairs > maxPairs {
		l.out = append(l.out, Finding{Level: LintWarning, Code: "unfinished",
			Text: fmt.Sprintf("there are too many rules for the same tools to compare each with each; %d pairs were compared", maxPairs)})
	}
	return l.out
}

type linter struct {
	groups  map[string][]string
	specs   []belay.ToolSpec
	rules   []linted
	exact   map[string][]int // rules that name a tool, by it
	general []int            // the others
	loudest [5]int           // the highest priority of an allow, by tier; -1: none
	pairs   int
	out     []Finding
}

// linted is a rule with its tools written out.
type linted struct {
	*policy.Rule
	name  string
	tier  int
	tools []string // patterns; nil: every tool
	not   []string
}

func (l *linter) ready(r *policy.Rule) linted {
	return linted{Rule: r, name: r.Name(), tier: max(slices.Index(policy.Tiers, r.Tier), 0), tools: l.patterns(r.Tool), not: l.patterns(r.NotTool)}
}

// patterns writes groups out; nil stays nil.
func (l *linter) patterns(terms []string) []string {
	if len(terms) == 0 {
		return nil
	}
	out := []string{}
	for _, t := range terms {
		t = strings.ToLower(strings.TrimSpace(t))
		if g, ok := strings.CutPrefix(t, "group:"); ok {
			out = append(out, l.groups[g]...)
			continue
		}
		out = append(out, t)
	}
	return out
}

func (l *linter) index() {
	l.exact, l.loudest = map[string][]int{}, [5]int{-1, -1, -1, -1, -1}
	for i := range l.rules {
		r := &l.rules[i]
		if r.Verdict == policy.Allow {
			l.loudest[r.tier] = max(l.loudest[r.tier], r.Priority)
		}
		if r.tools == nil || slices.ContainsFunc(r.tools, isPattern) {
			l.general = append(l.general, i)
			continue
		}
		for _, t := range slices.Compact(slices.Sorted(slices.Values(r.tools))) {
			l.exact[t] = append(l.exact[t], i)
		}
	}
}

func isPattern(s string) bool { return strings.ContainsAny(s, "*?") }

func (l *linter) find(r *linted, level, code, format string, args ...any) {
	l.out = append(l.out, Finding{Level: level, Code: code, Rule: r.name, Where: r.Where, Text: fmt.Sprintf(format, args...)})
}

// blame is a finding about a rule that is due to another one.
func (l *linter) blame(b, a *linted, level, code, format string, args ...any) {
	l.out = append(l.out, Finding{Level: level, Code: code, Rule: b.name, Where: b.Where, Text: fmt.Sprintf(format, args...), Other: a.name, There: a.Where})
}

// beside compares a rule with those that could make it pointless, and names the
// first that does.
func (l *linter) beside(i int) {
	b := &l.rules[i]
	if b.tools != nil && len(b.tools) == 0 {
		return // it means no tool, which is said already
	}
	candidates := l.general
	if b.tools != nil && !isPattern(b.tools[0]) {
		candidates = slices.Concat(l.exact[b.tools[0]], l.general)
	}
	for _, k := range candidates {
		a := &l.rules[k]
		if k == i || !l.couldBeat(a, b, k, i) {
			continue
		}
		if l.pairs++; l.pairs > maxPairs {
			return
		}
		if covers(a, b) && l.judge(a, b) {
			return
		}
	}
}

// couldBeat reports whether a rule that covers another makes it pointless. Of two
// that say the same of the same calls only the later one is pointless.
func (l *linter) couldBeat(a, b *linted, k, i int) bool {
	switch {
	case a.Verdict == policy.Deny:
		return b.Verdict != policy.Deny || a.tier > 0 && k < i
	case b.Verdict == policy.Deny || a.tier == 0:
		return false
	case a.tier != b.tier:
		return a.Verdict == policy.Ask && b.Verdict == policy.Allow && l.loudest[a.tier] <= a.Priority
	case a.Verdict == policy.Ask && a.Priority > b.Priority, a.Verdict == policy.Ask && b.Verdict == policy.Allow && a.Priority == b.Priority:
		return true
	}
	return a.Verdict == b.Verdict && (a.Priority > b.Priority || a.Priority == b.Priority && k < i)
}

// judge adds the finding for a rule that covers another which it could beat.
func (l *linter) judge(a, b *linted) bool {
	at := after(" at ", a.Where)
	switch {
	case a.Verdict == b.Verdict:
		l.blame(b, a, LintWarning, "redundant", "%s%s already says %s of all that it speaks of", a.name, at, a.Verdict)
	case a.tier == b.tier && a.Priority == b.Priority && asksForAll(b, a):
		l.blame(b, a, LintError, "contradicts", "it says %s of exactly the calls of which %s%s says %s, which is stricter", b.Verdict, a.name, at, a.Verdict)
	case a.Verdict == policy.Deny:
		l.blame(b, a, LintError, "shadowed", "it can never decide: %s%s denies all that it speaks of, and a deny is final", a.name, at)
	case a.tier != b.tier:
		l.blame(b, a, LintWarning, "overruled", "it can't allow anything: %s%s of tier %s asks about all that it speaks of", a.name, at, policy.Tiers[a.tier])
	default:
		l.blame(b, a, LintError, "shadowed", "it can never decide: %s%s asks about all that it speaks of, with priority %d over %d", a.name, at, a.Priority, b.Priority)
	}
	return true
}

func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// alone checks a single rule.
func (l *linter) alone(r *linted) {
	if len(r.Examples.Match)+len(r.Examples.NoMatch) == 0 {
		l.find(r, LintNote, "example", "it has no example; one would be tried whenever the file is read")
	}
	if p := r.Path; p != nil && len(p.Match) > 0 && !slices.ContainsFunc(p.Match, func(g string) bool { return !strings.HasPrefix(g, "~") }) {
		l.find(r, LintError, "never", "it can never match: path.match: ~ has no meaning in a path; write the folder out")
		return
	}
	for _, k := range r.Taint {
		if !slices.Contains(taintWords, k) {
			l.find(r, LintWarning, "never", "taint: %q is no kind that anything brings; the kinds are %s", k, strings.Join(taintWords, ", "))
		}
	}
	if r.Verdict == policy.Allow && r.tools == nil && r.not == nil && narrow(&r.Match) == 0 && !slices.Contains(r.Mode, belay.ModeBypass) {
		l.find(r, LintWarning, "broad", "it allows every call of every tool")
	}
	l.tools(r)
}

var taintWords = []string{"none", "any", "web", "mcp", "message", "tool", "child", "memory", "import", policy.TaintWorkspace, policy.TaintSecret}

// meant suggests the tool that rules with a mistake in its name probably mean.
func (l *linter) meant(names []string) string {
	var there []string
	for i := range l.specs {
		there = append(there, l.specs[i].Name)
	}
	for _, n := range names {
		if near := match.Nearest(n, there); near != "" && !strings.ContainsAny(n, "*:") {
			return "; did you mean " + near + "?"
		}
	}
	return ""
}

// narrow counts the matchers besides those for tools and modes.
func narrow(m *policy.Match) int {
	n := len(m.Does) + len(m.Agent) + len(m.Capability) + len(m.Effect) + len(m.Args) + len(m.Host) + len(m.Taint) + len(m.Flow) + len(m.Level) + len(m.If)
	if m.Command != nil || m.Path != nil || m.Rerun {
		n++
	}
	return n
}

// tools holds a rule against the tools that there are: it is pointless if none
// of those it names can make such a call.
func (l *linter) tools(r *linted) {
	var why []string
	named := 0
	for i := range l.specs {
		t := &l.specs[i]
		if !means(r, t) {
			continue
		}
		named++
		reason := never(t, r.Rule)
		if reason == "" {
			return
		}
		why = append(why, t.Name+": "+reason)
	}
	switch {
	case named == 0 && r.tools != nil && len(r.tools) == 0:
		l.find(r, LintError, "no_tool", "it means no tool: the groups that it names are empty")
	case named == 0 && r.not != nil:
		l.find(r, LintError, "no_tool", "not_tool excludes every tool that it could mean")
	case named == 0 && len(l.specs) > 0:
		l.find(r, LintWarning, "no_tool", "no tool of this workspace has such a name: %s%s", strings.Join(r.Tool, ", "), l.meant(r.Tool))
	case named > 0:
		text := why[0]
		if len(why) > 1 {
			text += fmt.Sprintf(" (and %d more tools)", len(why)-1)
		}
		l.find(r, LintError, "never", "it can never match: %s", text)
	}
}

// means reports whether a rule speaks of a tool at all.
func means(r *linted, t *belay.ToolSpec) bool {
	name := strings.ToLower(t.Name)
	if t.Handled != "" && !slices.Contains(r.tools, name) {
		return false // tools that steer the turn match only by name
	}
	if slices.ContainsFunc(r.not, func(p string) bool { return policy.Like(p, name) }) {
		return false
	}
	return r.tools == nil || slices.ContainsFunc(r.tools, func(p string) bool { return policy.Like(p, name) })
}

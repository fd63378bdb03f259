package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Evaluate is the gate. Every call gets exactly one verdict. The request stays as
// it is; it is large, so it isn't copied from function to function.
func Evaluate(s *Set, r *Request) Verdict {
	switch {
	case r.Use.Use == belay.UseReader && Changes(r.Tool):
		return reader(r.Use)
	case s == nil || !s.Permits(r.Mode):
		return noPolicy(r.Mode)
	case r.Guest && s.ownersOnly(r.Tool.Name):
		return Verdict{Decision: Deny, Source: "rule", Rule: "builtin/owner-only", Tier: TierDefault, ReasonCode: "OWNER_ONLY",
			Reason: "only the session's owner may call " + r.Tool.Name, Hint: "the owner has to ask for it"}
	}
	v := s.settled(r)
	if v.Decision != Allow {
		v.Reason += describeLinks(r.Links)
	}
	if v.Decision != Ask {
		return v
	}
	switch {
	case r.Mode == belay.ModeNever:
		v.Decision, v.Source, v.Rule, v.Tier, v.Priority, v.ReasonCode = Deny, "mode", "builtin/never-asks", TierDefault, 0, "MODE_NEVER_ASKS"
		v.Reason, v.Hint = "mode never denies what would ask ("+v.Reason+")", "run with --mode default"
		switch {
		case reachesOut(r):
			v.Hint = staysInside
		case s.grantHelps(r):
			v.Hint += ", or allow it: --allow " + r.Tool.Name
		}
	case r.Headless:
		about := v.weak || v.ReasonCode == codeWider
		v.Decision, v.Source, v.ReasonCode = Deny, "headless", "NO_PERSON"
		v.Reason = "this would ask (" + v.Reason + "), and no person can be asked"
		const wait = "wait for an answer: --approvals=wait"
		switch {
		case about:
			v.Hint += ", or " + wait
		case reachesOut(r):
			v.Hint = staysInside
		case s.grantHelps(r):
			v.Hint = "allow it beforehand: --allow " + r.Tool.Name + ", or " + wait
		default:
			v.Hint = wait
		}
	default:
		return v
	}
	if v.ways != "" {
		v.Hint += "; " + v.ways
	}
	markOverridden(&v)
	return v
}

// staysInside is what helps where a tool names a file outside of the workspace:
// no allowance does, because the tool reaches none.
const staysInside = "name a file of the workspace: whatever is allowed, its tools reach no other; for another folder run with --workspace DIR"

// reachesOut reports whether a call names a file that lies outside of the
// workspace, other than in a command line.
func reachesOut(r *Request) bool {
	return r.Tool.Command == nil && r.Tool.PathArg != "" && slices.ContainsFunc(subjectsOf(r)[0].paths, func(a access) bool { return !a.inside })
}

// grantHelps reports whether a call would be allowed if its tool had been allowed
// beforehand: that doesn't cover every class of commands, nor settle every rule
// that asks.
func (s *Set) grantHelps(r *Request) bool {
	given := *r
	given.Grants = append(slices.Clone(r.Grants), Grant{Tool: r.Tool.Name, Tier: TierUser, Kind: "rule", Dialect: r.Dialect})
	return s.settled(&given).Decision == Allow
}

// settled is what rules, checkers and the boundary make of a call.
func (s *Set) settled(r *Request) Verdict {
	v := s.judge(s.asConfined(r))
	if v.Decision != Deny {
		s.checked(&v, r)
	}
	if r.confines() && v.Decision != Deny {
		s.confine(&v, r)
	}
	if v.Decision != Allow && len(r.Taint) > 0 {
		s.explainTaint(&v, r)
	}
	v.parts = nil
	return v
}

// noPolicy is the law: no policy, no run. An unknown mode has no rules.
func noPolicy(m belay.Mode) Verdict {
	return Verdict{Decision: Deny, Source: "mode", Rule: "builtin/no-rules", Tier: TierDefault, ReasonCode: "NO_POLICY",
		Reason: "no rules are loaded for mode " + string(m), Hint: "use one of the modes that belay run --help lists"}
}

// reader is the verdict on a change while another session writes in the
// workspace. No grant covers it: it was given without knowing of the other
// session.
func reader(u belay.WorkspaceUse) Verdict {
	return Verdict{Decision: Deny, Source: "rule", Rule: "builtin/one-writer", Tier: TierDefault, ReasonCode: "OTHER_WRITER",
		Reason: "session " + string(u.Writer) + " writes in " + u.Path + ", so this one only reads",
		Hint:   "go on reading; to write: --share, a session of its own with --worktree, or wait until " + string(u.Writer) + " has ended"}
}

func (s *Set) ownersOnly(tool string) bool {
	return slices.ContainsFunc(s.doc.OwnerOnly, func(p string) bool { return like(strings.ToLower(p), strings.ToLower(tool)) })
}

// CapOf is how often a tool may be called in a turn; false when nothing bounds it.
func (s *Set) CapOf(tool string) (calls int, capped bool) {
	if s == nil {
		return 0, false
	}
	tool = strings.ToLower(tool)
	for _, c := range s.doc.Caps {
		term := strings.ToLower(c.Tool)
		names := []string{term}
		if group, ok := strings.CutPrefix(term, "group:"); ok {
			names = s.groups[group]
		}
		if slices.ContainsFunc(names, func(p string) bool { return like(p, tool) }) && (!capped || c.Calls < calls) {
			calls, capped = c.Calls, true
		}
	}
	return calls, capped
}

// judge joins what the rules say of each part of a call.
func (s *Set) judge(r *Request) Verdict {
	subjects := subjectsOf(r)
	rules := s.about(subjects[0].tool)
	v := one(rules, r, &subjects[0])
	if len(subjects) == 1 && subjects[0].cmd == nil {
		return v
	}
	var said []Judged
	grant, told := v.Grant, &subjects[0]
	for i := range subjects {
		sub := &subjects[i]
		o := v
		if i > 0 {
			o = one(rules, r, sub)
		}
		said = append(said, Judged{Name: sub.cmd.Name, Class: sub.cmd.Class, Decision: o.Decision, Rule: o.Rule})
		if i == 0 {
			continue
		}
		tags, matched, parts := union(v.Tags, o.Tags), merge(v.Matched, o.Matched), append(v.parts, o.parts...)
		if rank(o.Decision) > rank(v.Decision) || v.Decision == Allow && o.Decision == Allow && sub.class.Rank() > told.class.Rank() {
			v, told = o, sub // of several that are allowed the one with the strongest effect gives the reason
		}
		v.Tags, v.Matched, v.parts = tags, matched, parts
		grant = cmp.Or(grant, o.Grant)
	}
	v.Commands, v.Grant = said, ""
	if v.Decision == Allow {
		v.Grant = grant
	}
	markOverridden(&v)
	return v
}

// markOverridden marks the rules that said something else than its outcome.
func markOverridden(v *Verdict) {
	for i := range v.Matched {
		v.Matched[i].Lost = v.Matched[i].Decision != v.Decision
	}
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

func merge(a, b []Hit) []Hit {
	out := slices.Clone(a)
	for _, h := range b {
		if !slices.ContainsFunc(out, func(o Hit) bool { return o.Rule == h.Rule }) {
			out = append(out, h)
		}
	}
	return out
}

// grantPriority is above those of rules: what a person gave for a session
// speaks for the tier user.
const grantPriority = 1000

// one is the verdict of the rules for a tool on a call, or on one simple command of it.
func one(rules []*rule, r *Request, sub *subject) Verdict {
	t := evaluation{}
	for _, c := range rules {
		if c.misses(r, sub) == "" {
			t.addMatch(c)
		}
	}
	v := t.granted(r, sub)
	switch v.Rule {
	case "builtin/" + protectedRule:
		v.Reason = sub.guards
	case "builtin/" + secretFile:
		v.Reason = sub.keys
	}
	v.Tags = sub.tags(v.Tags, r)
	markOverridden(&v)
	return v
}

// tierVerdict is what one tier says: the rules of its highest priority.
type tierVerdict struct {
	rule     *rule
	priority int
	decision Decision
}

// evaluation collects what the rules say of a call.
type evaluation struct {
	hits  []Hit
	deny  *rule
	firm  *rule
	tiers [5]tierVerdict
	given *Grant
	rerun bool
}

// addMatch takes a rule that matches; they come with the strongest voice first.
func (t *evaluation) addMatch(c *rule) {
	t.hits = append(t.hits, Hit{Rule: c.name, Tier: cmp.Or(c.Tier, TierDefault), Priority: c.Priority, Decision: c.Verdict})
	switch {
	case c.Verdict == Deny:
		t.deny = cmp.Or(t.deny, c)
		return
	case c.Firm && c.Verdict == Ask:
		t.firm = cmp.Or(t.firm, c)
		return
	}
	v := &t.tiers[c.tier]
	if v.rule == nil || c.Priority == v.priority && rank(c.Verdict) > rank(v.decision) {
		*v = tierVerdict{c, c.Priority, c.Verdict}
	}
}

// grant takes what a person gave. An answer settles what was asked up to the
// person's own tier; what was given beforehand is one more allow of that tier.
func (t *evaluation) grant(g *Grant, rerun bool) {
	t.given, t.rerun = g, rerun
	t.hits = append([]Hit{{Rule: "grant/" + g.Tool, Tier: g.Tier, Priority: grantPriority, Decision: Allow}}, t.hits...)
	user := slices.Index(Tiers, TierUser)
	t.tiers[user] = tierVerdict{nil, grantPriority, Allow}
	for i := range user {
		if i > 0 && g.Kind == "answer" && t.tiers[i].decision == Ask {
			t.tiers[i] = tierVerdict{}
		}
	}
}

func (t *evaluation) verdict() Verdict {
	if t.deny != nil {
		return t.of(t.deny)
	}
	var won *tierVerdict
	for i := len(t.tiers) - 1; i > 0; i-- {
		if v := &t.tiers[i]; v.decision != "" && (won == nil || rank(v.decision) > rank(won.decision)) {
			won = v
		}
	}
	if won == nil && t.tiers[0].rule != nil {
		won = &t.tiers[0]
	}
	if t.firm != nil && (won == nil || won.decision != Ask || won == &t.tiers[0]) {
		return t.of(t.firm)
	}
	switch {
	case won == nil:
		return Verdict{Decision: Deny, Source: "rule", Rule: "builtin/no-rules", Tier: TierDefault, ReasonCode: "NO_POLICY", Reason: "no rule speaks of this call", Hint: "write a rule for it: docs/policy.md", Matched: t.hits}
	case won.rule != nil:
		return t.of(won.rule)
	}
	code := "GRANTED"
	if t.rerun {
		code = "LOST_RERUN_GRANTED"
	}
	return Verdict{Decision: Allow, Source: "grant", Rule: "grant/" + t.given.Tool, Tier: t.given.Tier, Priority: grantPriority, ReasonCode: code,
		Reason: t.given.reason(), Matched: t.hits, parts: []part{{}}, Grant: t.given.ID}
}

func (t *evaluation) of(c *rule) Verdict {
	reason := c.Reason
	if reason == "" {
		reason = "rule " + c.name + " says so"
	}
	return Verdict{Decision: c.Verdict, Source: "rule", Rule: c.name, Tier: cmp.Or(c.Tier, TierDefault), Priority: c.Priority, ReasonCode: cmp.Or(c.Code, "RULE"),
		Reason: reason, Hint: c.Hint, Tags: c.Tags, Boundary: c.Boundary, Matched: t.hits, parts: []part{{c.name, c.Boundary, c.tier > 0 && !c.Narrows, c.tier > 0, c.Degrade == Allow}}}
}

// granted is the verdict with the grant that lets the call through, if one does. A call
// that was lost runs again only by a rule: what was answered for another call doesn't
// count. Like any allow, a grant covers only what it can see.
func (t *evaluation) granted(r *Request, sub *subject) (v Verdict) {
	found, left := false, 0
	for i := range r.Grants {
		g := &r.Grants[i]
		if r.Rerun && g.Kind != "rule" || found && v.Decision == Allow && (left == 0 || g.Left > 0) || !g.sees(r, sub).covers(r, sub, sub.egress) || !g.reaches(r, sub) {
			continue // what is counted is spared
		}
		with := *t
		with.grant(g, r.Rerun)
		if w := with.verdict(); !found || w.Decision == Allow {
			found, left, v = true, g.Left, w
		}
	}
	if !found {
		return t.verdict()
	}
	return v
}

// covers reports whether an allow that names these things reaches a call that with it can
// send data out or not.
func (c sees) covers(r *Request, sub *subject, sends bool) bool {
	switch {
	case sub.class == Unparsable && !c.unparsable, sub.class == EscapeAttempt && !c.escape:
		return false
	case sends && !c.egress && tainted(r.Taint):
		return false
	}
	if sub.keys != "" && !c.keys {
		return false
	}
	return !sub.secret || c.secret || !tainted(r.Taint) && !untrustedWorkspace(r.Taint)
}

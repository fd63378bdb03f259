package thread

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/policy"
)

// Bounds of what a fact says of a verdict.
const (
	maxMatched  = 16
	maxCommands = 16
	maxTaint    = 16
	maxWord     = 128 // bytes of a name
	maxWhere    = 512 // bytes of a rule's place
)

// policyRequest is a call as the gate sees it.
func (s *State) policyRequest(r *Rules, spec belay.ToolSpec, c *Call, at time.Time) policy.Request {
	args := r.args(c)
	var checks []policy.Check
	for _, k := range c.Checks {
		if k.Done {
			checks = append(checks, k.Check)
		}
	}
	place := r.Place()
	for _, l := range c.Links {
		place.Links = append(place.Links, policy.Link{Path: l.Path, Real: l.Real})
	}
	grants := c.counts(s.inForce(r, at))
	var exact belay.Digest // only grants of one call are held against it
	if slices.ContainsFunc(grants, func(g policy.Grant) bool { return g.Bound != "" }) {
		exact = binding(r, spec, c)
	}
	return policy.Request{
		Tool: spec, Args: args, Paths: c.paths(), Commands: policy.CommandsOf(spec, args, place), Links: place.Links, Mode: r.Settings.Mode, Agent: r.Agent,
		Grants: grants, Binding: exact, Headless: r.headless() && !c.Ask.answered(), Rerun: slices.Contains(s.LostKeys, c.key()),
		Guest: r.ByOther, Use: s.Use, Workspace: r.Workspace, Dialect: place.Dialect, Level: r.Boundary.Level, Network: r.Boundary.Network, Taint: s.Taint, Checks: checks,
		Confine: r.Boundary.Decides, Boundary: r.Settings.Boundary, Wish: wish(spec, args), Widened: s.given(c),
	}
}

// recorded is the fact of a verdict: what decided, and what else spoke.
func (d *decision) recorded(c *Call, v *policy.Verdict) event.PermissionEvaluated {
	p := event.PermissionEvaluated{
		Decision: string(v.Decision), Source: v.Source, Rule: v.Rule, Tier: v.Tier, ReasonCode: v.ReasonCode,
		Reason: event.CutText(v.Reason, maxSaid), Tool: c.Name, ArgsHash: c.ArgsHash, Hint: event.CutText(v.Hint, maxSaid),
		Priority: v.Priority, Grant: v.Grant, Mode: string(d.rules.Settings.Mode), Tags: v.Tags, Boundary: v.Boundary,
	}
	if rule := d.rules.Gate().RuleOf(v.Rule); rule != nil {
		p.Where = event.CutText(rule.Where, maxWhere)
	}
	if v.Bound != nil {
		p.Bounds, p.BoundaryBy, p.Least = &v.Bound.Is, v.BoundBy, string(v.MinLevel)
	}
	p.Taint = TaintNames(d.Taint, maxTaint)
	for _, h := range v.Matched {
		if h.Rule == v.Rule {
			continue
		}
		if len(p.Matched) == maxMatched {
			p.Omitted++
			continue
		}
		p.Matched = append(p.Matched, event.RuleMatched{Rule: h.Rule, Tier: h.Tier, Priority: h.Priority, Decision: string(h.Decision), Lost: h.Lost})
	}
	for _, j := range v.Commands {
		if len(p.Commands) == maxCommands {
			p.Omitted++
			continue
		}
		p.Commands = append(p.Commands, event.CommandJudged{Name: event.CutText(j.Name, maxWord), Class: string(j.Class), Decision: string(j.Decision), Rule: j.Rule})
	}
	return p
}

// used counts the calls of a tool in this turn: those that ran, and those before
// this one in its answer that may still.
func (t *Turn) used(c *Call) (n int) {
	if u := t.usedOf(c.Name); u != nil {
		n = u.Calls
	}
	for _, o := range t.Step.Calls {
		if o == c {
			break
		}
		if o.Name == c.Name && o.Phase != CallOver {
			n++
		}
	}
	return n
}

// used counts the calls of a tool that ran in a turn.
type used struct {
	Tool  string `json:"tool"`
	Calls int    `json:"calls"`
}

func (t *Turn) usedOf(tool string) *used {
	return find(t.Used, func(u *used) bool { return u.Tool == tool })
}

// ran counts a call that is over.
func (t *Turn) ran(c *Call) {
	if c.Attempt == 0 {
		return
	}
	if u := t.usedOf(c.Name); u != nil {
		u.Calls++
		return
	}
	t.Used = append(t.Used, used{c.Name, 1})
}

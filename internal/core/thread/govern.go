package thread

import (
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/policy"
)

// recordRuleChange records, before anything else of a turn, that other rules took effect
// than those the thread knows. Rules of people are named; none are the built-in.
func recordRuleChange(d *decision) bool {
	var digest belay.Digest
	if d.rules.Policy != nil {
		digest = d.rules.Policy.Digest
	}
	if digest == d.Policy {
		return false
	}
	d.record(d.fact(event.PolicyChanged{Kind: "rules", Op: "loaded", Digest: d.rules.Policy}))
	return true
}

// limitMode takes the mode and the boundary of the session, which a person changed while
// the thread had rules of its own.
func (h *handler) limitMode(c belay.LimitMode) {
	if c.Mode == h.Widest && c.Boundary == h.Outer {
		return
	}
	var said []string
	if c.Mode != "" {
		said = append(said, "the session's mode is "+string(c.Mode))
	}
	if c.Boundary != "" {
		said = append(said, "the session's boundary is "+c.Boundary)
	}
	h.record(h.threadFact(event.ThreadUpdated{Mode: string(c.Mode), Boundary: c.Boundary, Reason: strings.Join(said, ", ")}))
}

// within are rules in no wider mode or boundary than the thread may have.
func (g *gateState) within(r *Rules) *Rules {
	if r == nil || g.Widest == "" && g.Outer == "" {
		return r
	}
	narrow := *r
	narrow.Settings.Mode = policy.Narrower(g.Widest, r.Settings.Mode)
	if g.Outer != "" {
		have := r.Settings.Boundary
		if _, ok := r.Gate().Bound(have); !ok {
			have = policy.ModeBoundary(narrow.Settings.Mode)
		}
		narrow.set, narrow.Settings.Boundary = r.Gate().Meet(have, g.Outer)
	}
	return &narrow
}

// governed folds that rules took effect.
func (g *gateState) governed(p event.PolicyChanged) {
	g.Policy = ""
	if p.Digest != nil {
		g.Policy = p.Digest.Digest
	}
}

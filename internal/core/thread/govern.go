package thread

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
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

// governed folds that rules took effect.
func (g *gateState) governed(p event.PolicyChanged) {
	g.Policy = ""
	if p.Digest != nil {
		g.Policy = p.Digest.Digest
	}
}

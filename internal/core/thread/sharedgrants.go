package thread

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// What a person allowed beyond one call covers the tree of the agent that asked, each
// agent within its own tools and boundary. The session has it as soon as there is another
// thread that it covers, and counts its calls from then on.

// grantUse is a call's use of a counted grant that the session counts.
type grantUse struct {
	Grant belay.EventID `json:"grant"`
	Given bool          `json:"given,omitempty"`
}

// shareGrants tells the session of what people allowed here and that covers others.
func shareGrants(d *decision) bool {
	for i := range d.Grants {
		g := &d.Grants[i]
		if g.Shared || len(d.Children) == 0 && (d.Depth == 0 || g.Only) {
			continue
		}
		d.record(d.grantFact("shared", g))
		d.send(core.Send{To: d.Session.Stream(), Command: belay.AskGrants{Thread: d.Thread, Share: &belay.SharedGrant{Grant: g.ID, Tool: g.Tool, Scope: g.Scope, Only: g.Only, By: g.By,
			Dialect: string(g.Dialect), Prefix: g.Prefix, Worst: string(g.Worst), Bound: g.Bound, Within: g.Within, Taint: g.Taint, Count: g.Left, Until: g.Until, Stands: g.Stands}}})
	}
	return false
}

func (s *State) grantFact(op string, g *policy.Grant) core.Fact {
	return s.threadFact(event.PolicyChanged{Kind: "grant", Op: op, Grant: g.ID, Tool: g.Tool, Tier: g.Tier, Scope: g.Scope, By: g.By})
}

// takeShared takes what another thread of the tree was allowed, or the session's word on
// the use of a counted grant.
func (h *handler) takeShared(c belay.GiveGrant) {
	if p := c.Shared; p != nil && h.granted(p.Grant) == nil && len(h.Grants) < maxGrants {
		h.record(core.Fact{IDs: h.threadIDs(), Data: event.PolicyChanged{Kind: "grant", Op: "granted", Grant: p.Grant, Tool: p.Tool, Tier: policy.TierUser, Scope: p.Scope, Only: p.Only, By: p.By,
			Dialect: p.Dialect, Prefix: p.Prefix, Worst: p.Worst, Bound: p.Bound, Within: p.Within, Taint: p.Taint, Count: p.Count, Until: p.Until, Stands: p.Stands}})
	}
	if c.Use == nil {
		return
	}
	g, call := h.granted(c.Use.Grant), h.Turn.call(c.Use.Call)
	switch {
	case g == nil:
	case c.Use.Over:
		h.record(h.grantFact("used_up", g))
	case call != nil:
		f := h.grantFact("used", g)
		f.IDs = h.callIDs(call)
		h.record(f)
	}
}

// waitsForUse reports whether a call that a counted grant allows waits for the session to
// count it, and asks for that once.
func (d *decision) waitsForUse(c *Call, v *policy.Verdict) bool {
	g := d.granted(v.Grant)
	switch {
	case v.Decision != policy.Allow || g == nil || !g.Shared || g.Left == 0:
		return false
	case c.Use != nil && c.Use.Grant == g.ID:
		return !c.Use.Given
	}
	f := d.grantFact("asked", g)
	f.IDs = d.callIDs(c)
	d.record(f)
	d.send(core.Send{To: d.Session.Stream(), Command: belay.AskGrants{Thread: d.Thread, Use: &belay.GrantUse{Grant: g.ID, Call: c.ID}}})
	return true
}

// applyUse folds the use of a counted grant.
func (s *State) applyUse(e event.Envelope, p event.PolicyChanged) {
	if c := s.Turn.call(e.IDs.Call); c != nil {
		c.Use = &grantUse{Grant: p.Grant, Given: p.Op == "used"}
	}
}

// coveredNow judges calls again that ask, because what they ask for was allowed, to this
// agent or another one: with another question.
func (s *State) coveredNow(tool string) {
	for _, c := range s.Turn.calls() {
		if a := c.Ask; c.Name == tool && c.Phase == CallJudged && a != nil && a.Open && a.Kind == "permission" {
			c.Phase = CallProposed
		}
	}
}

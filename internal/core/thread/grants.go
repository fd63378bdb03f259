package thread

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// revoked is an allowance that a person took back. It is gone from the rules of
// turns that were submitted before.
type revoked struct {
	Tool string `json:"tool"`
	Seq  int64  `json:"seq"` // the fact that says so
}

// Bounds of what an answer allows.
const (
	maxGrants     = 128 // of a thread
	maxGrantCount = 10_000
	maxPrefix     = 200 // bytes
)

// gives records what an answer allows besides the call that asks.
func (h *handler) gives(o Open, c belay.RespondAction) error {
	bad := func(format string, args ...any) error {
		return belay.Errorf(belay.CodeBadCommand, format, args...).At(string(c.Action))
	}
	switch {
	case c.Scope == "prefix" && (c.Prefix == "" || len(c.Prefix) > maxPrefix), c.Scope != "prefix" && c.Prefix != "":
		return bad("a prefix of at most %d bytes goes with the scope prefix, and only with it", maxPrefix)
	case c.Scope == "count" && c.Count == 0, c.Count < 0, c.Count > maxGrantCount, c.Scope == "session" && c.Count > 0:
		return bad("a count is one of 1 to %d, and not of a scope of session", maxGrantCount)
	case c.Scope == "until" && c.Until.IsZero(), !c.Until.IsZero() && !h.now.Before(c.Until), c.Scope == "session" && !c.Until.IsZero():
		return bad("the time must be one to come, and not of a scope of session")
	case len(h.Grants) >= maxGrants:
		return belay.Errorf(belay.CodeTooMany, "the thread has %d grants already", len(h.Grants)).WithHint("belay grants list %s, then belay grants revoke ID", h.Session)
	case c.Count == 1: // the call that asks is the one
		return nil
	}
	taint := h.Taint
	if c.Clear {
		taint = nil
	}
	a, err := h.allowing(h.rules, o, taint, h.now)
	if err != nil {
		return err
	}
	g, err := a.grant(c)
	if err != nil {
		return err
	}
	p := event.PolicyChanged{Kind: "grant", Op: "granted", Tool: g.Tool, Tier: g.Tier, Scope: g.Scope, By: h.order.Principal, Only: g.Only, Dialect: string(g.Dialect), Prefix: g.Prefix, Worst: string(g.Worst),
		Bound: g.Bound, Within: g.Within, Taint: g.Taint, Count: g.Left, Until: g.Until, Stands: g.Stands}
	if g.Bound != "" {
		p.ArgsHash = o.Call.ArgsHash
	}
	if o.Wider != nil {
		p.Within, p.Boundary, p.Bounds = "", o.Wider.Name, &o.Wider.Is
	}
	h.record(h.fact(p))
	return nil
}

// binding names an exact call: the tool and what defines it, the arguments, which
// hold argv, folder and environment, the workspace that they are seen from, and
// the shell.
func binding(r *Rules, spec belay.ToolSpec, c *Call) belay.Digest {
	b, err := json.Marshal(struct {
		Tool      belay.ToolSpec
		Args      belay.Digest
		Workspace string
		Shell     *belay.Shell `json:",omitempty"`
	}{spec, c.ArgsHash, r.Workspace, r.Settings.Shell})
	if err != nil {
		panic("thread: " + err.Error()) // plain data
	}
	return belay.DigestOf(b)
}

// within names a boundary; none is a name too.
func within(b *policy.Bound) belay.Digest {
	if b == nil {
		return belay.DigestOf(nil)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		panic("thread: " + err.Error()) // plain data
	}
	return belay.DigestOf(raw)
}

// inForce are the grants that count at a time.
func (s *State) inForce(r *Rules, at time.Time) (all []policy.Grant) {
	for _, g := range r.Grants {
		if !slices.ContainsFunc(s.Revoked, func(v revoked) bool { return v.Tool == g.Tool && v.Seq > s.Turn.Since }) {
			all = append(all, g)
		}
	}
	for _, g := range s.Grants {
		if g.Until.IsZero() || at.Before(g.Until) {
			all = append(all, g)
		}
	}
	for _, w := range s.Wider {
		if w.Exactly != "" {
			all = append(all, policy.Grant{Tool: w.Tool, Tier: policy.TierUser, Kind: "answer", Scope: "session", By: w.By, ID: w.ID, Dialect: w.Dialect, Bound: w.Exactly, Taint: w.Taint, Stands: w.Stands})
		}
	}
	return all
}

// unspent leaves out what calls that were judged a moment ago have used up.
func unspent(grants []policy.Grant, rd *core.Ready) (left []policy.Grant) {
	for _, g := range grants {
		if g.Left > 0 && !g.Shared {
			if g.Left -= uses(rd, g.ID); g.Left <= 0 {
				continue
			}
		}
		left = append(left, g)
	}
	return left
}

// uses counts the verdicts that were decided just now by a grant.
func uses(rd *core.Ready, id belay.EventID) (n int) {
	for _, f := range rd.Decided {
		if p, ok := f.Data.(event.PermissionEvaluated); ok && p.Grant == id {
			n++
		}
	}
	return n
}

// evaluate asks the gate. What was allowed in one boundary isn't in another: such
// grants are taken out of the request.
func evaluate(r *Rules, q *policy.Request) policy.Verdict {
	for {
		v := policy.Evaluate(r.Gate(), q)
		i := slices.IndexFunc(q.Grants, func(g policy.Grant) bool { return v.Grant != "" && g.ID == v.Grant && g.Within != "" })
		if i < 0 || q.Grants[i].Within == within(v.Bound) {
			return v
		}
		q.Grants = slices.Delete(slices.Clone(q.Grants), i, i+1)
	}
}

// usesUp says that the last call of a grant was just allowed.
func (d *decision) usesUp(v *policy.Verdict) {
	if g := d.granted(v.Grant); g != nil && g.Left > 0 && !g.Shared && g.Left <= uses(d.ready, v.Grant) {
		d.record(d.fact(event.PolicyChanged{Kind: "grant", Op: "used_up", Grant: g.ID, Tool: g.Tool, Tier: g.Tier, Scope: g.Scope, By: g.By}))
	}
}

// granted is a grant of this thread.
func (gs *gateState) granted(id belay.EventID) *policy.Grant {
	return find(gs.Grants, func(g *policy.Grant) bool { return id != "" && g.ID == id })
}

// revoke takes back a grant of this thread, or one of the session's that the
// rules of turns name.
func (h *handler) revoke(c belay.RevokeGrant) error {
	p := event.PolicyChanged{Kind: "grant", Op: "revoked", Grant: belay.EventID(c.Grant), Tool: c.Tool, Tier: policy.TierUser, Scope: "session", By: h.order.Principal, Reason: event.CutText(c.Reason, maxSaid)}
	g, w := h.granted(p.Grant), find(h.Wider, func(g *widerGrant) bool { return g.ID == p.Grant })
	switch {
	case c.Tool != "":
	case g != nil:
		p.Tool, p.Scope = g.Tool, g.Scope
	case w != nil:
		p.Tool, p.Boundary = w.Tool, w.Bound.Name
	case strings.HasPrefix(h.order.Principal, "stream:"): // a copy that was used up
		return nil
	default:
		return belay.Errorf(belay.CodeNotFound, "the thread has no such grant").At(c.Grant).WithHint("belay grants list %s", h.Session)
	}
	h.record(h.threadFact(p))
	if g != nil && g.Shared && !g.Copied {
		h.send(core.Send{To: h.Session.Stream(), Command: belay.RevokeGrant{Grant: c.Grant, Reason: c.Reason}})
	}
	return nil
}

// applyGrant folds what a person allowed or took back.
func (s *State) applyGrant(e event.Envelope, p event.PolicyChanged) {
	switch {
	case p.Op == "granted" && p.Bounds != nil:
		s.wider(e.ID(), p)
	case p.Op == "granted":
		copied := p.Grant != ""
		s.grant(policy.Grant{Tool: p.Tool, Tier: p.Tier, Kind: "answer", By: p.By, ID: cmp.Or(p.Grant, e.ID()), Only: p.Only, Shared: copied, Copied: copied, Scope: p.Scope, Prefix: p.Prefix, Worst: policy.Class(p.Worst),
			Dialect: policy.Dialect(p.Dialect), Bound: p.Bound, Within: p.Within, Taint: p.Taint, Left: p.Count, Until: p.Until, Stands: p.Stands})
		if s.Turn != nil {
			s.Turn.forgetDenials()
		}
		s.coveredNow(p.Tool)
	case p.Op == "shared":
		if g := s.granted(p.Grant); g != nil {
			g.Shared = true
		}
	case p.Op == "asked" || p.Op == "used":
		s.applyUse(e, p)
	case p.Op == "revoked" || p.Op == "used_up":
		if s.granted(p.Grant) == nil && p.Op == "revoked" && p.Boundary == "" {
			s.Revoked = keep(append(s.Revoked, revoked{p.Tool, e.Seq}), maxGrants)
		}
		s.Grants = slices.DeleteFunc(s.Grants, func(g policy.Grant) bool { return g.ID == p.Grant })
		s.Wider = slices.DeleteFunc(s.Wider, func(g widerGrant) bool { return g.ID == p.Grant })
	}
}

// grant adds what isn't there yet: a tool is allowed for the session once.
func (gs *gateState) grant(g policy.Grant) {
	whole := func(o policy.Grant) bool {
		return o.Tool == g.Tool && o.Prefix == "" && o.Bound == "" && o.Dialect == g.Dialect && slices.Equal(o.Taint, g.Taint)
	}
	if !whole(g) || !slices.ContainsFunc(gs.Grants, whole) {
		gs.Grants = append(gs.Grants, g)
	}
}

// usedGrant counts a call that was allowed.
func (gs *gateState) usedGrant(p event.PermissionEvaluated) {
	if g := gs.granted(p.Grant); g != nil && g.Left > 1 && !g.Shared {
		g.Left--
	}
}

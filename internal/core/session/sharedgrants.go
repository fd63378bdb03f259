package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// SharedGrant is what a person allowed to an agent and that others of its tree have too.
type SharedGrant struct {
	belay.SharedGrant
	From belay.ThreadID `json:"from"` // that got it
}

// maxShared bounds what the agents of a session share.
const maxShared = 256

// root is the main thread of a thread's tree.
func (f Family) root(t belay.ThreadID) belay.ThreadID {
	for c := f.ByThread(t); c != nil; c = f.ByThread(t) {
		t = c.Parent
	}
	return t
}

// covers reports whether a grant is a thread's too.
func (s *State) covers(g *SharedGrant, t belay.ThreadID) bool {
	if !g.Only {
		return s.Family.root(g.From) == s.Family.root(t)
	}
	for c := s.Family.ByThread(t); c != nil && t != g.From; c = s.Family.ByThread(t) {
		t = c.Parent
	}
	return t == g.From
}

// unexpired are the grants whose time isn't over.
func (s *State) unexpired(now time.Time) []SharedGrant {
	return slices.DeleteFunc(slices.Clone(s.Shared), func(g SharedGrant) bool { return !g.Until.IsZero() && !now.Before(g.Until) })
}

func (s *State) shared(id belay.EventID) *SharedGrant {
	if i := slices.IndexFunc(s.Shared, func(g SharedGrant) bool { return g.Grant == id }); i >= 0 {
		return &s.Shared[i]
	}
	return nil
}

func (s *State) sharedFact(op string, g *SharedGrant, call belay.CallID) core.Fact {
	ids := s.ids()
	ids.Call = call
	return core.Fact{IDs: ids, Data: event.PolicyChanged{Kind: "grant", Op: op, Grant: g.Grant, Thread: g.From, Tool: g.Tool, Tier: policy.TierUser, Scope: g.Scope, By: g.By}}
}

// shareGrant gives what a person allowed one thread to the others that it covers. The
// session counts no more than it can remember: what is beyond that is taken back, with the
// reason, or the thread would lose its first use and be told that all are used up. One whose
// time is over takes no room.
func (s *State) shareGrant(from belay.ThreadID, p belay.SharedGrant, now time.Time) ([]core.Fact, []core.Send) {
	switch {
	case s.shared(p.Grant) != nil:
		return nil, nil
	case len(s.unexpired(now)) >= maxShared:
		return nil, []core.Send{{To: from.Stream(), Command: belay.RevokeGrant{Grant: string(p.Grant),
			Reason: fmt.Sprintf("the agents of a session share %d allowances at most, and they have as many: revoke some, and allow it again", maxShared)}}}
	}
	f := core.Fact{IDs: s.ids(), Data: event.PolicyChanged{Kind: "grant", Op: "granted", Grant: p.Grant, Thread: from, Tool: p.Tool, Tier: policy.TierUser, Scope: p.Scope, Only: p.Only, By: p.By,
		Dialect: p.Dialect, Prefix: p.Prefix, Worst: p.Worst, Bound: p.Bound, Within: p.Within, Taint: p.Taint, Count: p.Count, Until: p.Until, Stands: p.Stands}}
	return []core.Fact{f}, s.tellOthers(&SharedGrant{p, from}, belay.GiveGrant{Shared: &p})
}

func (s *State) tellOthers(g *SharedGrant, c belay.Command) (sends []core.Send) {
	for _, t := range s.All() {
		if t != g.From && s.covers(g, t) {
			sends = append(sends, core.Send{To: t.Stream(), Command: c})
		}
	}
	return sends
}

// useGrant counts a call that a shared grant covers, if any are left.
func (s *State) useGrant(thread belay.ThreadID, u belay.GrantUse) (facts []core.Fact, sends []core.Send) {
	g := s.shared(u.Grant)
	if u.Over = g == nil || !s.covers(g, thread); !u.Over {
		facts = append(facts, s.sharedFact("used", g, u.Call))
		if g.Count == 1 {
			facts = append(facts, s.sharedFact("used_up", g, ""))
		}
	}
	return facts, []core.Send{{To: thread.Stream(), Command: belay.GiveGrant{Use: &u}}}
}

// revokeShared takes back what a person allowed to a tree.
func (s *State) revokeShared(g *SharedGrant, by, reason string) ([]core.Fact, []core.Send) {
	f := s.sharedFact("revoked", g, "")
	p := f.Data.(event.PolicyChanged)
	p.By, p.Reason = by, event.CutText(reason, 2<<10)
	f.Data = p
	return []core.Fact{f}, s.tellOthers(g, belay.RevokeGrant{Grant: string(g.Grant), Reason: reason})
}

// inherits are the grants of a tree that a new child of a thread has from its beginning.
func (s *State) inherits(parent, child belay.ThreadID) (sends []core.Send) {
	for i := range s.Shared {
		if g := s.Shared[i].SharedGrant; s.covers(&s.Shared[i], parent) {
			sends = append(sends, core.Send{To: child.Stream(), Command: belay.GiveGrant{Shared: &g}})
		}
	}
	return sends
}

// applyShared folds what the agents of a tree share.
func (s *State) applyShared(p event.PolicyChanged, at time.Time) {
	switch g := s.shared(p.Grant); {
	case p.Op == "granted" && g == nil:
		s.Shared = append(s.unexpired(at), SharedGrant{belay.SharedGrant{Grant: p.Grant, Tool: p.Tool, Scope: p.Scope, Only: p.Only, By: p.By, Dialect: p.Dialect, Prefix: p.Prefix,
			Worst: p.Worst, Bound: p.Bound, Within: p.Within, Taint: p.Taint, Count: p.Count, Until: p.Until, Stands: p.Stands}, p.Thread})
	case g == nil:
	case p.Op == "used":
		g.Count--
	case p.Op == "used_up", p.Op == "revoked":
		s.Shared = slices.DeleteFunc(s.Shared, func(o SharedGrant) bool { return o.Grant == p.Grant })
	}
}

package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/workspace/protected"
)

// RequestedBoundary is a boundary that a call asks for itself, and why.
type RequestedBoundary struct {
	Boundary string
	Reason   string
}

// Codes of verdicts that are about a boundary.
const (
	codeBoundaryWeak = "BOUNDARY_UNAVAILABLE" // the machine can't confine as much as must be
	codeWider        = "WIDER_BOUNDARY"       // the call asks for more than it would get
)

// part is what decided one part of a call. The zero part is a grant.
type part struct {
	rule     string
	boundary string
	widens   bool // it can give more than the turn has
	named    bool // people wrote it
	degrades bool
}

// confines reports whether a boundary is decided for a call: its tool starts
// programs, and the caller wants one decided.
func (r *Request) confines() bool { return r.Confine && has(r.Tool.Capabilities, capProcess) }

// confine settles the boundary of a call, and makes an allow an ask where the
// machine can't confine what runs as much as must be.
func (s *Set) confine(v *Verdict, r *Request) {
	bound, by, named := s.boundOf(v, r)
	wider := false
	if own, ok := s.own(r, bound); ok {
		wider = r.Widened == nil && !own.Within(bound)
		if bound, by = own, "grant"; r.Widened == nil {
			by, named = "the call", true
		}
	}
	if v.Decision == Ask && !wider || v.ofExactly(r) {
		bound = needed(bound, r)
	}
	bound = leaving(shown(bound, v, r), v, r)
	v.Bound, v.Boundary, v.BoundBy = &bound, bound.Name, by
	if v.MinLevel = bound.Is.Least; !bound.Unbounded() {
		if least := ModeLeast(r.Mode); least.AtLeast(v.MinLevel) {
			v.MinLevel = least
		}
		if named && belay.L2.AtLeast(v.MinLevel) {
			v.MinLevel = belay.L2
		}
	}
	if wider {
		widerAsked(v, r)
	}
	if belay.Level(r.Level).AtLeast(v.MinLevel) {
		return
	}
	if v.degrades() {
		v.MinLevel = belay.Level(r.Level)
		return
	}
	v.weak = true
	v.Hint = "run without a boundary: --boundary full, with --allow " + r.Tool.Name + " where that asks; or accept less by a rule: degrade: allow"
	v.Reason = "boundary " + v.Boundary + " wants level " + string(v.MinLevel) + ", and this machine gives " + cmp.Or(r.Level, "L0") + "; " + v.Reason
	if v.Decision == Allow {
		v.Decision, v.Source, v.Rule, v.Tier, v.Priority, v.ReasonCode = Ask, "rule", "builtin/least-level", TierDefault, 0, codeBoundaryWeak
		markOverridden(v)
	}
}

// own is the boundary that a call has for itself in place of the one that it would get:
// what a person gave exactly this call, or what it asks for. Wider than that one it is
// only asked about.
func (s *Set) own(r *Request, bound Bound) (Bound, bool) {
	wish, ok := s.Bound(r.Wish.Boundary)
	switch {
	case r.Widened != nil:
		return *r.Widened, true
	case ok && wish.Within(bound):
		return Meet(wish, bound), true
	}
	return wish, ok
}

// needed is a boundary widened by what a command line visibly needs: a person
// who approves it approves that too, and isn't asked again when the boundary
// stops it. Mode plan has nothing to give.
func needed(b Bound, r *Request) Bound {
	if b.Unbounded() || r.Mode == belay.ModePlan {
		return b
	}
	widen := func(op, target string) {
		if wider, why := Widen(b, op, target, r.Workspace); why == "" {
			b = wider
		}
	}
	n := 0
	for _, c := range r.Commands {
		for _, p := range c.Writes {
			if n++; path.IsAbs(p) && !sink(p) && !below(path.Clean(p), r.Workspace) && n <= maxNeeded {
				widen(OpWrite, p)
			}
		}
		if c.Class == Network && n <= maxNeeded {
			widen(OpConnect, "")
		}
	}
	return b
}

// ofExactly reports whether a verdict comes of a grant of exactly the call: it gets what
// the person saw that it needs.
func (v *Verdict) ofExactly(r *Request) bool {
	return v.Grant != "" && slices.ContainsFunc(r.Grants, func(g Grant) bool { return g.ID == v.Grant && g.Bound != "" })
}

// shown is a boundary with the secrets that a command line names, where a person is
// asked, was asked about exactly this call, or has written a rule that allows it. From
// what the mode allows because it is confined they stay hidden.
func shown(b Bound, v *Verdict, r *Request) Bound {
	n, exactly := 0, v.ofExactly(r)
	for i, c := range r.Commands {
		if v.Decision != Ask && !exactly && (len(v.parts) != len(r.Commands) || !v.parts[i].named) {
			continue
		}
		for _, p := range c.Reads {
			if b.Unbounded() || !path.IsAbs(p) || strings.ContainsAny(p, "*?[") || len(p) > maxTarget || protected.Secret(p) == "" || slices.Contains(b.Is.Read, p) || n == maxNeeded {
				continue
			}
			n++
			b.Is.Read, b.Name = append(slices.Clone(b.Is.Read), p), b.Name+", read "+p
		}
	}
	return b
}

// leaving is a boundary with the protected names that a command line says it writes:
// who allows the line allows that, since in every mode but bypass they are asked
// about. And what a line of git alone fetches is history, where no mode by itself
// allowed it.
func leaving(b Bound, v *Verdict, r *Request) Bound {
	if v.Decision == Deny {
		return b
	}
	n, fetches, alone := 0, false, len(r.Commands) > 0
	for i := range r.Commands {
		c := &r.Commands[i]
		for _, p := range c.Writes {
			if strings.ContainsAny(path.Base(p), "*?[") {
				p = path.Dir(p)
			}
			if path.IsAbs(p) && below(p, r.Workspace) && obeyed(p, r.Workspace) && n < maxNeeded {
				if wider, why := Widen(b, OpObeyed, p, r.Workspace); why == "" {
					b = wider
					n++
				}
			}
		}
		git := c.Name == "git" && len(c.Args) > 0 && c.Literal(0) && slices.Contains(historic, c.Args[0])
		alone = alone && (git || c.Class == ReadOnly)
		if git && c.Class == Network {
			fetches = v.Decision == Ask || len(v.parts) == len(r.Commands) && !strings.HasPrefix(v.parts[i].rule, "builtin/")
			alone = alone && fetches
		}
	}
	if fetches && alone {
		b.Is.History = true
	}
	return b
}

// historic are the commands of git that fetch history, or bring files out of it and
// from nowhere else.
var historic = []string{"clone", "fetch", "pull", "submodule", "checkout", "switch", "restore", "reset", "merge", "rebase", "stash", "worktree"}

// maxNeeded is how many things of a command line are looked at for it.
const maxNeeded = 8

// widerAsked is the verdict on a call that asks for more than it would get:
// nothing but a person gives that. Mode plan has nothing to give.
func widerAsked(v *Verdict, r *Request) {
	reason := "it asks for boundary " + v.Boundary
	if r.Wish.Reason != "" {
		reason += ": " + r.Wish.Reason
	}
	if v.Decision == Ask {
		reason += "; " + v.Reason
	}
	v.Decision, v.Source, v.Rule, v.Tier, v.Priority, v.ReasonCode, v.Reason = Ask, "rule", "builtin/wider-boundary", TierDefault, 0, codeWider, reason
	v.Hint = "do without it, or start with --boundary " + v.Boundary
	if r.Mode == belay.ModePlan {
		v.Decision, v.Hint = Deny, "mode plan only reads; run with --mode on_request"
	}
	markOverridden(v)
}

// asConfined is a call as rules see it: where the turn's boundary confines nothing, there
// is no level; and it says whether what the call starts, if nobody is asked about it, is
// kept from the network.
func (s *Set) asConfined(r *Request) *Request {
	if !r.Confine {
		return r
	}
	c := *r
	if b, ok := s.Bound(r.Boundary); ok && b.Unbounded() {
		c.Level = string(belay.L0)
	}
	if r.confines() {
		bound, _, _ := s.baseOf(r)
		if own, ok := s.own(r, bound); ok {
			bound = own
		}
		c.offline = bound.offline(r.Level)
	}
	return &c
}

// offline reports whether a boundary keeps programs from the network on a machine that
// can apply a level.
func (b Bound) offline(level string) bool {
	return !b.Unbounded() && b.Is.Network == belay.NetworkNone && belay.Level(level).AtLeast(belay.L2)
}

// baseOf returns the boundary that mode, settings and the tool give a call, what named
// it, and whether anything did.
func (s *Set) baseOf(r *Request) (base Bound, by string, named bool) {
	base, ok := s.Bound(r.Boundary)
	by, named = "settings", ok
	if !ok {
		base, _ = s.Bound(ModeBoundary(r.Mode))
		by = "mode " + string(r.Mode)
	}
	if t := r.Tool.Bounds; t != nil {
		base, by, named = s.OfTool(t), "tool "+r.Tool.Name, t.Boundary != ""
	}
	return base, by, named
}

// boundOf returns the boundary that mode, settings and rules give a call, what
// named it, and whether anything did. In a command line each simple command's
// rule counts, and the line gets what all of them allow. A rule of an untrusted
// file only narrows; a built-in one says that there must be a boundary.
func (s *Set) boundOf(v *Verdict, r *Request) (out Bound, by string, named bool) {
	base, by, named := s.baseOf(r)
	out = Bound{Name: belay.BoundaryFull, Is: belay.Boundary{Name: belay.BoundaryFull, Network: belay.NetworkFull}}
	from := by
	for _, c := range v.parts {
		b, who := base, from
		if wants, ok := s.Bound(c.boundary); ok {
			b, who = wants, "rule "+c.rule
			switch {
			case !c.named:
				b = base
			case !c.widens:
				b = Meet(base, wants)
			}
			if b.as(base) {
				who = from
			}
			named = named || c.named
		}
		if m := Meet(out, b); !m.as(out) || len(v.parts) == 1 {
			by = who
		}
		out = Meet(out, b)
	}
	if len(v.parts) == 0 {
		out = base
	}
	if r.onlyReads(v) {
		if out = onlyReading(out); !out.as(base) {
			by, named = "only reads", named && r.Boundary != belay.BoundaryFull
		}
	}
	return out, by, named
}

// onlyReads reports whether a command line only reads, and nobody has named the
// boundary for any part of it. What shows the machine isn't confined where the
// session isn't.
func (r *Request) onlyReads(v *Verdict) bool {
	full := r.Boundary == belay.BoundaryFull
	for i := range r.Commands {
		if c := &r.Commands[i]; c.Class != ReadOnly || full && c.ShowsMachine() {
			return false
		}
	}
	if full && !belay.Level(r.Level).AtLeast(belay.L2) {
		return false // nothing holds it to that
	}
	return len(r.Commands) > 0 && !slices.ContainsFunc(v.parts, func(c part) bool { return c.named && c.boundary != "" })
}

// degrades reports whether the rules that decided every part of a call accept
// less than the level that must be.
func (v *Verdict) degrades() bool {
	return len(v.parts) > 0 && !slices.ContainsFunc(v.parts, func(c part) bool { return !c.degrades })
}

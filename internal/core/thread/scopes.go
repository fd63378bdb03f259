package thread

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// What an answer allows beyond the call that asks has to hold: the same call, made again,
// isn't asked about. So each allowance is tried before it is given, and offered only if it
// would be. What the call's own result brings into the conversation counts as there.

// What an allowance covers.
const (
	CoversTool  = "tool"  // every call of the tool
	CoversHost  = "host"  // its calls to one host
	CoversWords = "words" // commands that begin so
	CoversFiles = "files" // calls for files below a folder
	CoversCall  = "call"  // exactly the call
)

// Offer is something that an answer can allow beyond the call that asks.
type Offer struct {
	Scope  string   `json:"scope"`            // session, prefix, count, until
	Covers string   `json:"covers"`           // tool, host, words, files, call
	Prefix string   `json:"prefix,omitempty"` // the host, the words, the folder
	Taint  []string `json:"taint,omitempty"`  // what the calls bring from outside, kind:origin, which a yes accepts
}

// Offers are what an answer to an open question can allow beyond the call that asks. args
// are the call's arguments when they are long.
func (s *State) Offers(r *Rules, id belay.ActionID, args []byte, at time.Time) (all []Offer) {
	o := s.OpenAsk(id)
	if o.Call == nil || o.Kind != "permission" || len(s.Grants) >= maxGrants {
		return nil
	}
	if o.Call.ArgsRef != nil {
		whole := *o.Call
		whole.Args, whole.ArgsRef, o.Call = args, nil, &whole
	}
	a, err := s.allowing(s.within(r), o, s.Taint, at)
	if err != nil {
		return nil
	}
	for _, c := range []belay.RespondAction{{Scope: "session"}, {Scope: "prefix", Prefix: a.proposed()}, {Scope: "count", Count: 2}, {Scope: "until", Until: at.Add(time.Hour)}} {
		if c.Scope != "prefix" || c.Prefix != "" {
			if g, err := a.grant(c); err == nil {
				all = append(all, a.offer(c.Scope, g))
			}
		}
	}
	return all
}

// allowing is a call that asks, and the gate's request about it when it comes again.
type allowing struct {
	rules *Rules
	spec  belay.ToolSpec
	call  Call
	wider *policy.Bound // that the question is about
	again policy.Request
	own   []string // what its result brings from outside
}

// allowing looks at a call that asks, in a conversation with some taint.
func (s *State) allowing(r *Rules, o Open, taint []policy.Taint, at time.Time) (*allowing, error) {
	spec, known := r.Tool(o.Call.Name)
	if !known {
		return nil, belay.Errorf(belay.CodeBadCommand, "the turn has no tool %s any more", o.Call.Name)
	}
	a := &allowing{rules: r, spec: spec, call: *o.Call, wider: o.Wider}
	a.call.Again, a.call.Ask = nil, nil
	q := s.policyRequest(r, spec, &a.call, at)
	q.Headless, q.Rerun, q.Binding = false, false, binding(r, spec, &a.call)
	if o.Wider != nil {
		a.call.Bound, q.Widened = o.Wider, o.Wider
	}
	brings := r.resultTaint(spec, &a.call)
	a.own = slices.DeleteFunc(slices.Clone(brings), func(t string) bool { return !fromOutside(t) })
	then := gateState{Taint: slices.Clone(taint)}
	then.taintedBy(brings, 0)
	q.Taint = then.Taint
	a.again = q
	return a, nil
}

// proposed is a prefix for calls like the one that asks; empty: there is none.
func (a *allowing) proposed() string {
	switch {
	case a.wider != nil:
		return ""
	case a.spec.Command != nil:
		return policy.ProposePrefix(a.again.Commands)
	case a.spec.HostArg != "":
		return policy.Sessioned(&a.again, nil).Prefix
	}
	return a.call.Path
}

// exactly is a grant of the call alone.
func (a *allowing) exactly(scope string) policy.Grant {
	return policy.Grant{Tool: a.call.Name, Tier: policy.TierUser, Kind: "answer", Scope: scope, Dialect: a.again.Dialect,
		Bound: a.again.Binding, Within: within(a.call.Bound), Stands: a.call.Stands, Taint: policy.Accepted(&a.again, a.own)}
}

// grant is the grant that an answer gives: of a scope of session the widest that holds. It
// is an error if none does.
func (a *allowing) grant(c belay.RespondAction) (g policy.Grant, err error) {
	var tries []policy.Grant
	switch {
	case a.wider != nil && c.Scope != "session":
		return g, belay.Errorf(belay.CodeBadCommand, "a wider boundary is given once, or for the session")
	case a.wider != nil:
		tries = []policy.Grant{a.exactly(c.Scope)}
	case c.Scope == "session":
		tries = []policy.Grant{policy.Sessioned(&a.again, a.own), a.exactly(c.Scope)}
	case c.Scope == "prefix":
		if g, err = policy.Prefixed(a.again, c.Prefix); err != nil {
			return g, err
		}
		tries = []policy.Grant{g}
	case c.Scope == "count", c.Scope == "until":
		tries = []policy.Grant{a.exactly(c.Scope)}
	default:
		return g, belay.Errorf(belay.CodeBadCommand, "%q is none of once, session, prefix, count, until", c.Scope)
	}
	for _, g = range tries {
		g.Left, g.Until, g.Only = max(0, c.Count-1), c.Until, c.Only
		why := a.fails(g)
		if why == "" {
			return g, nil
		}
		err = belay.Errorf(belay.CodeBadCommand, "scope %s wouldn't count: the same call would ask again the next time: %s", c.Scope, why).WithHint("allow it once")
	}
	return g, err
}

// fails is why a grant wouldn't let the call through when it comes again; empty: it would.
func (a *allowing) fails(g policy.Grant) string {
	q := a.again
	g.ID = "offered"
	q.Grants = append(slices.Clone(q.Grants), g)
	v := evaluate(a.rules, &q)
	switch {
	case v.Decision != policy.Allow:
		i := slices.IndexFunc(v.Commands, func(j policy.Judged) bool { return j.Decision != policy.Allow })
		if i >= 0 && len(v.Commands) > 1 {
			return v.Commands[i].Name + ": " + v.Reason
		}
		return v.Reason
	case a.call.Bound != nil && (v.Bound == nil || !a.call.Bound.Within(*v.Bound)):
		return "it would run in " + boundaryName(v.Boundary) + ", and needs " + boundaryName(a.call.Bound.Name)
	}
	return ""
}

// offer says what a grant covers.
func (a *allowing) offer(scope string, g policy.Grant) Offer {
	o := Offer{Scope: scope, Covers: CoversTool, Prefix: g.Prefix, Taint: g.Taint}
	switch {
	case g.Bound != "":
		o.Covers = CoversCall
	case g.Prefix != "" && a.spec.Command != nil:
		o.Covers = CoversWords
	case g.Prefix != "" && a.spec.HostArg != "":
		o.Covers = CoversHost
	case g.Prefix != "":
		o.Covers = CoversFiles
	}
	return o
}

package thread

import (
	"cmp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// Bounds of taint. Of more origins the first of each kind are kept: what counts
// is that there is one.
const (
	maxTaints = 32
)

// searchTaint is what an answer brings in for which the model's vendor searched the web.
const searchTaint = "web:web_search"

// taint records, before the model reads a result, that content from outside is
// now in the conversation, or a secret. It comes before everything else of a
// turn, so that no end of it can get in between.
func taint(d *decision) bool {
	st := d.Turn.Step
	if st == nil {
		if len(d.rules.Context) > 0 && d.rules.UntrustedWorkspace { // instructions of a stranger are in the first request
			if more := d.unknown([]string{tainted(policy.TaintWorkspace, d.rules.Workspace)}); more != nil {
				d.record(d.fact(event.ContextResolved{Taint: more}))
			}
		}
		return len(d.ready.Decided) > 0
	}
	if more := d.unknown([]string{searchTaint}); st.Searched && more != nil {
		d.record(d.fact(event.ContextResolved{Taint: more}))
		return true
	}
	told := []string{}
	for _, c := range st.Calls {
		if c.Phase != CallOver || len(c.Taint) == 0 {
			continue
		}
		more := slices.DeleteFunc(d.unknown(c.Taint), func(t string) bool { return slices.Contains(told, t) })
		if len(more) == 0 {
			continue
		}
		told = append(told, more...)
		d.record(core.Fact{IDs: d.callIDs(c), Data: event.ContextResolved{Taint: more}})
	}
	return len(d.ready.Decided) > 0
}

// resultTaint is what a call's result brings into the conversation, as kind:origin.
func (r *Rules) resultTaint(spec belay.ToolSpec, c *Call) (out []string) {
	switch {
	case spec.Server != "":
		out = append(out, tainted(policy.TaintMCP, spec.Server))
	case spec.Untrusted && slices.Contains(spec.Capabilities, capNetwork):
		for _, h := range policy.Hosts(spec, r.args(c)) {
			out = append(out, tainted(policy.TaintWeb, cmp.Or(h, spec.Name)))
		}
		if len(out) == 0 {
			out = append(out, tainted(policy.TaintWeb, spec.Name))
		}
	case spec.Untrusted:
		out = append(out, tainted("tool", spec.Name))
	case r.shutIn(c): // whatever it tries, nothing from outside gets to it
	case c.has(string(policy.Network)) || c.has(string(policy.EscapeAttempt)) || c.has(string(policy.Unparsable)):
		out = append(out, tainted(policy.TaintWeb, spec.Name)) // a command that can have fetched something
	}
	if c.has(policy.TagSecret) {
		origin := spec.Name
		if len(c.paths()) > 0 {
			origin = c.paths()[0]
		}
		out = append(out, tainted(policy.TaintSecret, origin))
	}
	if r.UntrustedWorkspace && (spec.Access != "" || hasProcess(spec)) {
		out = append(out, tainted(policy.TaintWorkspace, r.Workspace))
	}
	return out
}

// shutIn reports whether the programs of a call run where they reach no network
// and none of the folders that boundaries open to be read: what they print is the
// workspace's, the system's or their own.
func (r *Rules) shutIn(c *Call) bool {
	return r.confines(c) && belay.Level(r.Boundary.Level).AtLeast(belay.L2) && c.Bound.Is.Network == belay.NetworkNone && len(c.Bound.Is.Read) == 0
}

// has reports whether the gate saw a risk in the call.
func (c *Call) has(tag string) bool { return slices.Contains(c.Tags, tag) }

// tainted is a taint as facts say it.
func tainted(kind, origin string) string { return kind + ":" + event.CutText(origin, policy.MaxOrigin) }

// unknown are the taints that the thread doesn't have yet and has room for.
func (g *gateState) unknown(taints []string) (out []string) {
	for _, t := range taints {
		kind, origin, _ := strings.Cut(t, ":")
		same := slices.ContainsFunc(g.Taint, func(h policy.Taint) bool { return h.Kind == kind && h.Origin == origin })
		full := len(g.Taint)+len(out) >= maxTaints && slices.ContainsFunc(g.Taint, func(h policy.Taint) bool { return h.Kind == kind })
		if !same && !full && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// taintedBy folds that content of these origins is in the conversation.
func (g *gateState) taintedBy(taints []string, seq int64) {
	for _, t := range g.unknown(taints) {
		kind, origin, _ := strings.Cut(t, ":")
		g.Taint = append(g.Taint, policy.Taint{Kind: kind, Origin: origin, Seq: seq})
	}
}

// cleared folds that a person looked and took taint away. What came since stays.
func (g *gateState) cleared(taints []string) {
	g.Taint = slices.DeleteFunc(g.Taint, func(h policy.Taint) bool { return slices.Contains(taints, tainted(h.Kind, h.Origin)) })
	if len(g.Taint) == 0 {
		g.Taint = nil
	}
}

// TaintNames are a thread's taints as facts say them, at most n: of each kind
// one at least.
func TaintNames(taints []policy.Taint, n int) (out []string) {
	var kinds []string
	for _, t := range taints {
		if len(out) < n || !slices.Contains(kinds, t.Kind) {
			out, kinds = append(out, tainted(t.Kind, t.Origin)), append(kinds, t.Kind)
		}
	}
	return out
}

package policy

import (
	"testing"

	"github.com/belay-run/belay"
)

// A tool whose programs have a boundary of their own gets it in every mode, and what it
// keeps from the network sends nothing out.
func TestTheBoundaryOfATool(t *testing.T) {
	for _, c := range []struct {
		bounds  *belay.ToolBounds
		level   string
		want    string
		network string
		asks    bool
	}{
		{&belay.ToolBounds{}, "L3", "workspace-write", belay.NetworkNone, false},
		{&belay.ToolBounds{Boundary: "read-only"}, "L3", "read-only", belay.NetworkNone, false},
		{&belay.ToolBounds{Network: "full"}, "L3", "workspace-write, network full", belay.NetworkFull, true},
		{&belay.ToolBounds{Boundary: "nonsense"}, "L3", "read-only", belay.NetworkNone, false},
		{&belay.ToolBounds{}, "L0", "workspace-write", belay.NetworkNone, true},
		{nil, "L3", "workspace-write", belay.NetworkNone, false},
	} {
		tool := belay.ToolSpec{Name: "mcp__s__t", Capabilities: []string{capProcess}, Access: belay.Write, Destructive: true, Bounds: c.bounds}
		v := Evaluate(Builtin(), &Request{Tool: tool, Args: []byte("{}"), Mode: belay.ModeDefault, Workspace: "/w", Level: c.level, Confine: true, Network: belay.NetworkFull,
			Taint: []Taint{{Kind: "web", Origin: "a.example"}}, Grants: []Grant{{Tool: tool.Name, Tier: TierUser, Kind: "rule"}}})
		if v.Bound == nil || v.Bound.Name != c.want || v.Bound.Is.Network != c.network {
			t.Errorf("%+v: bound %+v, want %s with network %s", c.bounds, v.Bound, c.want, c.network)
		}
		if asks := v.Decision == Ask; asks != c.asks {
			t.Errorf("%+v at %s: %s (%s), want that it asks: %v", c.bounds, c.level, v.Decision, v.Rule, c.asks)
		}
	}
}

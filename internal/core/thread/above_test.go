package thread

import (
	"testing"

	"github.com/belay-run/belay"
)

// TestAnAgentSendsNothingUpward: not to itself, and not to those that wait for it.
func TestAnAgentSendsNothingUpward(t *testing.T) {
	d := &decision{State: &State{}}
	d.Lineage = []belay.Ancestor{{Thread: "thr_main"}, {Subagent: "sub_1", Name: "lead", Thread: "thr_1"}, {Subagent: "sub_2", Name: "writer", Thread: "thr_2"}}
	for name, code := range map[string]string{"thr_main": "AGENT_ABOVE", "lead": "AGENT_ABOVE", "sub_1": "AGENT_ABOVE", "writer": "AGENT_SELF", "sub_2": "AGENT_SELF", "other": "", "": ""} {
		p := d.above(name)
		if p == nil && code != "" || p != nil && (p.Code != code || p.Hint == "") {
			t.Errorf("%q: got %+v, want %s", name, p, code)
		}
	}
}

package thread

import (
	"testing"

	"github.com/belay-run/belay/internal/core"
)

// Who reserves by an estimate must know what it stands on.
func TestWhatAnEstimateStandsOn(t *testing.T) {
	for name, c := range map[string]struct {
		lines           []string
		reported, whole bool
	}{
		"counted":                 {[]string{"rules tokens=1000", "open", "submit t1 tokens=10"}, false, true},
		"nothing is counted":      {[]string{"open", "submit t1"}, false, false},
		"a turn isn't":            {[]string{"rules tokens=1000 completion=conversational", "open", "submit t1", "submit t2 tokens=10", `model "done" stop=stop input=0`}, false, false},
		"instructions aren't":     {[]string{"open", "submit t1 tokens=10"}, false, false},
		"reported":                {[]string{"rules tokens=1000", "open", "submit t1 tokens=10", `model read{"path":"a"} input=2000`, "result 1 ok tokens=50"}, true, true},
		"reported after a gap":    {[]string{"rules tokens=1000", "open", "submit t1", `model read{"path":"a"} input=2000`, "result 1 ok tokens=50"}, true, true},
		"another model's report":  {[]string{"rules tokens=1000 route=a/x route=b/y", "open", "submit t1 tokens=10", `model read{"path":"a"} input=2000`, "result 1 ok tokens=50", "fail auth"}, false, true},
		"reported, but gone back": {[]string{"rules tokens=1000 completion=conversational", "open", "submit t1 tokens=10", `model "done" stop=stop input=2000`, "rollback thread -", "submit t2 tokens=10"}, false, true},
	} {
		w := newWorld(t)
		for _, line := range c.lines {
			w.do(line)
		}
		w.supply()
		tokens, reported, whole := w.d.decision(w.now, &core.Ready{}).estimate("")
		if reported != c.reported || whole != c.whole || tokens == 0 && name != "nothing is counted" {
			t.Errorf("%s: %d tokens, reported %v, whole %v", name, tokens, reported, whole)
		}
	}
}

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

// A refusal that names the context counts for its model from then on, and a report
// of less than half of the estimate means that something was left out, once.
func TestContextsAreLearned(t *testing.T) {
	for name, c := range map[string]struct {
		lines   []string
		context int64
		cut     core.Cut
	}{
		"nothing is known":        {[]string{"rules tokens=1000 compact=off route=a/x", "open", "submit t1 tokens=5000"}, 0, core.Cut{From: 512, Below: 3000, Doubted: 512}},
		"its reports are no size": {[]string{"rules tokens=3000 compact=off route=a/x", "open", "submit t1 tokens=5000", `model read{"path":"a"} input=1000`, "result 1 ok tokens=50"}, 0, core.Cut{}},
		"many tools":              {[]string{"rules tokens=3000 compact=off route=a/x", "open", "submit t1 tokens=5000"}, 0, core.Cut{From: 1500, Below: 4000, Doubted: 512}},
		"nothing is counted":      {[]string{"rules tokens=1000 compact=off route=a/x", "open", "submit t1"}, 0, core.Cut{}},
		"the catalogue":           {[]string{"rules tokens=1000 compact=off route=a/x:8000", "open", "submit t1 tokens=5000"}, 8000, core.Cut{From: 512, Below: 3000, Doubted: 512}},
		"a refusal":               {[]string{"rules tokens=1000 compact=off route=a/x", "open", "submit t1 tokens=5000", "fail overflow limit=4096", "submit t2 tokens=10"}, 4096, core.Cut{}},
		"a refusal of less":       {[]string{"rules tokens=1000 compact=off route=a/x:8000", "open", "submit t1 tokens=5000", "fail overflow limit=4096", "submit t2 tokens=10"}, 4096, core.Cut{}},
		"a refusal of more":       {[]string{"rules tokens=1000 compact=off route=a/x:8000", "open", "submit t1 tokens=5000", "fail overflow limit=9000", "submit t2 tokens=10"}, 6000, core.Cut{}},
		"a cut":                   {[]string{"rules tokens=1000 compact=off route=a/x:8000", "open", "submit t1 tokens=5000", "fail overflow cut=2048", "submit t2 tokens=10"}, 2048, core.Cut{}},
		"a cut that was none":     {[]string{"rules tokens=1000 compact=off route=a/x:8000", "open", "submit t1 tokens=5000", "fail overflow cut=2048", "submit t2 tokens=10", `model read{"path":"a"} input=400`, "result 1 ok tokens=50"}, 8000, core.Cut{}},
		"a refusal, and no sizes": {[]string{"rules tokens=1000 compact=off route=a/x:8000", "open", "submit t1 tokens=5000", "fail overflow limit=4096", "submit t2 tokens=10", `model read{"path":"a"} input=400`, "result 1 ok tokens=50"}, 4096, core.Cut{}},
		"no sizes, and a refusal": {[]string{"rules tokens=1000 compact=off route=a/x:8000", "open", "submit t1 tokens=5000", `model read{"path":"a"} input=400`, "result 1 ok tokens=50", "fail overflow limit=4096", "submit t2 tokens=10"}, 2048, core.Cut{}},
		"no sizes, and more":      {[]string{"rules tokens=1000 compact=off route=a/x", "open", "submit t1 tokens=5000", `model read{"path":"a"} input=400`, "result 1 ok tokens=50", `model read{"path":"b"} input=4000`, "result 1 ok tokens=9000"}, 0, core.Cut{}},
		"another refusal":         {[]string{"rules tokens=1000 compact=off route=a/x", "open", "submit t1 tokens=5000", "fail overflow limit=4096", "submit t2 tokens=10", "fail overflow limit=2048", "submit t3 tokens=10"}, 2048, core.Cut{}},
		"another model's":         {[]string{"rules tokens=1000 compact=off route=a/x route=b/y:10000", "open", "submit t1 tokens=5000", "fail overflow limit=4096"}, 10000, core.Cut{From: 512, Below: 3000, Doubted: 512}},
		"it says none":            {[]string{"rules tokens=1000 compact=off route=a/x", "open", "submit t1 tokens=5000", "fail overflow", "submit t2 tokens=1000"}, 0, core.Cut{From: 512, Below: 3516, Doubted: 512}},
		"it has read more":        {[]string{"rules tokens=1000 compact=off route=a/x", "open", "submit t1 tokens=5000", `model read{"path":"a"} input=8000`, "result 1 ok tokens=50"}, 0, core.Cut{From: 6000, Below: 4040}},
		"it reports the same":     {[]string{"rules tokens=1000 compact=off route=a/x", "open", "submit t1 tokens=3000", `model read{"path":"a"} input=4000`, "result 1 ok tokens=3000", `model read{"path":"b"} input=4096`, "result 1 ok tokens=3000", `model read{"path":"c"} input=4096`, "result 1 ok tokens=3000"}, 0, core.Cut{From: 3072, Below: 5074}},
		"it has, in what's gone":  {[]string{"rules tokens=1000 compact=off route=a/x completion=conversational", "open", "submit t1 tokens=5000", `model "done" stop=stop input=8000`, "rollback thread -", "submit t2 tokens=1000"}, 0, core.Cut{From: 512, Below: 1335, Doubted: 512}},
	} {
		w := newWorld(t)
		for _, line := range c.lines {
			w.do(line)
		}
		w.supply()
		var asks core.CallModel
		for _, e := range w.d.Next(w.now).Effects {
			asks, _ = e.(core.CallModel)
		}
		if asks.Step == "" || asks.Context != c.context || asks.Cut != c.cut {
			t.Errorf("%s: context %d, %+v", name, asks.Context, asks.Cut)
		}
	}
}

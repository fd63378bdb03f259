package thread

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay/event"
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

// A refusal that names the context counts for its model from then on. So does what a server
// says that it read, where two reports in a row show that it leaves out the rest: less than
// half, and no more although more was sent. A person is told of that once.
func TestContextsAreLearned(t *testing.T) {
	start := func(rules, text string) []string {
		return []string{"rules tokens=1000 compact=off route=a/x" + rules, "open", "submit t1 tokens=" + text}
	}
	reads := func(lines []string, tokens int, inputs ...int) []string {
		for _, n := range inputs {
			lines = append(lines, fmt.Sprintf(`model read{"path":"a"} input=%d`, n), fmt.Sprintf("result 1 ok%d tokens=%d", len(lines), tokens))
		}
		return lines
	}
	refused := func(lines []string, limit string) []string {
		return append(lines, "fail overflow"+limit, fmt.Sprintf("submit t%d tokens=10", len(lines)))
	}
	for name, c := range map[string]struct {
		lines   []string
		context int64
		told    bool
	}{
		"nothing is known":         {start("", "5000"), 0, false},
		"the catalogue":            {start(":8000", "5000"), 8000, false},
		"a refusal":                {refused(start("", "5000"), " limit=4096"), 4096, false},
		"a refusal of less":        {refused(start(":8000", "5000"), " limit=4096"), 4096, false},
		"a refusal of more":        {refused(start(":8000", "5000"), " limit=9000"), 6000, false},
		"another refusal":          {refused(refused(start("", "5000"), " limit=4096"), " limit=2048"), 2048, false},
		"another model's":          {append(start(" route=b/y:10000", "5000"), "fail overflow limit=4096"), 10000, false},
		"it says none":             {refused(start("", "5000"), ""), 0, false},
		"an earlier release's cut": {refused(start("", "5000"), " cut=2048"), 0, false},

		"one report of less":           {reads(start("", "9000"), 500, 4096), 0, false},
		"it cuts":                      {reads(start("", "9000"), 500, 4096, 4096), 4096, true},
		"it cuts whole messages":       {reads(start("", "9000"), 500, 4096, 3700), 4096, true},
		"it cuts, and is told once":    {reads(start("", "9000"), 500, 4096, 4096, 4096, 4090), 4096, true},
		"it cuts what grew":            {reads(start("", "1000"), 3000, 2000, 4096, 4096, 4096, 4096), 4096, true},
		"it reads more than that":      {reads(start("", "9000"), 500, 4096, 4096, 5000), 5000, true},
		"its reports grow":             {reads(start("", "9000"), 3000, 4000, 5500, 7000, 8500), 0, false},
		"a later one says more":        {reads(start("", "9000"), 500, 4096, 9000, 4096), 0, false},
		"only what is new to it":       {reads(start("", "9000"), 500, 9000, 600, 600, 600), 0, false},
		"no size, but always the same": {append([]string{"rules tokens=5000 compact=off route=a/x"}, reads(start("", "9000")[1:], 500, 2048, 2048)...), 0, true},
		"far too little":               {append([]string{"rules tokens=5000 compact=off route=a/x"}, reads(start("", "9000")[1:], 500, 300, 300)...), 0, false},
		"it cuts, then says no size":   {reads(start(":8000", "9000"), 500, 4096, 4096, 400), 8000, true},
		"a refusal, and no sizes":      {reads(refused(start(":8000", "5000"), " limit=4096"), 50, 400), 4096, false},
		"no sizes, and a refusal":      {refused(reads(start(":8000", "5000"), 50, 400), " limit=4096"), 2048, false}, // it was estimated to be that short
		"it cut, in what's gone": {append(start(" completion=conversational", "9000"), `model "done" stop=stop input=4096`, "rollback thread -",
			"submit t2 tokens=9500", `model "done" stop=stop input=4096`, "submit t3 tokens=10"), 0, false},
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
		told := 0
		for _, e := range w.log {
			if warning, ok := e.Data.(event.RuntimeWarning); ok && warning.Code == codeContextCut && strings.Contains(warning.Message, "num_ctx") {
				told++
			}
		}
		if asks.Step == "" || asks.Context != c.context || told > 1 || told == 1 != c.told {
			t.Errorf("%s: context %d, told %d times, want %d and %v", name, asks.Context, told, c.context, c.told)
		}
	}
}

// What a model wrote that nobody is sent isn't in its next request, whatever the protocol:
// reasoning, and what only another model can read.
// Guarantee: M5.
func TestWhatIsNotSentIsNotCounted(t *testing.T) {
	for name, c := range map[string]struct {
		lines       []string
		least, most int64
	}{
		"an answer":                      {[]string{`model read{"path":"a"} usage=3000/40`, "result 1 ok tokens=50"}, 3050, 3150},
		"reasoning":                      {[]string{`model read{"path":"a"} usage=3000/5040`, "result 1 ok tokens=50"}, 3050, 3150},
		"reasoning that goes back":       {[]string{`model read{"path":"a"} usage=3000/5040 sealed=20000`, "result 1 ok tokens=50"}, 8050, 8150},
		"reasoning for another model":    {[]string{`model read{"path":"a"} usage=3000/5040 sealed=20000`, "result 1 ok tokens=50", "fail auth"}, 3050, 3150},
		"reasoning of two models":        {[]string{"fail auth", `model read{"path":"a"} usage=3000/5040 sealed=20000`, "result 1 ok tokens=50"}, 8050, 8150},
		"reasoning that nobody measured": {[]string{`model read{"path":"a"} usage=none sealed=20000`, "result 1 ok tokens=50"}, 8050, 8150},
	} {
		w := newWorld(t)
		for _, line := range append([]string{"rules tokens=1000 compact=off route=a/x route=b/y", "open", "submit t1 tokens=2000"}, c.lines...) {
			w.do(line)
		}
		if n := w.d.s.Turn.Step.Tokens; n < c.least || n > c.most {
			t.Errorf("%s: the next request has about %d tokens, want %d to %d", name, n, c.least, c.most)
		}
	}
}

// A summary may have as much beside its text as its model thought for an answer so far, or
// it would never come.
func TestAModelThatThinksHasRoomForItsSummary(t *testing.T) {
	for usage, output := range map[string]int64{"3000/40": 4096, "3000/5040/5000": 9096} {
		w := newWorld(t)
		for _, line := range []string{"rules tokens=1000 route=a/x:100000", "open", "submit t1 tokens=2000", `model read{"path":"a"} usage=` + usage, "compact names"} {
			w.do(line)
		}
		w.do("result 1 ok tokens=50")
		if c := w.d.s.Compacting; c == nil || c.Output != output {
			t.Errorf("%s: %+v", usage, c)
		}
	}
}

package tokens

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

func fresh(r model.Request) Estimate {
	return NewEstimator(Profile{Model: "m"}, new(Corrections), nil).Estimate(r)
}

func answer(i int) []belay.Message {
	id := belay.CallID(fmt.Sprintf("call_%d", i))
	return []belay.Message{
		{Role: belay.RoleAssistant, Parts: []belay.Part{{Text: "I look."}, {Call: &belay.ToolCall{ID: id, Name: "read", Args: json.RawMessage(`{"path":"a.go"}`)}}}},
		{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: id, Text: strings.Repeat("package a ", i%50)}}}},
	}
}

// However a conversation grows, shrinks and changes at its ends, the estimate is
// the one that counting everything gives.
// Guarantee: M5.
func TestWhatIsRememberedIsWhatCountingGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := NewEstimator(Profile{Model: "m"}, new(Corrections), nil)
		r := model.Request{System: "Work.", Tools: []model.ToolDef{{Name: "read", Doc: "Reads.", Schema: json.RawMessage(`{"type":"object"}`)}}}
		next := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"more", "more", "less", "other", "system", "tools", "note"}).Draw(t, "what") {
			case "more":
				next++
				r.Messages = append(r.Messages, answer(next)...)
			case "less":
				r.Messages = r.Messages[:len(r.Messages)/2]
			case "other": // a conversation that was read anew, with another beginning
				next++
				r.Messages = append([]belay.Message{belay.Text(belay.RoleUser, fmt.Sprint("task ", next))}, r.Messages...)
			case "system":
				r.System += " More."
			case "tools":
				r.Tools = append(r.Tools, model.ToolDef{Name: "t", Doc: "Does.", Schema: json.RawMessage(`{}`)})
			case "note":
				r.Note = "It is late."
			}
			if got, want := e.Estimate(r), fresh(r); got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	})
}

// What was counted isn't looked at again: a message in the middle that is another
// one, which never happens, goes unnoticed.
// Guarantee: M4.
func TestAStepCostsWhatIsNewInIt(t *testing.T) {
	e := NewEstimator(Profile{Model: "m"}, new(Corrections), nil)
	var ms []belay.Message
	for i := range 100 {
		ms = append(ms, answer(i)...)
	}
	before := e.Estimate(model.Request{Messages: ms})
	ms[50] = belay.Text(belay.RoleUser, strings.Repeat("much more ", 10_000))
	if got := e.Estimate(model.Request{Messages: ms}); got != before {
		t.Errorf("old messages are counted again: %+v, %+v", before, got)
	}
	grown := e.Estimate(model.Request{Messages: append(ms, belay.Text(belay.RoleUser, "and now?"))})
	if d := grown.Raw - before.Raw; d < 4 || d > 12 {
		t.Errorf("a short message adds %d tokens", d)
	}
}

func TestEveryPartCounts(t *testing.T) {
	with := func(p ...belay.Part) int64 {
		return fresh(model.Request{Messages: []belay.Message{{Role: belay.RoleUser, Parts: p}}}).Raw
	}
	empty := with()
	sized := func(n int64) *belay.Attachment { return &belay.Attachment{Ref: belay.Ref{Size: n}} }
	for name, c := range map[string]struct {
		part  belay.Part
		least int64
		most  int64
	}{
		"text":        {belay.Part{Text: "four words of text"}, 3, 6},
		"call":        {belay.Part{Call: &belay.ToolCall{Name: "read", Args: json.RawMessage(`{"path":"a"}`)}}, 14, 20},
		"signed call": {belay.Part{Call: &belay.ToolCall{Name: "r", Echo: &belay.Echo{Data: make([]byte, 4000)}}}, 1000, 1020},
		"result":      {belay.Part{Result: &belay.ToolResult{Text: "done"}}, 7, 9},
		"echo":        {belay.Part{Echo: &belay.Echo{By: "x", Data: make([]byte, 400)}}, 100, 102},
		"picture":     {belay.Part{Image: sized(5)}, 2500, 2500},
		"document":    {belay.Part{File: sized(5)}, 2000, 2000},
		"longer one":  {belay.Part{File: sized(100_000)}, 10_000, 10_000},
		"scan":        {belay.Part{File: sized(1 << 30)}, 100_000, 100_000},
	} {
		if got := with(c.part) - empty; got < c.least || got > c.most {
			t.Errorf("%s: %d tokens", name, got)
		}
	}
	e := NewEstimator(Profile{Pictures: "patches28"}, new(Corrections), func(belay.Attachment) (int, int) { return 28, 56 })
	r := model.Request{Messages: []belay.Message{{Parts: []belay.Part{{Image: sized(5)}}}}}
	if got := e.Estimate(r).Raw; got != perRequest+perMessage+2 {
		t.Errorf("a picture whose size is known: %d", got)
	}
}

func TestLoadingMakesAnEstimateExact(t *testing.T) {
	r := model.Request{System: strings.Repeat("antidisestablishmentarianism ", 100)}
	cl100k.once = sync.Once{} // as at the start
	cl100k.is.Store(nil)
	e := NewEstimator(Profile{Vocabulary: "cl100k_base"}, new(Corrections), nil)
	if got := e.Estimate(r); got.Exact {
		t.Error("exact without a vocabulary")
	}
	Load("cl100k_base")
	if got := e.Estimate(r); !got.Exact || got.Raw != int64(perRequest+Count("cl100k_base", r.System)) {
		t.Errorf("%+v", got)
	}
}

func TestTheFactorIsOfTheModel(t *testing.T) {
	r := model.Request{System: strings.Repeat("word ", 1000)}
	one := NewEstimator(Profile{}, new(Corrections), nil).Estimate(r).Raw
	more := NewEstimator(Profile{Factor: 1.5}, new(Corrections), nil).Estimate(r).Raw
	if d := 2*(more-perRequest) - 3*(one-perRequest); d < 0 || d > 1 { // rounded up
		t.Errorf("%d and %d", one, more)
	}
}

func TestReportsCorrectEstimates(t *testing.T) {
	c := new(Corrections)
	e := NewEstimator(Profile{Model: "anthropic/x"}, c, nil)
	r := model.Request{System: strings.Repeat("word ", 1000)}
	first := e.Estimate(r)
	c.Learn("anthropic/x", first.Raw, belay.Usage{Input: first.Raw * 13 / 10, Reported: true})
	if got := e.Estimate(r); got.Raw != first.Raw || got.Input < first.Raw*129/100 || got.Input > first.Raw*131/100 {
		t.Errorf("%+v after %+v", got, first)
	}
	other := NewEstimator(Profile{Model: "anthropic/y"}, c, nil).Estimate(r)
	if other.Input != other.Raw {
		t.Error("one model's reports correct another's estimates")
	}
	for range 30 {
		c.Learn("anthropic/x", first.Raw, belay.Usage{Input: first.Raw * 8 / 10, Reported: true})
	}
	if f := c.factor("anthropic/x"); f < 0.79 || f > 0.81 {
		t.Errorf("the factor doesn't follow: %v", f)
	}
	for _, u := range []belay.Usage{{Input: 5 * first.Raw}, {Reported: true}, {Input: -1, Reported: true}} {
		before := c.factor("anthropic/x")
		if c.Learn("anthropic/x", first.Raw, u); c.factor("anthropic/x") != before {
			t.Errorf("%+v taught something", u)
		}
	}
	if c.Learn("short", leastRaw-1, belay.Usage{Input: 1000, Reported: true}); c.factor("short") != 1 {
		t.Error("a short request taught something")
	}
}

func TestCorrectionsStayInBounds(t *testing.T) {
	c := new(Corrections)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 500 {
				m := fmt.Sprint("m", (n*7+i)%400)
				c.Learn(m, 100, belay.Usage{Input: int64(1 + n*n*i), Reported: true})
				if f := c.factor(m); f < leastFactor || f > mostFactor {
					t.Errorf("%s: factor %v", m, f)
				}
			}
		})
	}
	wg.Wait()
	if n := len(c.learned); n != maxLearned {
		t.Errorf("%d models are remembered", n)
	}
}

func BenchmarkEstimate(b *testing.B) {
	Load(Default)
	for _, n := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprint(n, " messages"), func(b *testing.B) {
			var ms []belay.Message
			for i := range n / 2 {
				ms = append(ms, answer(i)...)
			}
			e := NewEstimator(Profile{}, new(Corrections), nil)
			e.Estimate(model.Request{Messages: ms})
			text := strings.Repeat("one step more ", 20)
			r := model.Request{Messages: append(ms, belay.Text(belay.RoleUser, text))}
			was := *e
			b.ReportAllocs()
			for b.Loop() {
				*e = was
				e.Estimate(r)
			}
		})
	}
}

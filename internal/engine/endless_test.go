package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/tool"
)

// unending is a provider that streams a chunk for ever to requests that it is asked for, with
// a pause after each, and says to the others what its provider does.
type unending struct {
	model.Provider
	to    func(model.Request) bool
	chunk model.Chunk
	pause time.Duration
	asked *int
}

func (p unending) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	if !p.to(r) {
		return p.Provider.Stream(ctx, r)
	}
	return func(yield func(model.Chunk, error) bool) {
		*p.asked++
		for ctx.Err() == nil {
			if !yield(p.chunk, nil) {
				return
			}
			time.Sleep(p.pause)
		}
		yield(model.Chunk{}, ctx.Err())
	}
}

// A turn's time binds each request that it waits for: its steps', the final one's with its
// repetitions, a summary's, a checker's.
// Guarantee: E9.
func TestAProviderThatStreamsForEverIsBoundByTheTurnsTime(t *testing.T) {
	every := func(model.Request) bool { return true }
	for name, c := range map[string]struct {
		to    func(model.Request) bool
		chunk model.Chunk
	}{
		"a step, and the final one": {every, model.Chunk{Text: strings.Repeat("a", 50)}},
		"reasoning":                 {every, model.Chunk{Reasoning: strings.Repeat("a", 50)}},
		"nothing at all":            {every, model.Chunk{}},
		"a summary":                 {func(r model.Request) bool { return strings.Contains(r.Note+r.System, "ummar") }, model.Chunk{Text: "so "}},
		"a checker":                 {func(r model.Request) bool { return r.Model == "strict-1" }, model.Chunk{Text: "{"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				long := pure("put", func(context.Context, tool.Call) (tool.Result, error) {
					return tool.Result{Text: strings.Repeat("some more words to look at ", 2000)}, nil
				})
				asked := new(int)
				five := func(s *belay.Settings) { s.Limits.Time = belay.Duration(5 * time.Second) }
				b := newBench(t, "steps:\n  - calls: [{tool: put, args: {}}]\n"+done, five, long)
				b.wrap = func(p model.Provider) model.Provider {
					return unending{p, c.to, c.chunk, 300 * time.Millisecond, asked}
				}
				if name == "a checker" {
					b.govern(policy.Document{Checkers: []policy.Checker{{ID: "reviewer", Kind: "model", Tier: policy.TierAdmin, Provider: "judge",
						Model: "strict-1", Instructions: "Deny it.", When: policy.Match{Tool: []string{"put"}}}}})
				}
				b.changeRules(func(r *thread.Rules) {
					r.Tokens = 500
					r.Routes = []core.Candidate{{Candidate: event.Candidate{Route: event.Route{Provider: "scripted", Model: "m"}, Context: 6_000}}}
				})
				begun := time.Now()
				submitCounted(b, 1, "Go.")
				log := b.log()
				if took := time.Since(begun); took > 8*time.Second || *asked == 0 {
					t.Errorf("the turn of 5s took %s; the provider was asked %d times", took, *asked)
				}
				if n := len(find[event.TurnFailed](log)) + len(find[event.TurnCompleted](log)); n != 1 {
					t.Errorf("%d ends", n)
				}
			})
		})
	}
}

// What a provider sends is bounded: by answer, and the one that sent too much isn't asked again.
// Guarantee: E52.
func TestAnAnswerThatIsTooLongIsNotAskedForAgain(t *testing.T) {
	mega := strings.Repeat("a", 1<<20)
	for name, chunk := range map[string]model.Chunk{
		"text": {Text: mega}, "reasoning": {Reasoning: mega}, "sealed reasoning": {Echo: &belay.Echo{By: "a/b", Data: []byte(`"` + mega + `"`)}},
		"calls": {Call: &model.Call{Name: "put", Args: fmt.Sprintf(`{"a":%q}`, mega)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := new(int)
			b := newBench(t, "steps:\n"+done, nil)
			b.wrap = func(p model.Provider) model.Provider {
				return unending{p, func(model.Request) bool { return true }, chunk, 0, asked}
			}
			log := b.run()
			failed, ends := find[event.ModelFailed](log), find[event.TurnFailed](log)
			if *asked != 1 || len(failed) != 1 || failed[0].Problem.Code != "TOO_LARGE" || failed[0].Problem.Retryable || len(ends) != 1 {
				t.Errorf("%s: asked %d times: %+v, %+v", name, *asked, failed, ends)
			}
			kept := 0
			for _, e := range log {
				raw, _ := event.Encode(e.Data)
				kept += len(raw)
			}
			if kept > 6<<20 {
				t.Errorf("%s: %d bytes are in the log", name, kept)
			}
		})
	}
}

// The same over HTTP, in every protocol: an answer that comes byte by byte, for many minutes.
// Guarantee: E9.
func TestAServerThatStreamsForEverIsBoundByTheTurnsTime(t *testing.T) {
	for _, protocol := range protocols(t) {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := with(answer(strings.Repeat("on and on ", 50), "stop"), func(f *modelserver.Fault) { f.Drip = time.Second })
				endless := always("endless", slow)
				p := endless.stage(t, protocol)
				defer p.far.close()
				p.b.changeRules(func(r *thread.Rules) { r.Settings.Limits.Time = belay.Duration(5 * time.Second) })
				begun := time.Now()
				log := p.b.run()
				ends := find[event.TurnFailed](log)
				if took := time.Since(begun); took > 8*time.Second || len(ends) != 1 || ends[0].Outcome != belay.TimedOut {
					t.Errorf("the turn of 5s took %s and ended with %+v", took, ends)
				}
			})
		})
	}
}

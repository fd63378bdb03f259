package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/tool"
)

// weighing counts what a model is asked.
type weighing struct {
	model.Provider
	all *[]int64
}

func (w weighing) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	n := tokens.Instructions(r.System, r.Tools)
	for _, m := range r.Messages {
		n += tokens.Message(m)
	}
	if r.Note != "" {
		n += tokens.Text(r.Note)
	}
	*w.all = append(*w.all, n)
	return w.Provider.Stream(ctx, r)
}

// What facts say of each part adds up to what is asked when no usage is reported:
// texts, results, failures, calls that aren't run, notes, a turn that failed.
// Guarantee: M5.
func TestFactsAddUpToWhatIsAsked(t *testing.T) {
	long := strings.Repeat("The quick brown fox jumps over 13 lazy dogs.\n", 120)
	run := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: long}, nil }
	breaks := func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, tool.Failf(tool.NotFound, "GONE", "%s", strings.Repeat("it is not there any more; ", 20)).WithHint("look elsewhere")
	}
	said := "  - {text: \"" + strings.Repeat("I think about it once more. ", 60) + "\"}\n"
	script := "steps:\n  - calls: [{tool: look}]\n  - calls: [{tool: gone}, {tool: unknown, args: {a: \"" + strings.Repeat("b c ", 200) + "\"}}]\n" + said + said + done +
		"  - calls: [{tool: look}, {tool: look}]\n" + said + said + said +
		"  - calls: [{tool: look}]\n" + done + done + done
	b := newBench(t, script, nil, pure("look", run), pure("gone", breaks))
	b.changeRules(func(r *thread.Rules) {
		var defs []model.ToolDef
		for _, s := range r.Tools {
			if s.Name == tool.ReadName { // nothing is cut here, so it isn't offered
				continue
			}
			defs = append(defs, model.ToolDef{Name: s.Name, Doc: s.Doc, Schema: s.Input})
		}
		r.Tokens = tokens.Instructions(r.System, defs)
	})
	var asked []int64
	b.wrap = func(p model.Provider) model.Provider { return weighing{p, &asked} }
	text := strings.Repeat("Find out where the time goes. ", 40)
	turns := 0
	goOn := func(c belay.Command) {
		turns++
		if err := b.h.Enqueue(t.Context(), belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_", turns)), Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: c}); err != nil {
			t.Fatal(err)
		}
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
	}
	goOn(belay.CreateSession{Workspace: "/ws", Settings: b.settings})
	for i := range 3 {
		goOn(belay.SubmitWork{Thread: thr, Task: belay.TaskID(fmt.Sprint("task_", i)), Turn: belay.TurnID(fmt.Sprint("turn_", i)), Text: belay.Content{Text: text, Tokens: tokens.Text(text)}, Rules: b.ref})
	}
	estimated := find[event.ModelRequested](b.log())
	if len(estimated) != len(asked) || len(asked) < 10 {
		t.Fatalf("%d requests, %d estimates", len(asked), len(estimated))
	}
	for i, p := range estimated {
		if off := p.Tokens - asked[i]; max(off, -off) > asked[i]/20+40 {
			t.Errorf("request %d has %d tokens and was estimated at %d", i+1, asked[i], p.Tokens)
		}
	}
}

// claiming reports a usage with each answer.
type claiming struct {
	model.Provider
	usage belay.Usage
}

func (c claiming) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for chunk, err := range c.Provider.Stream(ctx, r) {
			if chunk.Stop != "" {
				chunk.Usage = &c.usage
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

func TestAUsageThatCannotBeIsNone(t *testing.T) {
	for _, c := range []struct{ claimed, recorded belay.Usage }{
		{belay.Usage{Input: 7, Output: 3}, belay.Usage{Input: 7, Output: 3, Reported: true}},
		{belay.Usage{Input: 1e18, Output: 1e18}, belay.Usage{Input: 1e18, Output: 1e18, Reported: true}},
		{belay.Usage{Input: -7, Output: 3, Reported: true}, belay.Usage{}},
		{belay.Usage{Input: 7, Output: 3, CacheWrite: -1}, belay.Usage{}},
	} {
		b := newBench(t, "steps:\n"+done, nil)
		b.wrap = func(p model.Provider) model.Provider { return claiming{p, c.claimed} }
		if got := find[event.ModelCompleted](b.run()); len(got) != 1 || got[0].Usage != c.recorded {
			t.Errorf("%+v: %+v", c.claimed, got)
		}
	}
}

// submitCounted gives the first session a text that is counted, and plays it to its rest.
func submitCounted(b *bench, n int, text string) {
	b.t.Helper()
	for i, c := range []belay.Command{
		belay.CreateSession{Workspace: "/ws", Settings: b.settings},
		belay.SubmitWork{Thread: thr, Task: belay.TaskID(fmt.Sprint("task_", n)), Turn: belay.TurnID(fmt.Sprint("turn_", n)), Text: belay.Content{Text: text, Tokens: tokens.Text(text)}, Rules: b.ref},
	} {
		if err := b.h.Enqueue(b.t.Context(), belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_", n, i)), Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: c}); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.e.Session(b.t.Context(), sess, nil); err != nil {
		b.t.Fatal(err)
	}
}

// A server that reports less than half of what it was sent may have left out the rest. The
// answer counts all the same, because it is paid for; when it reports no more of a longer
// conversation, a person is told what to change, once.
// Guarantee: M5.
func TestAnInputThatIsCutIsToldAndItsAnswersCount(t *testing.T) {
	script := "steps:\n"
	for i := range 4 {
		script += fmt.Sprintf("  - {text: \"I read the end %d\", usage: {input: %d, output: 5000}}\n", i, 900+i)
	}
	b := newBench(t, script, conversational)
	b.changeRules(func(r *thread.Rules) { r.Tokens = 100 })
	text := strings.Repeat("Find out where the time goes. ", 400)
	for i := range 4 {
		if submitCounted(b, i, text); i == 0 {
			if w := find[event.RuntimeWarning](b.log()); len(w) > 0 {
				t.Errorf("one report is taken for a sign: %+v", w)
			}
		}
	}
	log := b.log()
	if failed := find[event.ModelFailed](log); len(failed) > 0 {
		t.Errorf("answers were thrown away: %+v", failed)
	}
	if n := len(find[event.ModelCompleted](log)); n != 4 {
		t.Errorf("%d answers", n)
	}
	if w := find[event.RuntimeWarning](log); len(w) != 1 || w[0].Code != "CONTEXT_CUT" || !strings.Contains(w[0].Message, "num_ctx") {
		t.Errorf("warnings: %+v", w)
	}
}

package engine_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/tool"
)

// counting counts what a provider is asked.
type counting struct {
	model.Provider
	asked *atomic.Int32
}

func (c counting) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	c.asked.Add(1)
	return c.Provider.Stream(ctx, r)
}

// TestATurnKeepsWhatItBeganWith: a provider and a tool that are replaced while a
// turn runs count for the next turn, though the same drive runs it.
// Guarantee: L24.
func TestATurnKeepsWhatItBeganWith(t *testing.T) {
	var asked, ran [2]atomic.Int32 // before and after the change
	var changed atomic.Int32       // 0 or 1
	swap := pure("swap", func(context.Context, tool.Call) (tool.Result, error) {
		changed.Store(1)
		return tool.Result{Text: "changed"}, nil
	})
	work := func(n int) fn {
		return pure("work", func(context.Context, tool.Call) (tool.Result, error) {
			ran[n].Add(1)
			return tool.Result{Text: "worked"}, nil
		})
	}
	b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: swap, args: {}}]\n  - calls: [{tool: work, args: {}}]\n"+done+"  - calls: [{tool: work, args: {}}]\n"+done, nil, swap, work(0))
	b.wrap = func(p model.Provider) model.Provider { return counting{p, &asked[changed.Load()]} }
	var sets [2]*tool.Set
	for n := range sets {
		var err error
		if sets[n], err = tool.NewSet(append(tool.TurnTools(), swap, work(n))...); err != nil {
			t.Fatal(err)
		}
	}
	b.c.ToolsIn = func(context.Context, string) *tool.Set { return sets[changed.Load()] }
	var err error
	if b.e, err = newEngine(b.c); err != nil {
		t.Fatal(err)
	}
	b.submit(1, "go")
	next := belay.SubmitWork{Thread: thr, Task: "task_next", Turn: "turn_next", Text: belay.Content{Text: "again"}, Rules: b.ref}
	if err := b.h.Enqueue(t.Context(), belay.Order{ID: "cmd_next", Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: next}); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	if asked[0].Load() != 3 || asked[1].Load() != 2 || ran[0].Load() != 1 || ran[1].Load() != 1 {
		t.Errorf("the first provider was asked %d times, the second %d; the first tool ran %d times, the second %d", asked[0].Load(), asked[1].Load(), ran[0].Load(), ran[1].Load())
	}
}

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// TestProgressIsRecordedNowAndThen: of what a call tells every tenth of a second one is
// recorded every two, the newest. The last one is the output of a call whose time is up.
func TestProgressIsRecordedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := fn{tool.Spec{Name: "deaf", Doc: "d", Input: noArgs, Effect: belay.Pure, Timeout: belay.Duration(6950 * time.Millisecond)}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			for i := int64(1); ctx.Err() == nil; i++ {
				c.Sink.Progress(tool.Progress{Done: i, Total: 100, Text: fmt.Sprint("part ", i)})
				time.Sleep(100 * time.Millisecond)
			}
			return tool.Result{}, ctx.Err()
		}}
		b := newBench(t, callsDeaf, nil, slow)
		log := b.run()
		told, failed := find[event.ToolProgress](log), find[event.ToolFailed](log)
		if len(told) != 3 {
			t.Fatalf("recorded %+v", told)
		}
		for i, p := range told {
			if at := int64(20 * (i + 1)); p.Done < at || p.Done > at+1 || p.Total != 100 || p.Text != fmt.Sprint("part ", p.Done) || p.Attempt != 1 {
				t.Errorf("after %d s: %+v", 2*(i+1), p)
			}
		}
		if len(failed) != 1 || failed[0].Problem.Code != "TIMEOUT" || failed[0].Output.Text != "70 of 100: part 70" {
			t.Errorf("the call ended as %+v", failed)
		}
		time.Sleep(time.Minute)
		if n := len(b.log()); n != len(log) {
			t.Errorf("%d facts came later", n-len(log))
		}
	})
}

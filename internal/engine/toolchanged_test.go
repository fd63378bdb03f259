package engine_test

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// A person allowed, and the gate judged, the tool as the turn's rules have it.
// Guarantee: T43.
func TestACallRunsWithTheDefinitionItsTurnBeganWithOrNotAtAll(t *testing.T) {
	for began, runs := range map[belay.Digest]int{"sha256:now": 1, "sha256:before": 0, "": 0} {
		ran := 0
		deploy := fn{spec: tool.Spec{Name: "deploy", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce, Definition: "sha256:now"},
			run: func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Result{Text: "ok"}, nil }}
		b := newBench(t, "steps:\n  - calls: [{tool: deploy, args: {}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n", nil, deploy)
		b.changeRules(func(r *thread.Rules) {
			for i := range r.Tools {
				if r.Tools[i].Name == "deploy" {
					r.Tools[i].Definition = began
				}
			}
		})
		failed := find[event.ToolFailed](b.run())
		if ran != runs || len(failed) != 1-runs || runs == 0 && (failed[0].Problem.Code != "TOOL_CHANGED" || failed[0].Problem.Class != tool.Conflict) {
			t.Errorf("began with %q: %d runs, failures %+v", began, ran, failed)
		}
	}
}

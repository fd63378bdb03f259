package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/tool"
)

// What a model is asked is what folding the log up to there gives, although the
// runtime keeps the conversation and only adds what is new.
func TestAModelIsAskedWhatTheLogSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := pure("big", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Text: strings.Repeat("long line\n", 5000)}, nil
		})
		b := newBench(t, `name: t
steps:
  - text: two at once
    calls: [{tool: big, args: {n: 1}}, {tool: big, args: {n: 2}}]
  - text: a wrong one
    fault: {kind: transient, attempts: 1}
    calls: [{tool: nosuch, args: {}}]
  - text: I stop
  - text: I stop again
    calls: [{tool: big, args: {path: `+strings.Repeat("p", 3000)+`}}]
  - text: I stop for good
  - calls: [{tool: complete_task, args: {summary: done}}]
`, nil, big)
		log := b.run()
		requests := 0
		for _, e := range log {
			p, ok := e.Data.(event.ModelRequested)
			if !ok {
				continue
			}
			msgs, err := history.Messages(t.Context(), b.h, thr.Stream(), p.From, p.To)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := json.Marshal(msgs)
			if got := b.asked[requests]; got != string(want) {
				t.Errorf("request %d (%s): asked\n%s\nfolded\n%s", requests+1, p.Kind, short(got), short(string(want)))
			}
			requests++
		}
		if requests != 7 || len(b.asked) != requests || log[len(log)-1].Type() != "turn.completed" {
			t.Errorf("%d requests, %d asked, ended with %s", requests, len(b.asked), log[len(log)-1].Type())
		}
	})
}

func short(s string) string { return s[:min(len(s), 1500)] }

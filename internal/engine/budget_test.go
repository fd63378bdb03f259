package engine_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/price"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// TestManyThreadsSpendOneBudget: 200 threads of a session at once, each of whose
// answers costs a cent, and a dollar for all. What counts is what the far end served.
// Guarantee: E17, M2.
func TestManyThreadsSpendOneBudget(t *testing.T) {
	const threads, answer, cent = 200, 4096, 10_000
	for name, output := range map[string]int64{"whole answers": answer, "short answers": answer / 8} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int64
			server := httptest.NewServer(modelserver.New(func(modelserver.Asked) modelserver.Scene {
				served.Add(1)
				return modelserver.Scene{Scene: modeltest.Scene{Text: "done", Usage: &belay.Usage{Input: 10, Output: output}, Stop: "stop"}}
			}))
			defer server.Close()
			far := overHTTP(t, server)
			b := newBench(t, "steps:\n"+done, func(s *belay.Settings) {
				s.Completion, s.Budget = belay.CompletionConversational, belay.Amounts{MicroUSD: 100 * cent}
			})
			b.rewire(func(e *config) {
				e.Provider = func(context.Context, string, belay.Settings) (model.Provider, error) { return far, nil }
			})
			b.changeRules(func(r *thread.Rules) {
				r.Tokens = 100
				r.Routes = []core.Candidate{{Candidate: event.Candidate{Route: event.Route{Provider: "far", Model: "m"}}, Prices: &price.List{Rates: price.Rates{Output: cent * 1_000_000 / answer}}}}
			})
			orders := []belay.Command{belay.CreateSession{Workspace: "/ws", Settings: b.settings}}
			for n := range threads {
				orders = append(orders, belay.SubmitWork{Thread: belay.ThreadID(fmt.Sprintf("thr_%d", n)), Task: belay.TaskID(fmt.Sprintf("task_%d", n)), Turn: belay.TurnID(fmt.Sprintf("turn_%d", n)),
					Text: belay.Content{Text: "go", Tokens: 2}, Rules: b.ref})
			}
			for i, c := range orders {
				if err := b.h.Enqueue(t.Context(), belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_%d", i)), Principal: "user:ann", Session: "sess_1", Stream: belay.SessionID("sess_1").Stream(), Command: c}); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.e.Session(t.Context(), "sess_1", nil); err != nil {
				t.Fatal(err)
			}
			spent := served.Load() * cent * output / answer
			ends := map[string]int{}
			for r, err := range b.h.Scan(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				switch p := r.Event.Data.(type) {
				case event.TurnCompleted:
					ends["completed"]++
				case event.TurnFailed:
					ends[string(p.Outcome)]++

				}
			}
			t.Logf("%d requests were served for %d millionths; turns: %v", served.Load(), spent, ends)
			if spent > 100*cent || output == answer && spent < 90*cent || output < answer && ends["completed"] != threads {
				t.Errorf("%d millionths were spent; turns: %v", spent, ends)
			}
			if ends["completed"] != int(served.Load()) || ends["completed"]+ends["budget"] != threads {
				t.Errorf("turns ended %v", ends)
			}
			d, _, _, err := engine.Load(t.Context(), b.h, belay.SessionID("sess_1").Stream())
			if err != nil {
				t.Fatal(err)
			}
			if l := d.(*session.Decider).State().Budget; l.Spent.MicroUSD < spent || l.Spent.MicroUSD > spent+served.Load() || len(l.Grants) > 0 {
				t.Errorf("the session says %+v", l)
			}
		})
	}
}

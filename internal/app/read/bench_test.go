package read_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

// BenchmarkLongSession asks for the shell and the last window of a session with
// a million facts: how long that takes, and how much memory it leaves in use.
func BenchmarkLongSession(b *testing.B) {
	const facts, batch = 1_000_000, 1000
	st, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	w := feedtest.New(b, st, nil)
	ids := feedtest.IDs("a")
	w.AddTo(ids.Session.Stream(), ids, event.SessionCreated{Workspace: "/ws"})
	for i := 0; i < facts; i += batch {
		all := make([]event.Payload, batch)
		for j := range all {
			all[j] = event.ModelDelta{Attempt: 1, Text: "a piece of text that is as long as most are, about"}
		}
		w.Add(ids, all...)
	}
	get := reads(st)
	var shell json.RawMessage
	get(b, "/v1/sessions/sess_a", &shell) // folds the view, which a server does behind the log
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		var p page
		if get(b, "/v1/sessions/sess_a", &shell) != "" || get(b, "/v1/sessions/sess_a/events?last=200", &p) != "" || len(p.Events) != 200 {
			b.Fatal("not what was asked for")
		}
		took = append(took, time.Since(began))
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	b.ReportMetric((float64(after.HeapInuse)-float64(before.HeapInuse))/(1<<20), "MB-more")
}

package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
)

// queued is a turn for a session whose first one asks a person.
func (b *bench) queued(n int) belay.Order {
	return belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_queued_%d", n)), Principal: "user:bob", Session: sess, Stream: sess.Stream(),
		Command: belay.SubmitWork{Thread: thr, Task: belay.TaskID(fmt.Sprintf("task_q%d", n)), Turn: belay.TurnID(fmt.Sprintf("turn_q%d", n)), Text: belay.Content{Text: "go on"}, Rules: b.ref}}
}

// A session at rest is what the log says, whoever writes to it in between: another
// process, or a drive of this one.
// Guarantee: L16.
func TestASessionAtRestIsWhatTheLogSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b := askingBench(t, &ran)
		b.run()
		other, _ := b.second("proc-2")
		for n, e := range []*system{b.e, b.e, other, b.e, other, other, b.e, b.e} {
			if n == 7 { // and this engine drives it
				if err := b.e.Session(t.Context(), sess, nil); err != nil {
					t.Fatal(err)
				}
			}
			a, err := e.Submit(t.Context(), b.queued(n))
			if err != nil || len(a.Events) != 1 || a.Pending || !a.Rests {
				t.Fatalf("turn %d: %+v %v", n, a, err)
			}
			if told, ok := a.Events[0].Data.(event.SessionUpdated); !ok || told.Turn != belay.TurnID(fmt.Sprintf("turn_q%d", n)) {
				t.Errorf("turn %d is answered by %+v", n, a.Events[0])
			}
			d, _, _, err := engine.Load(t.Context(), b.c.Store, thr.Stream())
			if err != nil {
				t.Fatal(err)
			}
			q := d.(*thread.Decider).State().Queue
			if head := q[len(q)-1].Turn; len(q) != n+1 || head != belay.TurnID(fmt.Sprintf("turn_q%d", n)) {
				t.Errorf("after turn %d there wait %d, the last is %s", n, len(q), head)
			}
		}
		again, err := b.e.Submit(t.Context(), b.queued(3))
		if err != nil || len(again.Events) != 0 {
			t.Errorf("told again: %+v %v", again, err)
		}
		bad := b.queued(0)
		bad.ID, bad.Stream, bad.Command = "cmd_bad", thr.Stream(), belay.PromoteTurn{Turn: "turn_none"}
		if _, err := b.e.Submit(t.Context(), bad); belay.CodeOf(err) != belay.CodeBadState {
			t.Errorf("a refusal is %v", err)
		}
	})
}

// TestATurnThatWaitsCosts bounds what a turn that joins others asks of the store,
// however many wait.
func TestATurnThatWaitsCosts(t *testing.T) {
	const n = 40
	r := newRig(t, 1)
	if err := r.session(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	var before store.Stats
	for i := range n {
		if i == 1 {
			before = r.db.Stats()
		}
		id := belay.SessionID("sess_s")
		o := belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_waits_", i)), Principal: "user:bob", Session: id, Stream: id.Stream(), Command: belay.LabelSession{Title: fmt.Sprint("title ", i)}}
		if a, err := r.e.Submit(t.Context(), o); err != nil || len(a.Events) != 1 || !a.Rests {
			t.Fatalf("%+v %v", a, err)
		}
	}
	after := r.db.Stats()
	if reads := after.Reads - before.Reads; reads > 7*(n-1) { // the end of the log, the lanes, the inbox, the cached state and what came after it
		t.Errorf("a command for a session at rest takes %.1f queries, 7 were promised", float64(reads)/(n-1))
	}
}

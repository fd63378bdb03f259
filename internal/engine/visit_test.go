package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// A stream of a new session may be sent something after it was visited: what the
// streams become doesn't depend on the order of their names.
func TestStreamsOfANewSessionAreVisitedInAnyOrder(t *testing.T) {
	const id = belay.SessionID("sess_1")
	orders := []belay.Order{
		{ID: "cmd_1", Principal: "user:u", Session: id, Stream: id.Stream(), Command: belay.CreateSession{Workspace: "/ws"}},
		{ID: "cmd_2", Principal: "user:u", Session: id, Stream: id.Stream(), Command: belay.SubmitWork{Thread: "thr_1", Task: "task_1", Turn: "turn_1", Text: belay.Content{Text: "do"}}},
	}
	states := func(handle func(h *handling)) map[belay.StreamID]string {
		st := memory.New().Open(memory.Options{})
		defer st.Close()
		e, err := New(Config{Store: st, Owner: store.Owner{ID: "proc_1"}, Performers: none{}, Now: func() time.Time { return time.Unix(1, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		h := e.newHandling(e.claims.reserve(id), nil)
		h.claim = &store.Claim{Owner: store.Owner{ID: "proc_1"}}
		h.deliver(orders)
		handle(h)
		if _, err := h.run(t.Context(), orders); err != nil {
			t.Fatal(err)
		}
		out := map[belay.StreamID]string{}
		for _, v := range h.streams {
			raw, err := v.d.Save()
			if err != nil {
				t.Fatal(err)
			}
			out[v.stream] = string(raw)
		}
		return out
	}
	visits := 0
	want := states(func(*handling) {})
	got := states(func(h *handling) {
		for len(h.mail) > 0 {
			s := slices.Max(slices.Collect(maps.Keys(h.mail)))
			orders := h.mail[s]
			delete(h.mail, s)
			if err := h.visit(t.Context(), s, orders); err != nil {
				t.Fatal(err)
			}
			visits++
		}
	})
	if visits <= len(want) {
		t.Errorf("%d visits of %d streams: none was visited again", visits, len(want))
	}
	if !maps.Equal(got, want) {
		t.Errorf("the streams became\n%v\nand not\n%v", got, want)
	}
}

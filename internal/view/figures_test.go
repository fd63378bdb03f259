package view_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
)

func figures(t testing.TB, st store.Store) map[string]string {
	out := map[string]string{}
	for key, data := range st.ViewRows(t.Context(), "figures/4", "") {
		out[key] = string(data)
	}
	return out
}

// TestFiguresFollowTheStory: what a session used, what was decided, and its programs.
// Guarantee: O9.
func TestFiguresFollowTheStory(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	w.add(story()...)
	ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_2", Call: "call_2", Process: "proc_1"}
	w.add(fact{"thread/thr_1", ids, event.ProcessStarted{PID: 7, Argv: []string{"make", "test"}, Cwd: "/ws"}, time.Second},
		fact{"thread/thr_1", ids, event.ProcessStarted{PID: 7, Argv: []string{"sleep"}}, 0},
		fact{"thread/thr_1", ids, event.ProcessCompleted{Exit: 3, Bytes: 9, ProcessUse: event.ProcessUse{CPU: 5, Peak: 6}}, time.Minute},
		fact{"thread/thr_1", belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_2"}, event.CostRecorded{Cost: event.Cost{Amount: 7, Currency: "USD", Provider: "scripted", Usage: belay.Usage{Input: 100, Output: 20, Cached: 50, Reported: true}}, Source: "computed"}, 0})
	p := view.Projector{Store: st, Of: view.Figures}
	if err := p.Catchup(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sum view.Hour
	n := 0
	if err := view.Hours(t.Context(), st, t0, t0.Add(24*time.Hour), func(h *view.Hour) {
		n++
		if h.Session != "sess_1" || h.Start.Minute() != 0 {
			t.Errorf("an hour: %+v", h)
		}
		for name, s := range h.Models {
			if name != "scripted" {
				t.Errorf("a model %q", name)
			}
			have := sum.Models[name]
			if sum.Models == nil {
				sum.Models = map[string]view.Spent{}
			}
			sum.Models[name] = view.Spent{Requests: have.Requests + s.Requests, Cost: have.Cost.Add(s.Cost), Usage: have.Usage.Add(s.Usage)}
		}
		for name, c := range h.Tools {
			if name != "exec" || c != (view.Calls{Ended: 1}) {
				t.Errorf("a tool %q: %+v", name, c)
			}
		}
		if turns, ended := h.Ends[belay.Completed]; ended && turns.Ended != 1 {
			t.Errorf("turns: %+v", h.Ends)
		}
	}); err != nil {
		t.Fatal(err)
	}
	// the story goes on over two hours; the price of the answer came in the last
	if got := sum.Models["scripted"]; n < 2 || got.Requests != 1 || got.Usage.Input != 100 || got.Cost != (event.CostSum{MicroUSD: 7, Priced: 1}) {
		t.Errorf("%d hours, %+v", n, got)
	}
	all := func(*view.Program) bool { return true }
	programs, next, err := view.AllPrograms(t.Context(), st, 0, all, 1)
	if err != nil || len(programs) != 1 || next == 0 || programs[0].Command != "sleep" || programs[0].Exit != 3 || programs[0].Peak != 6 {
		t.Fatalf("programs: %+v %d %v", programs, next, err)
	}
	if programs, next, err = view.AllPrograms(t.Context(), st, next, all, 5); err != nil || len(programs) != 1 || next != 0 || programs[0].Command != "make test" || programs[0].Status != view.Running {
		t.Errorf("the one before: %+v %d %v", programs, next, err)
	}
	decided, _, err := view.DecidedActions(t.Context(), st, 0, func(*view.Decided) bool { return true }, 5)
	if err != nil || len(decided) != 1 || decided[0].ID != "act_1" || decided[0].By != "user:ann" || decided[0].Tool != "exec" || decided[0].Decided.Sub(decided[0].Asked) != time.Hour {
		t.Errorf("decided: %+v %v", decided, err)
	}
	verdicts, _, err := view.Verdicts(t.Context(), st, 0, func(*view.Verdict) bool { return true }, 5)
	if err != nil || len(verdicts) != 1 || verdicts[0].Call != "call_1" || verdicts[0].Decision != "ask" {
		t.Errorf("verdicts: %+v %v", verdicts, err)
	}
}

// TestFiguresAreTheSameHoweverTheyAreFolded: at every cut, and without a session that was
// deleted nothing of it is left.
// Guarantee: O9.
func TestFiguresAreTheSameHoweverTheyAreFolded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		st := memory.Open(memory.Options{})
		w := newWriter(t, st)
		p := view.Projector{Store: st, Of: view.Figures, Chunk: rapid.IntRange(1, 7).Draw(rt, "chunk")}
		deleted := rapid.IntRange(0, 60).Draw(rt, "deleted")
		for i := range rapid.IntRange(1, 60).Draw(rt, "facts") {
			f := anyFact(rt)
			if i >= deleted && f.ids.Session == "sess_1" {
				continue
			}
			w.add(f)
			if rapid.Bool().Draw(rt, "look") {
				if err := p.Catchup(t.Context()); err != nil {
					rt.Fatal(err)
				}
			}
			if i+1 == deleted && w.epochs["sess_1"] > 0 {
				if err := st.Release(t.Context(), "sess_1", w.epochs["sess_1"]); err != nil {
					rt.Fatal(err)
				}
				if _, err := st.DeleteSession(t.Context(), "sess_1", "user:ann"); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if err := p.Catchup(t.Context()); err != nil {
			rt.Fatal(err)
		}
		have := maps.Clone(figures(t, st))
		if err := view.Rebuild(t.Context(), st); err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(figures(t, st), have); d != "" {
			rt.Fatalf("rebuilt (-rebuilt +kept):\n%s", d)
		}
	})
}

// TestHoursOfAllAreTheSumOfSessions: also after one was deleted.
func TestHoursOfAllAreTheSumOfSessions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		st := memory.Open(memory.Options{})
		w := newWriter(t, st)
		p := view.Projector{Store: st, Of: view.Figures, Chunk: rapid.IntRange(1, 7).Draw(rt, "chunk")}
		for range rapid.IntRange(1, 40).Draw(rt, "facts") {
			f := anyFact(rt)
			if f.after *= 1000; rapid.IntRange(0, 2).Draw(rt, "priced") == 0 {
				f.data = event.CostRecorded{Cost: event.Cost{Amount: 7, Currency: "USD", Provider: "p", Model: "m/\"" + string(f.ids.Call), Usage: belay.Usage{Input: 5, Reported: true}}, Failed: true}
				f.stream = f.ids.Thread.Stream()
			}
			if w.add(f); rapid.Bool().Draw(rt, "look") {
				must(rt, p.Catchup(t.Context()))
			}
		}
		must(rt, p.Catchup(t.Context()))
		if w.epochs["sess_1"] > 0 && rapid.Bool().Draw(rt, "delete") {
			must(rt, st.Release(t.Context(), "sess_1", w.epochs["sess_1"]))
			_, err := st.DeleteSession(t.Context(), "sess_1", "user:ann")
			must(rt, err)
			must(rt, p.Catchup(t.Context()))
		}
		of := func(hours func(context.Context, store.Store, time.Time, time.Time, func(*view.Hour)) error) map[string]string {
			sums := map[time.Time]*view.Hour{}
			must(rt, hours(t.Context(), st, t0, t0.Add(1000*time.Hour), func(h *view.Hour) {
				s := sums[h.Start]
				if s == nil {
					s = &view.Hour{Start: h.Start, Models: map[string]view.Spent{}, Tools: map[string]view.Calls{}, Ends: map[belay.Outcome]view.Turns{}}
					sums[h.Start] = s
				}
				for name, m := range h.Models {
					o := s.Models[name]
					s.Models[name] = view.Spent{Requests: o.Requests + m.Requests, Cost: o.Cost.Add(m.Cost), Usage: o.Usage.Add(m.Usage)}
				}
				for name, c := range h.Tools {
					o := s.Tools[name]
					s.Tools[name] = view.Calls{Ended: o.Ended + c.Ended, Failed: o.Failed + c.Failed, MS: o.MS + c.MS}
				}
				for how, e := range h.Ends {
					o := s.Ends[how]
					s.Ends[how] = view.Turns{Ended: o.Ended + e.Ended, MS: o.MS + e.MS, Cost: o.Cost.Add(e.Cost), Usage: o.Usage.Add(e.Usage)}
				}
			}))
			out := map[string]string{}
			for at, s := range sums {
				maps.DeleteFunc(s.Models, func(_ string, m view.Spent) bool { return m == view.Spent{} })
				if len(s.Models)+len(s.Tools)+len(s.Ends) > 0 {
					out[at.String()] = fmt.Sprintf("%+v", *s)
				}
			}
			return out
		}
		if d := cmp.Diff(of(view.Hours), of(view.HoursOfAll)); d != "" {
			rt.Fatalf("(-of sessions +of all):\n%s", d)
		}
	})
}

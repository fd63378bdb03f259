package view_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/store/storetest"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
)

// anyFact draws a fact in no sensible order: folding must not depend on one.
func anyFact(rt *rapid.T) fact {
	n := func(max int, name string) string { return fmt.Sprint(rapid.IntRange(1, max).Draw(rt, name)) }
	session := n(2, "session")
	thread := session + n(2, "thread")
	ids := belay.IDs{Session: belay.SessionID("sess_" + session), Thread: belay.ThreadID("thr_" + thread), Turn: belay.TurnID("turn_" + n(3, "turn")),
		Task: belay.TaskID("task_" + session), Run: "run_1", Step: "step_1", Call: belay.CallID("call_" + n(3, "call")), Action: belay.ActionID("act_" + thread + n(3, "action"))}
	th, task := ids.Thread.Stream(), ids.Task.Stream()
	all := []fact{
		{ids.Session.Stream(), ids, event.SessionCreated{Workspace: "/ws" + session}, 0},
		{th, ids, event.TurnSubmitted{}, 0},
		{th, ids, event.TurnStarted{}, 0},
		{th, ids, event.ModelRequested{Attempt: rapid.IntRange(1, 2).Draw(rt, "attempt")}, 0},
		{th, ids, event.ModelCompleted{Usage: belay.Usage{Input: 3, Output: 2}}, 0},
		{th, ids, event.ModelFailed{}, 0},
		{th, ids, event.ToolStarted{}, 0},
		{th, ids, event.ToolResult{}, 0},
		{th, ids, event.ToolFailed{Final: rapid.Bool().Draw(rt, "final")}, 0},
		{th, ids, event.ActionRequired{Kind: "permission", Prompt: say("p"), Until: t0}, 0},
		{th, ids, event.ActionResolved{}, 0},
		{th, ids, event.RunStatus{Phase: "takeover"}, 0},
		{th, ids, event.ArtifactChanged{Kind: "file", Path: n(3, "path"), Op: rapid.SampledFrom([]string{"created", "changed", "removed"}).Draw(rt, "op")}, 0},
		{th, ids, event.TurnCompleted{Summary: say("s")}, 0},
		{th, ids, event.TurnFailed{Outcome: belay.Failed, Reason: "r"}, 0},
		{task, ids, event.TaskCreated{Objective: say("o")}, 0},
		{task, ids, event.TaskAttemptStarted{Number: 2}, 0},
		{task, ids, event.TaskFailed{}, 0},
	}
	f := rapid.SampledFrom(all).Draw(rt, "fact")
	f.after = time.Duration(rapid.IntRange(0, 5000).Draw(rt, "ms")) * time.Millisecond
	return f
}

// Guarantee: O9.
func TestRebuildEqualsIncremental(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		st := memory.Open(memory.Options{})
		w := newWriter(t, st)
		p := view.Projector{Store: st, Chunk: rapid.IntRange(1, 7).Draw(rt, "chunk")}
		for range rapid.IntRange(1, 60).Draw(rt, "facts") {
			w.add(anyFact(rt))
			if rapid.Bool().Draw(rt, "look") {
				if err := p.Catchup(t.Context()); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if err := p.Catchup(t.Context()); err != nil {
			rt.Fatal(err)
		}
		incremental, want := stored(t, st), fold(w.records())
		if d := cmp.Diff(want, incremental); d != "" {
			rt.Fatalf("caught up (-want +got):\n%s", d)
		}
		if err := view.Rebuild(t.Context(), st); err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(want, stored(t, st)); d != "" {
			rt.Fatalf("rebuilt (-want +got):\n%s", d)
		}
	})
}

// At every cut the row is stored and read back, as a projector does that is
// killed there.
// Guarantee: O9.
func TestFoldAtEveryCutEquals(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	w.add(story()...)
	want := fold(w.records())
	for size := 1; size <= len(story()); size++ {
		fresh := memory.Open(memory.Options{})
		newWriter(t, fresh).add(story()...)
		if err := (view.Projector{Store: fresh, Chunk: size}).Catchup(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, stored(t, fresh)); d != "" {
			t.Errorf("a save after every %d facts (-want +got):\n%s", size, d)
		}
	}
}

func TestProjectorsOfTwoProcessesAgree(t *testing.T) {
	data := memory.New()
	for name, open := range map[string]func(t *testing.T) (a, b store.Store){
		"memory": func(t *testing.T) (store.Store, store.Store) {
			return data.Open(memory.Options{}), data.Open(memory.Options{})
		},
		"sqlite": func(t *testing.T) (store.Store, store.Store) {
			dir := t.TempDir()
			var dbs [2]store.Store
			for i := range dbs {
				db, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { db.Close() })
				dbs[i] = db
			}
			return dbs[0], dbs[1]
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			w := newWriter(t, a)
			var wg sync.WaitGroup
			done := make(chan struct{})
			errs := make(chan error, 2)
			for _, st := range []store.Store{a, b} {
				wg.Go(func() {
					p := view.Projector{Store: st, Chunk: 3}
					for {
						select {
						case <-done:
							errs <- p.Catchup(t.Context())
							return
						default:
							if err := p.Catchup(t.Context()); err != nil {
								errs <- err
								return
							}
						}
					}
				})
			}
			w.add(story()...)
			close(done)
			wg.Wait()
			for range 2 {
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(fold(w.records()), stored(t, b)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// rival lets another projector work right before each save of the first.
type rival struct {
	store.Store
	before func()
	lost   int
}

func (r *rival) SaveView(ctx context.Context, view string, from, to store.Position, rows map[string]store.ViewRow) error {
	r.before()
	err := r.Store.SaveView(ctx, view, from, to, rows)
	if errors.Is(err, store.ErrConflict) {
		r.lost++
	}
	return err
}

func TestTheLoserOfASaveBeginsAgain(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	w.add(story()[:10]...)
	r := &rival{Store: st}
	saves := 0
	r.before = func() {
		switch saves++; saves {
		case 1: // the other one is further already
			if err := view.Catchup(t.Context(), st); err != nil {
				t.Fatal(err)
			}
		case 2: // and here somebody rebuilds
			at, err := st.ViewPosition(t.Context(), "sessions/11")
			if err != nil {
				t.Fatal(err)
			}
			if err := st.SaveView(t.Context(), "sessions/11", at, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := (view.Projector{Store: r, Chunk: 5}).Catchup(t.Context()); err != nil {
			t.Fatal(err)
		}
		if saves == 1 {
			w.add(story()[10:]...)
		}
	}
	if d := cmp.Diff(fold(w.records()), stored(t, st)); d != "" || r.lost != 2 {
		t.Errorf("%d saves lost, want 2 (-want +got):\n%s", r.lost, d)
	}
}

// flood is a store in which somebody writes before each look at the log.
type flood struct {
	store.Store
	write func()
}

func (f *flood) Scan(ctx context.Context, after store.Position) iter.Seq2[store.Record, error] {
	f.write()
	return f.Store.Scan(ctx, after)
}

// TestCatchupEndsWhileOthersWrite: a reader gets what was there when it came,
// also when as much is written meanwhile as is folded.
func TestCatchupEndsWhileOthersWrite(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	w.add(story()...)
	end, looks := w.end(), 0
	f := &flood{Store: st, write: func() {
		if looks++; looks > 100 {
			t.Fatal("the view is folded without end")
		}
		w.add(story()[:5]...)
	}}
	if err := (view.Projector{Store: f, Chunk: 5}).Catchup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if at, err := st.ViewPosition(t.Context(), "sessions/11"); err != nil || at < end {
		t.Errorf("the view stands at %d, the log ended at %d: %v", at, end, err)
	}
}

func (w *writer) end() store.Position {
	at, err := w.st.End(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return at
}

func TestARowThatCannotBeReadIsMadeAnew(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	w.add(story()[:5]...)
	if err := view.Catchup(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if err := st.SaveView(t.Context(), "sessions/11", w.end(), w.end(), storetest.DataRows(map[string][]byte{"1/sess_1": []byte("{")})); err != nil {
		t.Fatal(err)
	}
	w.add(story()[5:]...)
	if err := view.Catchup(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fold(w.records()), stored(t, st)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSystemFactsMakeNoRow(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	w.add(fact{"session/sess_runtime", belay.IDs{Session: belay.SystemSession}, event.RuntimeWarning{Code: "X"}, 0})
	if err := view.Catchup(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, st); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if at, _ := st.ViewPosition(t.Context(), "sessions/11"); at != w.end() {
		t.Errorf("the view stands at %d, the log ends at %d", at, w.end())
	}
}

// crossed is a store in which something happens between two looks at it.
type crossed struct {
	store.Store
	happens func()
}

func (c *crossed) Tombstones(ctx context.Context, after store.Position) ([]store.Tombstone, error) {
	if c.happens != nil {
		c.happens()
		c.happens = nil
	}
	return c.Store.Tombstones(ctx, after)
}

// TestADeletionHidesNoFactsBeforeIt: a fact of one session and the deletion of
// another come after the facts were read and before the deletions are.
// Guarantee: L17.
func TestADeletionHidesNoFactsBeforeIt(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := newWriter(t, st)
	of := func(name string) fact {
		ids := belay.IDs{Session: belay.SessionID("sess_" + name)}
		return fact{ids.Session.Stream(), ids, event.SessionCreated{Workspace: "/" + name}, 0}
	}
	w.add(of("a"), of("b"))
	meanwhile := func() {
		w.add(of("c"))
		if err := st.Release(t.Context(), "sess_b", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := st.DeleteSession(t.Context(), "sess_b", "test"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := view.Catchup(t.Context(), &crossed{st, meanwhile}); err != nil {
			t.Fatal(err)
		}
		meanwhile = nil
		if rows := stored(t, st); rows["sess_b"] != "" {
			t.Errorf("the deleted session has a row: %s", rows["sess_b"])
		}
	}
	if diff := cmp.Diff(fold(w.records()), stored(t, st)); diff != "" {
		t.Errorf("what was folded isn't what the log says:\n%s", diff)
	}
}

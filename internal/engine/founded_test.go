package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
)

// TestAFoundedSessionGoesOn: a session that is begun and kept writes what one
// writes whose commands came through the inbox, and is driven with a bounded
// number of queries.
// Guarantee: S46.
func TestAFoundedSessionGoesOn(t *testing.T) {
	r := newRig(t, 2)
	if _, err := r.e.Submit(t.Context(), r.first("BB")...); err != nil { // names of types, rules
		t.Fatal(err)
	}
	if err := r.e.Session(t.Context(), "sess_BB", nil); err != nil {
		t.Fatal(err)
	}
	end, err := r.db.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := r.db.Stats()
	f, err := r.e.Begin(t.Context(), store.Claim{Keep: engine.Lease, Writes: "/ws"}, r.first("AA")...)
	if err != nil || f == nil || f.From != end {
		t.Fatalf("%+v, %v; the log ended at %d", f, err, end)
	}
	begun := r.db.Stats()
	if n := begun.Transactions - before.Transactions; n != 1 || begun.Reads != before.Reads {
		t.Errorf("it began in %d transactions and %d queries, one and none were promised", n, begun.Reads-before.Reads)
	}
	if w, err := r.db.Writers(t.Context(), "/ws"); err != nil || len(w) != 1 || w[0].Session != "sess_AA" {
		t.Errorf("writers: %v %v", w, err)
	}
	begun = r.db.Stats()
	if err := r.e.Session(t.Context(), "sess_AA", nil); err != nil {
		t.Fatal(err)
	}
	if n := r.db.Stats().Reads - begun.Reads; n > 24 { // the lanes, the inboxes that something was sent to, the states of three streams, and looks for what other processes bring
		t.Errorf("driving it took %d queries, at most 24 were promised", n)
	}
	mine, theirs := kinds(r.story(t, "AA")), kinds(r.story(t, "BB"))
	slices.Sort(mine)
	slices.Sort(theirs)
	if !slices.Equal(mine, theirs) || !slices.ContainsFunc(mine, func(s string) bool { return strings.Contains(s, "task.completed") }) {
		t.Errorf("after the run:\n%s\nand\n%s", strings.Join(mine, "\n"), strings.Join(theirs, "\n"))
	}
	if o, err := r.db.OwnerOf(t.Context(), "sess_AA"); err != nil || o == nil || o.Epoch != 1 {
		t.Errorf("its owner is %+v, %v", o, err)
	}
	if err := f.Release(); err != nil {
		t.Fatal(err)
	}
	if o, err := r.db.OwnerOf(t.Context(), "sess_AA"); err != nil || o != nil {
		t.Errorf("it was given back, and is owned by %+v, %v", o, err)
	}
}

// TestAFoundedSessionSeesWhatComes: what is brought between its begin and its
// drive, here or by another process, isn't missed and isn't written over.
// Guarantee: S46.
func TestAFoundedSessionSeesWhatComes(t *testing.T) {
	for name, bring := range map[string]func(r *rig, o belay.Order) error{
		"handled here": func(r *rig, o belay.Order) error {
			if err := r.db.Enqueue(t.Context(), o); err != nil {
				return err
			}
			return r.e.Settle(t.Context(), o.Session)
		},
		"in the inbox": func(r *rig, o belay.Order) error { return r.db.Enqueue(t.Context(), o) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3)
			f, err := r.e.Begin(t.Context(), store.Claim{Keep: engine.Lease}, r.first("AA")...)
			if err != nil || f == nil {
				t.Fatal(f, err)
			}
			o := r.first("AA")[0]
			o.ID, o.Stream, o.Command = "cmd_more", "thread/thr_AA", belay.InterruptTurn{Reason: "not needed any more"}
			if err := bring(r, o); err != nil {
				t.Fatal(err)
			}
			if err := r.e.Session(t.Context(), "sess_AA", nil); err != nil {
				t.Fatal(err)
			}
			if err := f.Release(); err != nil {
				t.Fatal(err)
			}
			story := strings.Join(r.story(t, "AA"), "\n")
			if n := strings.Count(story, "cmd_more"); n == 0 {
				t.Errorf("the command wasn't handled:\n%s", story)
			}
			if rows, err := r.db.Waiting(t.Context()); len(rows) != 0 || err != nil {
				t.Errorf("commands wait: %v %v", rows, err)
			}
		})
	}
}

// TestFoundRefusesKnownSessions: nothing is written of it, nor for a workspace that
// another session changes, and who comes next isn't in its way.
// Guarantee: S46.
func TestFoundRefusesKnownSessions(t *testing.T) {
	r := newRig(t, 1)
	first, err := r.e.Begin(t.Context(), store.Claim{Keep: engine.Lease, Writes: "/ws"}, r.first("AA")...)
	if first == nil || err != nil {
		t.Fatal(first, err)
	}
	end, err := r.db.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refused := r.first("BB")[1:] // there is no session to submit to
	for name, orders := range map[string][]belay.Order{"there is": r.first("AA"), "refused": refused} {
		if f, err := r.e.Begin(t.Context(), store.Claim{Keep: engine.Lease}, orders...); f != nil || err != nil {
			t.Errorf("%s: %+v %v", name, f, err)
		}
	}
	var other *store.WriterError
	if f, err := r.e.Begin(t.Context(), store.Claim{Keep: engine.Lease, Writes: "/ws/in"}, r.first("BB")...); f != nil || !errors.As(err, &other) || other.Writer.Session != "sess_AA" {
		t.Errorf("beside a writer: %+v %v", f, err)
	}
	if now, err := r.db.End(t.Context()); now != end || err != nil {
		t.Errorf("the log went from %d to %d: %v", end, now, err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := r.e.Begin(t.Context(), store.Claim{Keep: engine.Lease, Writes: "/ws/in"}, r.first("BB")...)
	if second == nil || err != nil {
		t.Fatal(second, err)
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []belay.SessionID{"sess_AA", "sess_BB"} { // given back without having been driven: whoever claims it does that
		if err := r.e.Session(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
}

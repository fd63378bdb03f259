package server

import (
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
)

// TestASessionThatRestsClaimsNoWorkspace: driven with nothing to do, as after a command
// that its owner handled, it is no writer, not even for the moment in which another
// session begins.
// Guarantee: E21.
func TestASessionThatRestsClaimsNoWorkspace(t *testing.T) {
	w := newWorld(t)
	w.writes = true
	r := w.serve(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	told := r.command("submit_turn", owner, `{"text":"go","sessionId":"s1"}`).told(t)
	r.until(owner, told.Run, "ended")
	tn, err := r.s.tenant(t.Context(), auth.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	id := belay.SessionID("s1")
	for driven := true; driven; {
		o, err := tn.Store.OwnerOf(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		driven = o != nil
	}
	if s, err := tn.Session(t.Context(), id); err != nil || s.Use.Use != belay.UseWriter {
		t.Fatalf("it wrote as %+v, %v", s, err)
	}
	epoch, err := tn.Store.Claim(t.Context(), "s2", store.Owner{ID: "other", Host: "elsewhere", PID: 1}, time.Minute)
	if err == nil {
		err = tn.Store.ClaimWriter(t.Context(), "s2", epoch, w.dir, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	before, err := tn.Store.Head(t.Context(), id.Stream())
	if err != nil {
		t.Fatal(err)
	}
	if err := tn.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if after, err := tn.Store.Head(t.Context(), id.Stream()); err != nil || after.Seq != before.Seq {
		t.Errorf("driving it recorded %d facts, %v", after.Seq-before.Seq, err)
	}
}

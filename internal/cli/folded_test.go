package cli

import (
	"testing"
	"time"

	"github.com/belay-run/belay/internal/store/sqlite"
)

// TestAThreadIsFoldedAgainForANewFact, and only then.
func TestAThreadIsFoldedAgainForANewFact(t *testing.T) {
	x := newStarting(t)
	x.main(0, "run", "do it")
	a := &app{Sys: x.sys, Place: Place{Store: x.store}}
	a.Now = time.Now
	w, _, err := a.openSession(t.Context(), "", true, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	first, err := w.state(t.Context())
	if err != nil || first == nil || first.Prev == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	before := w.store.(*sqlite.DB).Stats().Reads
	again, err := w.state(t.Context())
	if err != nil || again != first {
		t.Errorf("nothing was added, and it was folded again, %v", err)
	}
	if n := w.store.(*sqlite.DB).Stats().Reads - before; n != 1 {
		t.Errorf("%d queries, want the one for the end of the log", n)
	}
	x.main(1, "run", "--continue", "and more") // another process, whose script has no more
	later, err := w.state(t.Context())
	if err != nil || later.Prev == nil || later.Prev.Turn == first.Prev.Turn {
		t.Errorf("a turn of another process isn't there: %+v, %v", later.Prev, err)
	}
}

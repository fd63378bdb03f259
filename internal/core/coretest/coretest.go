// Package coretest is what holds for the folding of every decider. It is for
// tests only.
package coretest

import (
	"testing"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// FromEveryCut folds a log from a state that is saved after each of its facts:
// fold(log) = fold(load(save(fold(beginning))), rest). fresh is the decider of an
// empty stream.
func FromEveryCut(t *testing.T, fresh func() core.Decider, log []event.Envelope) {
	t.Helper()
	want := saved(t, folded(fresh(), log))
	head := fresh()
	for cut := 0; cut <= len(log); cut++ {
		if cut > 0 {
			head.Apply(log[cut-1])
		}
		tail := fresh()
		if err := tail.Load([]byte(saved(t, head))); err != nil {
			t.Fatal(err)
		}
		if got := saved(t, folded(tail, log[cut:])); got != want {
			t.Fatalf("from a state saved at %d: %s\nwant %s", cut, got, want)
		}
	}
}

func folded(d core.Decider, log []event.Envelope) core.Decider {
	for _, e := range log {
		d.Apply(e)
	}
	return d
}

func saved(t *testing.T, d core.Decider) string {
	t.Helper()
	raw, err := d.Save()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

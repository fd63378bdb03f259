package sqlite

import (
	"errors"
	"testing"
)

// during is a write that happens while another one is on its way.
type during struct{ run func(w *writer) error }

func (d during) apply(w *writer) (refused, broken error) { return nil, d.run(w) }

func TestWhatIsQueuedDuringATransactionIsTakenAlong(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	ran := false
	late := &request{op: during{func(*writer) error { ran = true; return nil }}, done: make(chan error, 1)}
	before := db.Stats().Transactions
	err := db.do(t.Context(), during{func(w *writer) error { return w.submit(late) }})
	if lateErr := <-late.done; err != nil || lateErr != nil || !ran {
		t.Errorf("%v, %v, ran: %v", err, lateErr, ran)
	}
	if n := db.Stats().Transactions - before; n != 1 {
		t.Errorf("%d transactions", n)
	}
}

func TestOneThatJoinsCantSpoilATransaction(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	broken := errors.New("broken")
	late := &request{op: during{func(*writer) error { return broken }}, done: make(chan error, 1)}
	joined := false
	err := db.do(t.Context(), during{func(w *writer) error {
		if joined {
			return nil // alone, after the rollback
		}
		joined = true
		return w.submit(late)
	}})
	if lateErr := <-late.done; err != nil || !errors.Is(lateErr, broken) {
		t.Errorf("%v, %v", err, lateErr)
	}
}

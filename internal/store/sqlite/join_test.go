package sqlite

import (
	"errors"
	"strconv"
	"testing"
	"time"
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

// TestInACrowdOthersComeFirst has writes that come as soon as a transaction
// lets others run: they join it, until its time is over.
func TestInACrowdOthersComeFirst(t *testing.T) {
	const most = 10
	now, yields, noop := time.Now(), 0, during{func(*writer) error { return nil }}
	var db *DB
	var late []*request
	yield := func() {
		if yields++; yields > most {
			now = now.Add(gatherTime)
		}
		late = append(late, &request{op: noop, done: make(chan error, 1)})
		if err := db.writer.submit(late[len(late)-1]); err != nil {
			t.Error(err)
		}
	}
	db = openStore(t, t.TempDir(), Options{Now: func() time.Time { return now }, yield: yield})
	for i := range 4 {
		if yields > 0 {
			t.Errorf("%d streams are a crowd", i)
		}
		newWork(t, db, strconv.Itoa(i)).append(t, db, "one of many")
	}
	for _, r := range late {
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	}
	if n := db.Stats().Largest; len(late) != most+1 || n != most+2 {
		t.Errorf("%d came, the largest transaction has %d writes", len(late), n)
	}
}

func TestACrowdIsMoreThanOneSession(t *testing.T) {
	for _, c := range []struct {
		streams []int64
		crowd   bool
	}{
		{nil, false},
		{[]int64{7, 7, 7, 7, 7, 7, 7, 7, 7}, false},
		{[]int64{1, 2, 3, 1, 2, 3, 1, 2, 3}, false}, // a session, its task, its thread
		{[]int64{1, 2, 3, 4}, true},
		{[]int64{1, 2, 3, 4, 4, 4, 4, 4}, true},
		{[]int64{1, 2, 3, 4, 4, 4, 4, 4, 4}, false}, // the others were long ago
	} {
		var a appenders
		for _, s := range c.streams {
			a.add(s)
		}
		if a.crowd() != c.crowd {
			t.Errorf("appends to %v: a crowd is %t", c.streams, a.crowd())
		}
	}
}

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/store/sqlite"
)

// TestAStepCosts counts what a step of a running turn asks of the store: two
// transactions, a bounded number of statements, and not one query. What a
// session costs besides is counted apart.
func TestAStepCosts(t *testing.T) {
	short, long := costOf(t, 5), costOf(t, 55)
	const steps = 50
	if n := long.Transactions - short.Transactions; n != 2*steps {
		t.Errorf("%d steps took %d transactions, %d were promised", steps, n, 2*steps)
	}
	if n := long.Statements - short.Statements; n > maxWrites*steps+1 { // one cached state
		t.Errorf("%d steps took %d statements in transactions, at most %d were promised", steps, n, maxWrites*steps)
	}
	if n := long.Reads - short.Reads; n > long.looks {
		t.Errorf("%d steps took %d queries, none was promised", steps, n)
	}
	t.Logf("a session of 5 steps: %d transactions, %d statements in them, %d queries", short.Transactions, short.Statements, short.Reads)
}

const maxWrites = 10 // statements of the writer for a step

type cost struct {
	sqlite.Stats
	looks int64 // for commands of other processes, at most
}

// costOf is what a session of n steps asks of the store.
func costOf(t *testing.T, steps int) (c cost) {
	r := newRig(t, steps)
	if err := r.session(t.Context(), fmt.Sprint("warm", steps)); err != nil { // type names, rules
		t.Fatal(err)
	}
	before, begun := r.db.Stats(), time.Now()
	if err := r.session(t.Context(), fmt.Sprint("s", steps)); err != nil {
		t.Fatal(err)
	}
	after := r.db.Stats()
	c.Transactions = after.Transactions - before.Transactions
	c.Statements = after.Statements - before.Statements
	c.Reads = after.Reads - before.Reads
	c.looks = int64(time.Since(begun)/(100*time.Millisecond)) + 1
	return c
}

package engine_test

import (
	"testing"
	"time"

	"github.com/belay-run/belay/internal/store"
)

// TestAStepCosts counts what a step of a running turn asks of the store: two
// transactions, a bounded number of statements in them, and not one query. It
// looks from one request to another in the middle of a turn, where nothing but
// the turn continues.
func TestAStepCosts(t *testing.T) {
	const from, to = 20, 220
	const steps = to - from
	r := newRig(t, to+10)
	var begin, end store.Stats
	var begun, ended time.Time
	r.m.hook = func(request int) {
		switch request {
		case from:
			begin, begun = r.db.Stats(), time.Now()
		case to:
			end, ended = r.db.Stats(), time.Now()
		}
	}
	if err := r.session(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	looks := int64(ended.Sub(begun)/(100*time.Millisecond)) + 1 // for commands of other processes
	renewals := int64(ended.Sub(begun)/(5*time.Second)) + 1     // of the lease
	const cached = steps*maxFacts/256 + 1                       // states
	const written = steps*2*5 + cached                          // begin, version, head, facts, commit
	if n := end.Appends - begin.Appends; n != 2*steps {
		t.Errorf("%d steps took %d appends, %d were promised", steps, n, 2*steps)
	}
	if n := end.Transactions - begin.Transactions; n < 2*steps || n > 2*steps+renewals {
		t.Errorf("%d steps took %d transactions, %d were promised", steps, n, 2*steps)
	}
	if n := end.Statements - begin.Statements; n > written+3*renewals {
		t.Errorf("%d steps took %d statements in transactions, at most %d were promised", steps, n, written)
	}
	if n := len(r.m.tools); n != 1 {
		t.Errorf("the tools of %d requests are in %d places, so providers can't keep them encoded", to, n)
	}
	if n := end.Reads - begin.Reads; n > looks {
		t.Errorf("%d steps took %d queries, none was promised", steps, n)
	}
}

const maxFacts = 10 // of a step

// TestASessionCosts bounds what a short session asks of the store besides its
// steps. Its streams run at the same time, so the number isn't always the same.
func TestASessionCosts(t *testing.T) {
	r := newRig(t, 5)
	if err := r.session(t.Context(), "warm"); err != nil { // type names, rules
		t.Fatal(err)
	}
	before := r.db.Stats()
	if err := r.session(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	after := r.db.Stats()
	t.Logf("a session of 5 steps: %d transactions, %d statements in them, %d queries",
		after.Transactions-before.Transactions, after.Statements-before.Statements, after.Reads-before.Reads)
	if n := after.Reads - before.Reads; n > maxReads {
		t.Errorf("a session took %d queries, at most %d were promised", n, maxReads)
	}
}

const maxReads = 36 // the lanes twice, the inboxes and states of three streams, the rules, and looks for other processes' commands

package sqlite

import (
	"context"
	"errors"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
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

// TestALoneWriteIsMadeByItsCaller looks at which goroutine commits: the caller's
// when nobody else writes, and the writer's when the caller may be called off.
func TestALoneWriteIsMadeByItsCaller(t *testing.T) {
	db := openStore(t, t.TempDir(), Options{})
	by := func(ctx context.Context) (stack string) {
		if err := db.do(ctx, during{func(*writer) error { stack = string(debug.Stack()); return nil }}); err != nil {
			t.Fatal(err)
		}
		return stack
	}
	const writers = "(*writer).run("
	if s := by(context.WithoutCancel(t.Context())); strings.Contains(s, writers) {
		t.Errorf("another goroutine committed:\n%s", s)
	}
	if s := by(t.Context()); !strings.Contains(s, writers) {
		t.Errorf("a caller that may be called off committed:\n%s", s)
	}
	for i := range 4 {
		newWork(t, db, strconv.Itoa(i)).append(t, db, "one of many")
	}
	if s := by(context.WithoutCancel(t.Context())); !strings.Contains(s, writers) {
		t.Errorf("one of a crowd committed by itself:\n%s", s)
	}
}

// TestWhatComesWhileACallerCommitsIsNotForgotten queues a write behind one that
// its caller makes, too late to join it.
func TestWhatComesWhileACallerCommitsIsNotForgotten(t *testing.T) {
	var db *DB
	late := &request{op: during{func(*writer) error { return nil }}, done: make(chan error, 1)}
	sent := false
	db = openStore(t, t.TempDir(), Options{fault: func(point string) error {
		if point == "commit" && !sent && db != nil {
			sent = true
			return db.writer.submit(late)
		}
		return nil
	}})
	if err := db.do(context.WithoutCancel(t.Context()), during{func(*writer) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	if err := <-late.done; err != nil || !sent {
		t.Errorf("%v, came late: %t", err, sent)
	}
}

// TestLoneAndQueuedWritesMix appends to three streams at once, each write made by
// its caller or handed over, as it happens: none is lost, none comes twice.
func TestLoneAndQueuedWritesMix(t *testing.T) {
	const writes = 40
	db := openStore(t, t.TempDir(), Options{})
	var streams [3]*work
	for i := range streams {
		streams[i] = newWork(t, db, strconv.Itoa(i))
	}
	var wg sync.WaitGroup
	for _, w := range streams {
		wg.Go(func() {
			for n := range writes {
				ctx := t.Context()
				if n%4 > 0 {
					ctx = context.WithoutCancel(ctx)
				}
				if err := w.try(ctx, db, strconv.Itoa(n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, w := range streams {
		n := 0
		for ev, err := range db.Read(t.Context(), w.b.Stream, 0) {
			if d, ok := ev.Data.(event.ModelDelta); err != nil || !ok || d.Text != strconv.Itoa(n) {
				t.Fatalf("fact %d of %s: %+v, %v", n, w.b.Stream, ev, err)
			}
			n++
		}
		if n != writes {
			t.Errorf("%s has %d facts, %d were written", w.b.Stream, n, writes)
		}
	}
}

// TestAClosedStoreTakesNoLoneWrite, nor does one whose disk failed.
func TestAClosedStoreTakesNoLoneWrite(t *testing.T) {
	ran := during{func(*writer) error { t.Error("it was written"); return nil }}
	db := openStore(t, t.TempDir(), Options{})
	failed := errors.New("the disk failed")
	db.writer.failed = failed
	if err := db.do(context.WithoutCancel(t.Context()), ran); !errors.Is(err, failed) {
		t.Errorf("after a failure: %v", err)
	}
	db.writer.failed = nil
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.do(context.WithoutCancel(t.Context()), ran); belay.CodeOf(err) != belay.CodeBadState {
		t.Errorf("after Close: %v", err)
	}
}

// TestAnAppendWritesFewPages counts the pages that appends of one stream change:
// head, facts and their index, and the counter of positions. An append that
// leaves the lane as it is leaves the index of lanes alone.
func TestAnAppendWritesFewPages(t *testing.T) {
	const appends, pages = 100, 4
	db := openStore(t, t.TempDir(), Options{})
	w := newWork(t, db, "pages")
	w.b.Lane.Runnable = true
	w.append(t, db, "first")
	frames := func() int64 { return db.Stats().WALBytes / frameBytes }
	before := frames()
	for range appends {
		w.append(t, db, "more")
	}
	splits := int64(appends / 4) // leaves that are full: two pages besides
	if n := frames() - before; n > appends*pages+splits {
		t.Errorf("%d appends wrote %d pages, at most %d were promised", appends, n, appends*pages+splits)
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

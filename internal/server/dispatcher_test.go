package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/memory"
)

// lanesOf is a store whose lanes a test sets.
type lanesOf struct {
	*memory.Store
	mu   sync.Mutex
	rows []store.LaneRow
}

func (l *lanesOf) Lanes(_ context.Context, id belay.SessionID) ([]store.LaneRow, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.rows), func(r store.LaneRow) bool { return id != "" && r.Session != id }), nil
}

func (l *lanesOf) set(rows ...store.LaneRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = rows
}

// turnstile is a pool of sessions that run until they are let go.
type turnstile struct {
	*Dispatcher
	st   *lanesOf
	stop func()

	mu     sync.Mutex
	began  []belay.SessionID
	most   int
	at     int
	let    chan struct{}
	failed map[belay.SessionID]error
}

func newTurnstile(all, mine int) *turnstile {
	ts := &turnstile{st: &lanesOf{Store: memory.Open(memory.Options{})}, let: make(chan struct{}), failed: map[belay.SessionID]error{}}
	ts.Dispatcher = newDrives(ts.st, make(chan struct{}, all), mine, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ts.run = func(ctx context.Context, id belay.SessionID) error {
		ts.mu.Lock()
		ts.began = append(ts.began, id)
		ts.at++
		ts.most = max(ts.most, ts.at)
		err := ts.failed[id]
		ts.mu.Unlock()
		select {
		case <-ts.let:
		case <-ctx.Done():
		}
		ts.mu.Lock()
		ts.at--
		ts.mu.Unlock()
		return err
	}
	return ts
}

func (ts *turnstile) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hold := make(chan struct{})
	go ts.loop(ctx, ctx, hold)
	ts.stop = func() {
		cancel()
		ts.wait()
		ts.st.Store.Close()
	}
}

// Guarantee: V8.
func TestSessionsRunInOrderAndNeverMoreThanThePoolHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := newTurnstile(3, 1)
		for i := range 5 {
			ts.Enqueue(belay.SessionID(fmt.Sprint("s", i)), 0)
		}
		ts.Enqueue("urgent", 1)
		ts.Enqueue("whenever", -1)
		ts.Enqueue("s4", 0) // told twice, it runs once
		ts.start(t)
		for range 7 {
			synctest.Wait()
			ts.let <- struct{}{}
		}
		synctest.Wait()
		ts.stop()
		if got := fmt.Sprint(ts.began); got != "[urgent s0 s1 s2 s3 s4 whenever]" {
			t.Errorf("they ran as %s", got)
		}
		if ts.most != 1 {
			t.Errorf("%d ran at once, of at most 1", ts.most)
		}
	})
	for _, c := range []struct{ all, mine, want int }{{3, 2, 2}, {2, 3, 2}, {50, 50, 20}} {
		synctest.Test(t, func(t *testing.T) {
			ts := newTurnstile(c.all, c.mine)
			for i := range 20 {
				ts.Enqueue(belay.SessionID(fmt.Sprint("s", i)), 0)
			}
			ts.start(t)
			synctest.Wait()
			close(ts.let)
			synctest.Wait()
			ts.stop()
			if ts.most != c.want || len(ts.began) != 20 {
				t.Errorf("%d for all, %d for a tenant: %d ran at once, %d in all", c.all, c.mine, ts.most, len(ts.began))
			}
		})
	}
}

// Guarantee: V8.
func TestATenantLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newTurnstile(2, 2), newTurnstile(2, 2)
		two.pool = &pool{all: one.pool.all, mine: 2}
		for i := range 10 {
			one.Enqueue(belay.SessionID(fmt.Sprint("s", i)), 0)
		}
		one.start(t)
		synctest.Wait()
		two.Enqueue("late", 0)
		two.start(t)
		synctest.Wait()
		for range 2 { // each place that gets free is given to whoever waits longest for one
			one.let <- struct{}{}
			synctest.Wait()
		}
		if len(two.began) != 1 {
			t.Errorf("the other tenant waits for all ten: %v ran before it", one.began)
		}
		one.stop()
		two.stop()
	})
}

func TestSessionsWakeAtTheirTimeAndAreTriedAgainLaterWhenTheyFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := newTurnstile(4, 4)
		close(ts.let)
		ts.st.set(store.LaneRow{Session: "later", Stream: "thread/t", Lane: store.Lane{Wake: time.Now().Add(time.Hour)}},
			store.LaneRow{Session: "broken", Stream: "thread/u", Lane: store.Lane{Runnable: true}},
			store.LaneRow{Session: "elsewhere", Stream: "thread/v", Lane: store.Lane{Runnable: true}},
			store.LaneRow{Session: belay.SystemSession, Stream: "process/p", Lane: store.Lane{Runnable: true}})
		ts.failed["broken"], ts.failed["elsewhere"] = errors.New("no workspace"), &store.OwnedError{Session: "elsewhere"}
		ts.start(t)
		time.Sleep(59 * time.Minute) //nolint // the time of synctest
		ts.mu.Lock()
		count := func(id belay.SessionID) (n int) {
			for _, b := range ts.began {
				if b == id {
					n++
				}
			}
			return n
		}
		broken, elsewhere, later, system := count("broken"), count("elsewhere"), count("later"), count(belay.SystemSession)
		ts.mu.Unlock()
		if later != 0 || broken < 9 || broken > 25 || elsewhere < 1000 || system > 0 {
			t.Errorf("in 59 minutes: later %d, broken %d, elsewhere %d", later, broken, elsewhere)
		}
		ts.st.set()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		ts.mu.Lock()
		if count("later") != 1 {
			t.Errorf("it woke %d times", count("later"))
		}
		ts.mu.Unlock()
		ts.stop()
	})
}

// TestWorkGoesOnByItselfAfterARestart stops a server while sessions run and
// starts the next one on the same stores.
// Guarantee: V7.
func TestWorkGoesOnByItselfAfterARestart(t *testing.T) {
	w := newWorld(t)
	r := w.serve(t, "steps:\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n    delay: 1h\n", func(c *Config) { c.Drain = time.Millisecond })
	owner := r.token(auth.Owner, auth.DefaultTenant)
	var runs []belay.RunID
	for i := range 20 {
		told := r.command("submit_turn", owner, fmt.Sprintf(`{"text":"go","sessionId":"s%d","turnId":"t1"}`, i)).told(t)
		runs = append(runs, told.Run)
	}
	r.stop()
	r = w.serve(t, once)
	for _, run := range runs {
		if out := r.until(owner, run, "ended"); out.Outcome != belay.Completed {
			t.Errorf("run %s: %+v", run, out)
		}
	}
}

// TestATurnToldTwiceIsOneTurn sends the same submission many times at once, by
// turn id and by key, and again after a restart.
// Guarantee: V6.
func TestATurnToldTwiceIsOneTurn(t *testing.T) {
	w := newWorld(t)
	r := w.serve(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	send := func(r *rig) app.Result {
		return r.command("submit_turn", owner, `{"text":"go"}`, "Idempotency-Key", "one").told(t)
	}
	var mu sync.Mutex
	seen := map[belay.TurnID]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			told := send(r)
			mu.Lock()
			defer mu.Unlock()
			seen[told.Turn]++
		})
	}
	wg.Wait()
	first := send(r)
	if len(seen) != 1 || seen[first.Turn] != 20 || !first.Repeated {
		t.Fatalf("turns %v, and again %+v", seen, first)
	}
	r.until(owner, first.Run, "ended")
	r.stop()
	r = w.serve(t, once)
	if again := send(r); again.Turn != first.Turn || again.Run != first.Run || !again.Repeated {
		t.Errorf("after a restart: %+v, first %+v", again, first)
	}
	if a := r.command("submit_turn", owner, `{"text":"go away"}`, "Idempotency-Key", "one"); a.Code != belay.CodeIDConflict {
		t.Errorf("another text under the key: %d %s", a.status, a.body)
	}
	for _, in := range []string{`{"text":"go","sessionId":"other"}`, `{"text":"go","turnId":"other"}`, `{"text":"go","sessionId":"` + string(first.Session) + `","turnId":"other"}`} {
		if a := r.command("submit_turn", owner, in, "Idempotency-Key", "one"); a.Code != belay.CodeIDConflict || a.Field != "header Idempotency-Key" {
			t.Errorf("%s under the key: %d %s", in, a.status, a.body)
		}
	}
	if a := r.do("GET", "/v1/sessions/other", owner, ""); a.status != 404 {
		t.Errorf("a refused submission made a session: %d %s", a.status, a.body)
	}
	other := r.token(auth.Owner, auth.DefaultTenant)
	if told := r.command("submit_turn", other, `{"text":"go away"}`, "Idempotency-Key", "one").told(t); told.Turn == first.Turn || told.Repeated {
		t.Errorf("another's key is another key: %+v", told)
	}
}

func TestAServerThatEndsTakesNoMoreWork(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	close(r.s.hold)
	defer func() { r.s.hold = make(chan struct{}) }()
	if a := r.command("submit_turn", owner, `{"text":"go"}`); a.status != 503 || a.Code != belay.CodeDraining {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.do("GET", "/readyz", "", ""); a.status != 503 {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
	if a := r.do("GET", "/healthz", "", ""); a.status != 200 {
		t.Errorf("alive: %d %s", a.status, a.body)
	}
}

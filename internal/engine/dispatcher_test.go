package engine

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
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
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
	e, err := New(Config{Store: ts.st, Owner: store.Owner{ID: "proc_1"}, Performers: none{}})
	if err != nil {
		panic(err)
	}
	ts.Dispatcher = e.NewDispatcher(make(chan struct{}, all), mine, func(ctx context.Context, id belay.SessionID) error {
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
	}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	return ts
}

func (ts *turnstile) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hold := make(chan struct{})
	go ts.Loop(ctx, ctx, hold)
	ts.stop = func() {
		cancel()
		ts.Wait()
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

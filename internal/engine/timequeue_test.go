package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
)

// TestALineIsTheSortedList holds the line against a list that is sorted anew for
// each question: by time, then by who came first, and nobody is lost.
// Guarantee: V8.
func TestALineIsTheSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type waiter struct {
			id   belay.SessionID
			at   time.Time
			came int
		}
		var list []waiter
		l, epoch, came := newLine(), time.Unix(1_700_000_000, 0), 0
		find := func(id belay.SessionID) int {
			return slices.IndexFunc(list, func(w waiter) bool { return w.id == id })
		}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			id := belay.SessionID(fmt.Sprint("s", rapid.IntRange(0, 15).Draw(t, "session")))
			i := find(id)
			if rapid.Bool().Draw(t, "put") {
				at := epoch.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "at")) * time.Second)
				l.put(id, at, at)
				if i < 0 {
					came++
					list = append(list, waiter{id, at, came})
				} else if at.Before(list[i].at) {
					list[i].at = at
				}
			} else if l.remove(id); i >= 0 {
				list = slices.Delete(list, i, i+1)
			}
			slices.SortFunc(list, func(a, b waiter) int {
				if c := a.at.Compare(b.at); c != 0 {
					return c
				}
				return a.came - b.came
			})
			if len(l.places) != len(list) || len(l.of) != len(list) {
				t.Fatalf("%d are in line, want %d", len(l.places), len(list))
			}
			if len(list) > 0 && l.first().id != list[0].id {
				t.Fatalf("%s is first, want %s", l.first().id, list[0].id)
			}
		}
		for _, w := range list {
			if l.first().id != w.id {
				t.Fatalf("%s comes next, want %s", l.first().id, w.id)
			}
			l.remove(w.id)
		}
		if l.first() != nil {
			t.Fatalf("%s is left", l.first().id)
		}
	})
}

// TestUrgentSessionsDoNotStarveOthers lets urgent work come all the time.
// Guarantee: V8.
func TestUrgentSessionsDoNotStarveOthers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ts := newTurnstile(1, 1)
	defer ts.st.Close()
	ts.now = func() time.Time { return now }
	ts.Enqueue("usual", 0)
	ts.Enqueue("whenever", -1)
	var ran []belay.SessionID
	for i := range 70 {
		ts.Enqueue(belay.SessionID(fmt.Sprint("urgent", i)), 1)
		ts.mu.Lock()
		id := ts.choose()
		ts.Dispatcher.mu.Lock()
		ts.ready.remove(id)
		ts.Dispatcher.mu.Unlock()
		ts.mu.Unlock()
		ran = append(ran, id)
		now = now.Add(time.Second)
	}
	if i := slices.Index(ran, "usual"); i != 30 {
		t.Errorf("the usual one ran at place %d of %v; it is overtaken for half a minute", i, ran)
	}
	if i := slices.Index(ran, "whenever"); i < 58 || i > 62 {
		t.Errorf("the one that has time ran at place %d of %v; it is overtaken for a minute", i, ran)
	}
}

// BenchmarkChoosingAmong tells what one start costs with so many waiting.
func BenchmarkChoosingAmong(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ids, now := make([]belay.SessionID, n), time.Now()
			l := newLine()
			for i := range ids {
				ids[i] = belay.SessionID(fmt.Sprintf("sess_%d", i))
				l.put(ids[i], now, now)
			}
			for b.Loop() {
				p := l.first()
				l.remove(p.id)
				now = now.Add(time.Nanosecond)
				l.put(p.id, now, now)
			}
		})
	}
}

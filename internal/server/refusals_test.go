package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// refusalsIn are the audit entries of a store that record a refusal: how many
// there are, and how many requests they stand for, by command and code.
func refusalsIn(t *testing.T, st store.Store) (facts, requests map[string]int) {
	t.Helper()
	facts, requests = map[string]int{}, map[string]int{}
	for rec, err := range st.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := rec.Event.Data.(event.ChannelMessage); ok && m.Kind == "audit" && m.Code != string(app.CodeAccepted) {
			facts[m.Command+" "+m.Code]++
			requests[m.Command+" "+m.Code] += max(m.Count, 1)
		}
	}
	return facts, requests
}

// TestRefusedReadsAreAddedUp polls what a token may not read, and what isn't
// there: each is counted, few are recorded, and of commands each.
// Guarantee: V18.
func TestRefusedReadsAreAddedUp(t *testing.T) {
	w := newWorld(t)
	r := w.serve(t, once)
	viewer := r.token(auth.Viewer, auth.DefaultTenant)
	for range 100 {
		r.do("GET", "/debug/pprof/heap", viewer, "")
		r.command("get_session", viewer, `{"sessionId":"none"}`)
	}
	for range 5 {
		r.command("submit_turn", viewer, `{"text":"x"}`)
		r.do("POST", "/v1/runs", viewer, `{}`)
	}
	r.stop()
	facts, requests := refusalsIn(t, w.stores[auth.DefaultTenant].Open(memory.Options{}))
	for _, x := range []struct {
		line            string
		facts, requests int
	}{
		{"GET /debug/pprof/heap forbidden", 1, 1}, {"GET /debug/pprof/{name...} forbidden", 1, 99},
		{"get_session not_found", 2, 100},
		{"POST /v1/commands/submit_turn forbidden", 5, 5}, {"POST /v1/runs forbidden", 5, 5},
	} {
		if facts[x.line] != x.facts || requests[x.line] != x.requests {
			t.Errorf("%q: %d facts for %d requests, want %d for %d: %v", x.line, facts[x.line], requests[x.line], x.facts, x.requests, facts)
		}
	}
}

// failing is a store that takes no facts for a while.
type failing struct {
	store.Store
	full atomic.Bool
}

func (f *failing) Append(ctx context.Context, b ...store.Batch) ([]store.Position, error) {
	if f.full.Load() {
		return nil, belay.Errorf(belay.CodeStoreFull, "full")
	}
	return f.Store.Append(ctx, b...)
}

// TestNoRefusalIsForgotten polls for a minute and a half as the clock goes, with
// more kinds than are added up at a time, and with a disk that is full meanwhile.
// Guarantee: V18.
func TestNoRefusalIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &failing{Store: memory.New().Open(memory.Options{})}
		a := newAuditor(st, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil)))
		go a.run(t.Context())
		one := func(token, class string) {
			a.reader(t.Context(), entry{principal: "token:" + token, command: class, code: belay.CodeForbidden, at: time.Now()}, class)
		}
		for i := range 440 {
			one("tok_1", "GET /v1/polled")
			st.full.Store(i > 290 && i < 300) // the first interval ends meanwhile
			time.Sleep(90 * time.Second / 440)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if facts, requests := refusalsIn(t, st); facts["GET /v1/polled forbidden"] != 2 || requests["GET /v1/polled forbidden"] != 440 {
			t.Errorf("after 90 s of polling: %v for %v", facts, requests)
		}
		for i := range 3 * maxTallies {
			for range 2 {
				one(fmt.Sprint("tok_", i), "GET /v1/many")
			}
		}
		if n := len(a.refused.all); n > maxTallies {
			t.Errorf("%d kinds are in memory", n)
		}
		a.close()
		_, requests := refusalsIn(t, st)
		if n := requests["GET /v1/many forbidden"]; n != 6*maxTallies {
			t.Errorf("of %d requests %d were recorded", 6*maxTallies, n)
		}
	})
}

// TestRefusalsOfAnIntervalAreRecordedWhenItIsOver waits for the end of an interval
// in which nothing comes any more.
func TestRefusalsOfAnIntervalAreRecordedWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New().Open(memory.Options{})
		a := newAuditor(st, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil)))
		go a.run(t.Context())
		for range 10 {
			a.stranger(t.Context(), entry{principal: "address:x", command: "GET /", code: belay.CodeUnauthorized, at: time.Now()})
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if facts, requests := refusalsIn(t, st); facts["GET / unauthorized"] != 2 || requests["GET / unauthorized"] != 10 {
			t.Errorf("%v for %v", facts, requests)
		}
		if n := len(a.refused.all); n != 0 {
			t.Errorf("%d kinds are in memory still", n)
		}
		a.close()
	})
}

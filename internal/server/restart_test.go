package server

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

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
	// A newer thread isn't what a repeated request means that names none.
	r.until(owner, r.command("submit_turn", owner, `{"text":"more","sessionId":"`+string(first.Session)+`","threadId":"newer"}`, "Idempotency-Key", "two").told(t).Run, "ended")
	r.stop()
	r = w.serve(t, once)
	if again := send(r); again.Turn != first.Turn || again.Run != first.Run || again.Thread != first.Thread || !again.Repeated {
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

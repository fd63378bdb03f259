package load

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// asking is a model that asks a person first, so that the session waits.
const asking = `steps:
  - calls:
      - {tool: ask_user, args: {question: "Which colour?"}}
  - calls:
      - {tool: complete_task, args: {summary: Done.}}
`

// read is a part of what get_thread_read answers.
type read struct {
	Status string
	Turn   struct{ TurnID string }
	Queue  []string
}

func (s *server) thread(ctx context.Context, session string) (read, error) {
	var out read
	return out, s.ask(ctx, "POST", "/v1/commands/get_thread_read", fmt.Sprintf(`{"sessionId":%q}`, session), &out)
}

// TestALongQueue: turns wait behind those that ask a person, as many as a thread
// takes, in the order in which they came, also after the server was killed.
// Guarantee: L15.
func TestALongQueue(t *testing.T) {
	threads, behind := of(100, 4), of(100, 10)
	p := newPlace(t, asking)
	s := p.start()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	none(t, each(threads, 16, func(i int) error {
		_, err := s.submit(ctx, fmt.Sprint("queue-", i), "turn-000")
		return err
	}))
	s.until(ctx, threads, "waiting")
	profiled := s.profile(5)
	idle := s.processor()
	from := time.Now()
	none(t, each(threads, threads, func(i int) error {
		for n := range behind {
			if _, err := s.submit(ctx, fmt.Sprint("queue-", i), fmt.Sprintf("turn-%03d", n+1)); err != nil {
				return err
			}
		}
		return nil
	}))
	took := time.Since(from)
	cost := s.processor() - idle
	profiled()
	n := threads * behind
	figure(t, fmt.Sprintf("%d turns that wait: accepted in a second", n), fmt.Sprintf("%.0f", float64(n)/took.Seconds()), "500")
	figure(t, "processor time of the server per turn", cost/time.Duration(n), "")
	s.kill()
	s = p.start()
	figure(t, "started again: ready after", s.ready.Round(time.Millisecond), "200ms")
	none(t, each(threads, 8, func(i int) error { return s.ordered(ctx, fmt.Sprint("queue-", i), behind) }))
	figure(t, "and every queue was read after", time.Since(s.begun).Round(time.Millisecond), "5s")
	figure(t, "most memory resident", mb(s.memory("VmHWM")), "")
	s.stop()
}

// ordered reports whether the turns of a session wait in the order in which they came.
func (s *server) ordered(ctx context.Context, session string, behind int) error {
	r, err := s.thread(ctx, session)
	if err != nil {
		return err
	}
	if r.Turn.TurnID != "turn-000" || len(r.Queue) != behind || !slices.IsSorted(r.Queue) || r.Queue[0] != "turn-001" {
		return fmt.Errorf("%s: %s runs, and behind it wait %s", session, r.Turn.TurnID, strings.Join(r.Queue, " "))
	}
	return nil
}

// until returns when so many sessions have a status.
func (s *server) until(ctx context.Context, n int, status string) {
	s.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var out struct{ Actions []struct{ ActionID string } }
		if err := s.ask(ctx, "GET", "/v1/actions", "", &out); err != nil {
			s.t.Fatal(err)
		}
		if len(out.Actions) >= n {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("%d of %d sessions are %s", len(out.Actions), n, status)
		}
	}
}

// TestManyIdleSessions: sessions that wait for a person cost their rows in the
// store, and next to nothing in the server.
func TestManyIdleSessions(t *testing.T) {
	n := of(10_000, 50)
	p := newPlace(t, asking)
	s := p.start()
	empty := s.memory("VmRSS")
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	from := time.Now()
	none(t, each(n, 64, func(i int) error {
		_, err := s.submit(ctx, fmt.Sprint("idle-", i), "turn-1")
		return err
	}))
	figure(t, fmt.Sprintf("%d sessions: accepted in a second", n), fmt.Sprintf("%.0f", float64(n)/time.Since(from).Seconds()), "")
	s.rest(ctx, n)
	figure(t, "and at rest, waiting for a person, after", time.Since(from).Round(time.Millisecond), "")
	figure(t, "memory of the server that made them", mb(s.memory("VmRSS")), "")
	s.stop()
	s = p.start()
	figure(t, "started again: ready after", s.ready.Round(time.Millisecond), "200ms")
	s.rest(ctx, n)
	none(t, each(20, 1, func(i int) error { return s.ask(ctx, "GET", fmt.Sprint("/v1/sessions/idle-", i), "", nil) }))
	figure(t, "memory of a server with no session", mb(empty), "")
	figure(t, fmt.Sprintf("memory of a server with %d idle sessions", n), mb(s.memory("VmRSS")), "100 MB")
	s.stop()
}

// rest returns when nothing runs or waits to run, and n steps were answered.
func (s *server) rest(ctx context.Context, n int) {
	s.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := s.text(ctx, "/metrics")
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(text, "belay_sessions_ready 0\n") && strings.Contains(text, "belay_sessions_running 0\n") && strings.Contains(text, fmt.Sprintf("\nbelay_approvals_waiting %d\n", n)) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("the sessions don't come to rest:\n%s", text)
		}
	}
}

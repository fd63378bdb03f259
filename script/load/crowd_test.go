package load

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/client"
)

// fiveSteps is a model that answers five times.
const fiveSteps = `steps:
  - repeat: 4
    calls:
      - {tool: todo, args: {items: [{id: a, text: "Part ${n}", status: pending}]}}
  - calls:
      - {tool: complete_task, args: {summary: Done.}}
`

// TestACrowd: a thousand clients come at the same moment, each with a session of
// five steps, and follow it to its end.
// Guarantee: L12.
func TestACrowd(t *testing.T) {
	n := of(1000, 40)
	s := newPlace(t, fiveSteps).start("--sessions", fmt.Sprint(n))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	answered, status, ended := make([]time.Duration, n), make([]time.Duration, n), make([]time.Duration, n)
	var accepted sync.WaitGroup
	accepted.Add(n)
	var ready sync.WaitGroup
	ready.Add(n)
	begin := make(chan struct{})
	var errs []error
	var wg sync.WaitGroup
	wg.Go(func() {
		errs = each(n, n, func(i int) error {
			ready.Done()
			<-begin
			return s.follow(ctx, fmt.Sprint("crowd-", i), accepted.Done, &answered[i], &status[i], &ended[i])
		})
	})
	ready.Wait()
	profiled := s.profile(5)
	idle, from := s.processor(), time.Now()
	close(begin)
	accepted.Wait()
	cost := s.processor() - idle
	wg.Wait()
	took := time.Since(from)
	profiled()
	none(t, errs)
	figure(t, fmt.Sprintf("%d sessions of 5 steps at once: errors", n), len(errs), "0")
	figure(t, "accepted and durable, p50", quantile(answered, 0.5), "")
	figure(t, "accepted and durable, p99", quantile(answered, 0.99), "500ms")
	figure(t, "processor time of the server by then, per session", cost/time.Duration(n), "")
	figure(t, "first status in the session's stream, p50", quantile(status, 0.5), "")
	figure(t, "first status in the session's stream, p99", quantile(status, 0.99), "500ms")
	figure(t, "the median session's end, and the last one's", fmt.Sprint(quantile(ended, 0.5), " ", took.Round(time.Millisecond)), "")
	figure(t, "processor time of the server per session", (s.processor()-idle)/time.Duration(n), "")
	figure(t, "most memory resident", mb(s.memory("VmHWM")), "1 GiB")
	s.stop()
}

// follow submits a turn, and follows the session until the turn has ended.
func (s *server) follow(ctx context.Context, session string, accepted func(), answered, status, ended *time.Duration) error {
	c, err := client.New(s.url, client.Options{Token: s.token, HTTP: s.http})
	if err != nil {
		return err
	}
	from := time.Now()
	_, err = s.submit(ctx, session, "turn-1")
	accepted()
	if err != nil {
		return err
	}
	*answered = time.Since(from)
	for e, err := range c.Stream(ctx, "/v1/sessions/"+session+"/stream", client.StreamOptions{}) {
		if err != nil {
			return err
		}
		switch e.Type {
		case "resync": // the shell tells what the facts would have told
			var s struct {
				Snapshot struct {
					Threads []struct{ Turn struct{ Outcome string } }
				}
			}
			if err := json.Unmarshal(e.Data, &s); err != nil {
				return err
			}
			if th := s.Snapshot.Threads; len(th) > 0 && th[0].Turn.Outcome == "completed" {
				*ended = time.Since(from)
				return nil
			}
		case "turn.submitted":
			*status = time.Since(from)
		case "turn.completed":
			*ended = time.Since(from)
			return nil
		case "turn.failed":
			return fmt.Errorf("%s: %s", session, e.Data)
		}
	}
	return fmt.Errorf("%s: %w", session, ctx.Err())
}

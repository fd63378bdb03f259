package load

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestALongSession: what a session shows costs the same however long it is.
func TestALongSession(t *testing.T) {
	facts := of(1_000_000, 3_000)
	p := newPlace(t, fiveSteps)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	s := p.start()
	var answered, status, ended time.Duration
	if err := s.follow(ctx, "long", func() {}, &answered, &status, &ended); err != nil {
		t.Fatal(err)
	}
	s.stop()
	n := p.lengthen(ctx, "long", facts)

	s = p.start()
	figure(t, fmt.Sprintf("a session of %d facts: ready after", n), s.ready.Round(time.Millisecond), "200ms")
	if err := s.ask(ctx, "GET", "/v1/sessions/long/events?last=200", "", nil); err != nil {
		t.Fatal(err)
	}
	figure(t, "its last window was read after", time.Since(s.begun).Round(time.Millisecond), "")
	var shell struct {
		Session struct{ Counts struct{ Events int } }
	}
	for shell.Session.Counts.Events < n { // an answer may take no longer than 30 s, and is asked for again
		if err := s.ask(ctx, "GET", "/v1/sessions/long", "", &shell); err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	figure(t, "the view of sessions had folded all of it after", time.Since(s.begun).Round(time.Millisecond), "")
	before, most := s.memory("VmRSS"), s.memory("VmHWM")
	took := map[string][]time.Duration{}
	routes := []string{"/v1/sessions/long", "/v1/sessions/long/events?last=200", "/v1/sessions/long/story?last=200"}
	for range of(100, 10) {
		for _, r := range routes {
			from := time.Now()
			if err := s.ask(ctx, "GET", r, "", nil); err != nil {
				t.Fatal(err)
			}
			took[r] = append(took[r], time.Since(from))
		}
	}
	for _, r := range routes {
		figure(t, r+", p95", quantile(took[r], 0.95), "150ms")
	}
	figure(t, "memory besides, after them", mb(max(s.memory("VmHWM")-most, s.memory("VmRSS")-before, 0)), "20 MB")
	s.stop()
}

// lengthen makes a session have so many facts, and returns how many it has.
func (p *place) lengthen(ctx context.Context, session string, facts int) (n int) {
	p.t.Helper()
	out, err := exec.CommandContext(ctx, "go", "run", "../../internal/testkit/many", p.store, session, "long", strconv.Itoa(facts)).Output()
	if err == nil {
		n, err = strconv.Atoi(strings.TrimSpace(string(out)))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

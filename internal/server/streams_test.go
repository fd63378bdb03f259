package server

import (
	"bufio"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
)

// TestATokensStreamsAreBounded: what a token has open bounds what it may open besides, of
// whatever kind, and no other token; one that ends makes room.
// Guarantee: V55.
func TestATokensStreamsAreBounded(t *testing.T) {
	r := newRig(t, asks, func(c *Config) { c.Streams = 3 })
	owner, other := r.token(auth.Owner, auth.DefaultTenant), r.token(auth.Viewer, auth.DefaultTenant)
	r.command("submit_turn", owner, `{"text":"go","sessionId":"s1","turnId":"t1"}`).told(t)
	follow := func(token, path string) (end func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := r.client.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", path, resp, err)
		}
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return func() { cancel(); resp.Body.Close() }
	}
	first := follow(owner, "/v1/stream")
	defer follow(owner, "/v1/sessions/s1/stream")()
	defer follow(owner, "/v1/stream")()
	for _, path := range []string{"/v1/stream", "/v1/sessions/s1/stream", "/v1/sessions/s1/processes/p1/attach"} {
		if a := r.do("GET", path, owner, ""); a.status != http.StatusTooManyRequests || a.Code != belay.CodeTooMany || a.Hint == "" || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := r.do("GET", "/v1/sessions", owner, ""); a.status != http.StatusOK {
		t.Errorf("a read: %d %s", a.status, a.body)
	}
	defer follow(other, "/v1/stream")()
	first()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		r.s.mu.Lock()
		n := 0
		for _, m := range r.s.streaming {
			n += m
		}
		r.s.mu.Unlock()
		if n == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d streams are counted", n)
		}
	}
	defer follow(owner, "/v1/stream")()
}

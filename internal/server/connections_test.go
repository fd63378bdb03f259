package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/auth"
)

// TestAThousandIdleConnectionsDoNotBlockOthers opens connections that say nothing,
// that never end their header, and that never send the body which they announce.
// Meanwhile others are answered; who hasn't sent a header in time is cut off; and
// the server ends while the rest is open.
// Guarantee: V33.
func TestAThousandIdleConnectionsDoNotBlockOthers(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	addr := strings.TrimPrefix(r.url, "http://")
	begins := []string{
		"",
		"GET /v1/actions HTTP/1.1\r\nHost: " + addr + "\r\nX-Slow: ",
		"POST /v1/commands/submit_turn HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer " + owner + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"text\":",
	}
	begun := time.Now()
	var conns []net.Conn
	for i := range 1000 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, begins[i%len(begins)]); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		conns = append(conns, c)
	}
	for i := range 20 {
		told := r.command("submit_turn", owner, fmt.Sprintf(`{"text":"go","sessionId":"s%d"}`, i)).told(t)
		if a := r.do("GET", "/v1/runs/"+string(told.Run), owner, ""); a.status != http.StatusOK {
			t.Fatalf("beside a thousand others: %d %s", a.status, a.body)
		}
	}
	for i, c := range conns {
		if i%len(begins) == 2 {
			continue // a body has more time
		}
		if err := c.SetReadDeadline(begun.Add(20 * headerWithin)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Fatalf("connection %d, %q, wasn't cut off: %v", i, begins[i%len(begins)], err)
		}
	}
	if took := time.Since(begun); took < headerWithin/2 {
		t.Errorf("they were cut off after %s, sooner than a header may take", took)
	}
	r.stop()
}

// TestHeadersAreBounded at about what the documents say. Who sends more may be cut
// off before they have read why.
func TestHeadersAreBounded(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	if a := r.do("GET", "/v1/actions", owner, "", "X-Long", strings.Repeat("x", 15<<10)); a.status != http.StatusOK {
		t.Errorf("15 KiB: %d", a.status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/v1/actions", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+owner)
	req.Header.Set("X-Long", strings.Repeat("x", 25<<10))
	resp, err := r.client.Do(req)
	if err != nil {
		if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.EOF) {
			t.Errorf("25 KiB: it isn't the server who ended it: %v", err)
		}
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("25 KiB: %d", resp.StatusCode)
	}
}

// TestAHostIsANameAndPerhapsAPort, and nothing that a request can't have there.
func TestAHostIsANameAndPerhapsAPort(t *testing.T) {
	for _, host := range []string{"belay.example.org", "belay.example.org:4260", "127.0.0.1:80", "[::1]:4260"} {
		if err := CheckHost(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"", ":4260", "https://belay.example.org", "belay.example.org/x", "a b", "user@host", "host:port"} {
		if CheckHost(host) == nil {
			t.Errorf("%q is taken", host)
		}
	}
}

package netdial

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// pieces is a connection that keeps each write by itself.
type pieces struct {
	net.Conn
	got []string
}

func (p *pieces) Write(b []byte) (int, error) {
	p.got = append(p.got, string(b))
	return len(b), nil
}

const head = "POST /v1 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"

func TestAHeadGoesWithItsBody(t *testing.T) {
	p := &pieces{}
	c := &conn{Conn: p}
	if n, err := c.Write([]byte(head)); n != len(head) || err != nil || len(p.got) != 0 {
		t.Fatal(n, err, p.got)
	}
	if n, err := c.ReadFrom(io.LimitReader(strings.NewReader("body"), 4)); n != 4 || err != nil {
		t.Errorf("%d bytes of the body, %v", n, err)
	}
	if len(p.got) != 1 || p.got[0] != head+"body" {
		t.Errorf("sent in pieces: %q", p.got)
	}
	p.got = nil
	c.Write([]byte(head)) //nolint:errcheck // looked at below
	if n, err := c.Write([]byte("body")); n != 4 || err != nil || len(p.got) != 1 || p.got[0] != head+"body" {
		t.Errorf("%d, %v: %q", n, err, p.got)
	}
}

// TestWhatIsNoHeadAloneGoesAtOnce: nothing waits for a body that has come, that
// doesn't come, or that comes only after an answer.
func TestWhatIsNoHeadAloneGoesAtOnce(t *testing.T) {
	for _, text := range []string{
		head + "body", head + "b\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 4\r\n", "\x17\x03\x03", "",
	} {
		p := &pieces{}
		if n, err := (&conn{Conn: p}).Write([]byte(text)); n != len(text) || err != nil || strings.Join(p.got, "") != text || len(p.got) != 1 {
			t.Errorf("%q: %d, %v, sent %q", text, n, err, p.got)
		}
	}
}

// TestABodyThatBreaksOffIsAnError after what came of it was sent.
func TestABodyThatBreaksOffIsAnError(t *testing.T) {
	p, broken := &pieces{}, errors.New("broken")
	c := &conn{Conn: p, head: []byte(head)}
	if n, err := c.ReadFrom(io.MultiReader(strings.NewReader("bo"), iotest.ErrReader(broken))); n != 2 || !errors.Is(err, broken) || strings.Join(p.got, "") != head+"bo" {
		t.Errorf("%d, %v: %q", n, err, p.got)
	}
}

// TestRequestsArriveWhole sends bodies of many sizes over one connection, which
// the standard client doesn't know to be in memory.
func TestRequestsArriveWhole(t *testing.T) {
	conns := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns[r.RemoteAddr] = true
		body, _ := io.ReadAll(r.Body)
		w.Write(body) //nolint:errcheck // the client compares
	}))
	defer srv.Close()
	client := Client(Rules{Loopback: true})
	for _, size := range []int{1, 200, 4096, 65_000, roomBytes - 200, roomBytes, roomBytes + 1, 300_000} {
		body := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, struct{ io.Reader }{bytes.NewReader(body)})
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = int64(size)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
		}
	}
	if len(conns) != 1 {
		t.Errorf("%d connections", len(conns))
	}
}

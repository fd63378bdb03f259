package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/auth"
)

// cutting dials connections that end after so many bytes.
type cutting struct {
	mu   sync.Mutex
	rnd  *rand.Rand
	most int // bytes of a connection at most; 0 is no bound
	cuts int
}

func (d *cutting) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || d.most == 0 {
		return c, err
	}
	return &cutConn{Conn: c, d: d, left: 1000 + d.rnd.IntN(d.most)}, nil
}

type cutConn struct {
	net.Conn
	d    *cutting
	left int
}

func (c *cutConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.d.mu.Lock()
		c.d.cuts++
		c.d.mu.Unlock()
		return 0, errors.New("cut")
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// TestTheClientGoesOnAfterCuts reads with the Go client over a connection that
// breaks again and again, in the middle of frames too.
// Guarantee: V40.
func TestTheClientGoesOnAfterCuts(t *testing.T) {
	x := newProgram(t, false, "while read n; do seq 1 $n; done; exit 3")
	d := &cutting{most: 40_000, rnd: rand.New(rand.NewPCG(3, uint64(time.Now().UnixNano())))}
	reads := attachClient(t, x, d, client.AttachTo{Missing: func(from, to int64) { t.Errorf("bytes %d to %d are missing", from, to) }})
	types := attachClient(t, x, &cutting{}, client.AttachTo{Offset: -1})
	if h := reads.Attached(); h.Input != "open" || !h.Live || h.PID == 0 || h.Offset != 0 {
		t.Errorf("attached: %+v", h)
	}
	if _, err := types.Write(t.Context(), []byte("40000\n")); err != nil {
		t.Fatal(err)
	}
	if err := types.CloseInput(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out, want bytes.Buffer
	for i := range 40_000 {
		fmt.Fprintln(&want, i+1)
	}
	buf := make([]byte, 5000)
	for {
		n, err := reads.Read(t.Context(), buf)
		out.Write(buf[:n])
		if int64(out.Len()) != reads.Offset() {
			t.Fatalf("%d bytes came, and the offset is %d", out.Len(), reads.Offset())
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes came, of %d", out.Len(), want.Len())
	}
	if d.cuts < 5 {
		t.Errorf("the connection was cut %d times", d.cuts)
	}
	if e := reads.Exit(); e == nil || e.Code != 3 || e.Reason != "exited" || e.Position == 0 {
		t.Errorf("the end is %+v", e)
	}
}

func attachClient(t *testing.T, x *programRig, d *cutting, to client.AttachTo) *client.Terminal {
	t.Helper()
	h := &http.Client{Transport: &http.Transport{DialContext: d.dial}}
	t.Cleanup(h.CloseIdleConnections)
	c, err := client.New(x.url, client.Options{Token: x.owner, HTTP: h})
	if err != nil {
		t.Fatal(err)
	}
	to.Session, to.Process = "s1", x.process
	term, err := c.Attach(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() }) //nolint:errcheck // the server may be gone
	return term
}

// TestTheClientIsToldWhatWasRefused asks for what can't be.
func TestTheClientIsToldWhatWasRefused(t *testing.T) {
	x := newProgram(t, false, "cat")
	viewer, err := client.New(x.url, client.Options{Token: x.token(auth.Viewer, auth.DefaultTenant), HTTP: x.client})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := viewer.Attach(t.Context(), client.AttachTo{Session: "s1", Process: "proc_none"}); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("a program that isn't: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var refused []error
	at, err := viewer.Attach(ctx, client.AttachTo{Session: "s1", Process: x.process, Refused: func(err error) {
		if refused = append(refused, err); len(refused) == 2 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if at.Attached().Input != "read_only" {
		t.Errorf("attached: %+v", at.Attached())
	}
	if err := errors.Join(at.Resize(ctx, 80, 24), at.CloseInput(ctx)); err != nil {
		t.Fatal(err)
	}
	if _, err := at.Read(ctx, make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("reading ended with %v", err)
	}
	for _, err := range refused {
		if belay.CodeOf(err) != belay.CodeForbidden {
			t.Errorf("told: %v", err)
		}
	}
	if err := at.Close(); err != nil || len(refused) != 2 {
		t.Errorf("%d refusals; closing: %v", len(refused), err)
	}
	if _, err := at.Write(t.Context(), []byte("x")); belay.CodeOf(err) != belay.CodeUnreachable {
		t.Errorf("writing after the end: %v", err)
	}
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/tool"
)

// quiet takes what a call records.
type quiet struct{ tool.Sink }

func (quiet) Fact(event.Payload)     {}
func (quiet) Progress(tool.Progress) {}

// crowd are sessions that use one server over HTTP.
type crowd struct {
	t     *testing.T
	pool  *Pool
	tools map[string]tool.Tool
	wg    sync.WaitGroup

	mu    sync.Mutex
	alive int
	most  int
	ended map[string]string // why the servers of sessions ended
}

func newCrowd(t *testing.T, s *sdk.Server) *crowd {
	far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(far.Close)
	at := &manifest.Server{Name: "far", Type: "http", URL: far.URL}
	l, err := (&Pool{}).Look(t.Context(), at, ".", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{t: t, pool: &Pool{}, tools: map[string]tool.Tool{}, ended: map[string]string{}}
	for _, one := range c.pool.Tools(at, l.Tools) {
		c.tools[one.Spec().Name] = one
	}
	return c
}

// call is a call of a session. A server that it starts is kept, as a thread does.
func (c *crowd) call(ctx context.Context, session, name string) error {
	r, err := c.tools["mcp__far__"+name].Run(ctx, tool.Call{Session: belay.SessionID(session), ID: belay.CallID("of " + session), Attempt: 1, Dir: ".", Args: []byte("{}"), Sink: quiet{}})
	if r.Left != nil {
		c.mu.Lock()
		c.alive++
		c.most = max(c.most, c.alive)
		c.mu.Unlock()
		c.wg.Go(func() {
			left, _ := r.Left.Keep(c.t.Context(), func() string { return "shutdown" }).(event.ChannelDisconnected)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.alive--
			c.ended[session] = left.Reason
		})
	}
	return err
}

func codeOf(err error) string {
	e, _ := errors.AsType[*tool.Error](err)
	if e == nil {
		return fmt.Sprint(err)
	}
	return e.Code
}

// TestSixtyFourServersAreTheMost: the one that was idle longest makes room for another,
// and where all of them work a call is told so.
// Guarantee: T114.
func TestSixtyFourServersAreTheMost(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil)
	reached, goOn := make(chan struct{}), make(chan struct{})
	sdk.AddTool(s, &sdk.Tool{Name: "do"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "work"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		reached <- struct{}{}
		<-goOn
		return &sdk.CallToolResult{}, nil, nil
	})
	c := newCrowd(t, s)
	for n := range maxServers {
		if err := c.call(t.Context(), fmt.Sprint("s", n), "do"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.call(t.Context(), "s0", "do"); err != nil { // now s1 is idle longest
		t.Fatal(err)
	}
	if err := c.call(t.Context(), "more", "do"); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	if c.most > maxServers || len(c.ended) != 1 || c.ended["s1"] != "limit" {
		t.Errorf("at most %d servers at once; %v ended", c.most, c.ended)
	}
	c.mu.Unlock()

	var calls sync.WaitGroup
	for n := range maxServers {
		calls.Go(func() {
			if err := c.call(t.Context(), fmt.Sprint("w", n), "work"); err != nil {
				t.Errorf("w%d: %v", n, err)
			}
		})
	}
	for range maxServers {
		<-reached
	}
	if err := c.call(t.Context(), "last", "do"); codeOf(err) != CodeLimit {
		t.Errorf("%v", err)
	}
	close(goOn)
	calls.Wait()
	if err := c.call(t.Context(), "last", "do"); err != nil {
		t.Errorf("when others have ended: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most > maxServers {
		t.Errorf("%d servers at once", c.most)
	}
}

// TestAServerThatFallsIsStartedThreeTimes within ten minutes, and again after them. Being
// ended because nothing used it doesn't count.
// Guarantee: T114.
func TestAServerThatFallsIsStartedThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{}
		s := &manifest.Server{Name: "bad", Type: "http", URL: "http://example.com/mcp"} // refused before anything is sent
		begun := time.Now()
		try := func() string {
			_, _, err := p.connect(t.Context(), s, tool.Call{Session: "s", Sink: quiet{}})
			return err.Error()
		}
		for range maxRestarts + 1 {
			if said := try(); said != "MCP_UNAVAILABLE: MCP server bad: its url is not encrypted: only servers of this machine are reached by http" {
				t.Error(said)
			}
			time.Sleep(time.Minute)
		}
		if said := try(); said != "MCP_UNAVAILABLE: MCP server bad was started 4 times within 10m0s and ended each time" {
			t.Error(said)
		}
		time.Sleep(restartsIn - time.Since(begun) + time.Second)
		if said := try(); said != "MCP_UNAVAILABLE: MCP server bad: its url is not encrypted: only servers of this machine are reached by http" {
			t.Error(said)
		}
		// Nothing is kept of it when it is long ago.
		time.Sleep(restartsIn + time.Second)
		p.leave(p.slot(key{session: "other"}))
		if n := len(p.slots); n != 1 {
			t.Errorf("%d places are kept", n)
		}
		for range 2 * maxRestarts {
			at := p.slot(key{session: "idle"})
			p.leave(at)
			at.live = &connection{ended: make(chan struct{}), gone: make(chan struct{})}
			at.live.end("idle")
			if n := p.falls(at); n != 0 {
				t.Errorf("it fell %d times", n)
			}
		}
	})
}

// TestAPlaceThatACallHasIsKept: a call that has the place of a server that ended, and hasn't
// begun to start it, isn't left with one that nobody else finds.
// Guarantee: T114.
func TestAPlaceThatACallHasIsKept(t *testing.T) {
	p := &Pool{}
	at := p.slot(key{session: "a"})
	at.live = &connection{ended: make(chan struct{}), gone: make(chan struct{})}
	at.live.end("idle")
	close(at.live.gone)
	p.leave(p.slot(key{session: "b"}))
	if again := p.slot(key{session: "a"}); again != at {
		t.Error("the next call gets another place, and would start a second server")
	}
	p.leave(at)
	p.leave(at)
	p.leave(p.slot(key{session: "c"}))
	if len(p.slots) != 1 {
		t.Errorf("%d places are kept", len(p.slots))
	}
}

// TestAServerEndsWhenNothingUsesIt for as long as its settings say, and not before.
// Guarantee: T114.
func TestAServerEndsWhenNothingUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &connection{server: &manifest.Server{Name: "far", Type: "http", Idle: 10 * time.Minute}, calls: 1, used: time.Now(), stop: func() {}, ended: make(chan struct{}), gone: make(chan struct{})}
		begun := time.Now()
		kept := make(chan time.Duration)
		go func() {
			n.Keep(t.Context(), func() string { return "shutdown" })
			kept <- time.Since(begun)
		}()
		time.Sleep(time.Hour) // a call uses it
		n.release()
		time.Sleep(9 * time.Minute)
		if !n.claim() {
			t.Fatal("it has ended while it was used")
		}
		n.release()
		if took := <-kept; took != time.Hour+19*time.Minute || n.whyEnded != "idle" {
			t.Errorf("it ended after %s: %s", took, n.whyEnded)
		}
		if n.claim() {
			t.Error("a call got a server that had ended")
		}
	})
}

// TestAServerThatNeverGreets is given up, and its connections end: else Close would wait
// for ever.
func TestAServerThatNeverGreets(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the end of a connection is seen only behind the body
		<-r.Context().Done()
	}))
	defer far.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (&Pool{}).Look(ctx, &manifest.Server{Name: "far", Type: "http", URL: far.URL}, ".", nil); codeOf(err) != CodeSilent {
		t.Errorf("%v", err)
	}
}

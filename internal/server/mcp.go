package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/chat/remote"
	"github.com/belay-run/belay/internal/mcpserve"
)

// MCPMessage is what POST /mcp takes, as JSON-RPC has it.
type MCPMessage struct {
	Version string         `json:"jsonrpc" jsonschema:"2.0"`
	ID      any            `json:"id,omitempty" jsonschema:"of a request; a notification has none"`
	Method  string         `json:"method,omitempty" jsonschema:"what is asked"`
	Params  map[string]any `json:"params,omitempty" jsonschema:"of the method"`
	Result  map[string]any `json:"result,omitempty" jsonschema:"the answer to a request of the server"`
	Error   map[string]any `json:"error,omitempty" jsonschema:"why such a request fails"`
}

// mcpServer answers at /mcp. What its clients ask for is asked of the server's own
// routes with the client's own token, so that it is checked, counted and recorded as
// any other request is.
type mcpServer struct {
	s       *Server
	handler http.Handler // of the protocol
	routes  http.Handler // of everything, behind the gate

	mu       sync.Mutex
	sessions map[*sdk.ServerSession]struct{}
	wg       sync.WaitGroup // of the sessions, and of the requests to routes
}

func (s *Server) newMCP(routes http.Handler) *mcpServer {
	m := &mcpServer{s: s, routes: routes, sessions: map[*sdk.ServerSession]struct{}{}}
	m.handler = mcpserve.Handler(m.serverOf)
	return m
}

// serveMCP answers a request of an MCP client. Its answer may be a stream.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		again, end, err := s.endless(r)
		if err != nil {
			s.forbid(w, r, err)
			return
		}
		defer end()
		r = again
	}
	if r.Method == http.MethodPost {
		body, err := readBody(w, r, app.MaxBody)
		if err != nil {
			input.WriteProblem(w, r, err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	http.NewResponseController(w).SetReadDeadline(time.Time{}) //nolint:errcheck // a connection that can't have one is a test's
	s.mcp.handler.ServeHTTP(w, r)
}

// serverOf makes the server of a client. nil: it may not have one.
func (m *mcpServer) serverOf(r *http.Request) *sdk.Server {
	t, p, err := m.s.caller(r)
	if err != nil {
		return nil
	}
	token, err := bearer(r)
	if err != nil {
		return nil
	}
	own := "http://" + m.s.hosts[0]
	c, err := client.New(own, client.Options{Token: token, HTTP: &http.Client{Transport: &inward{m, r.RemoteAddr}}})
	if err != nil {
		return nil
	}
	cfg := mcpserve.Config{Runtime: remote.New(own, c, m.s.c.Reads, func() error { return nil }), May: p.May, Approver: m.s.c.MCPApprover, Version: m.s.c.Version, Joined: m.joined}
	if t.config.Templates != nil {
		if cfg.Templates, err = t.config.Templates(); err != nil {
			m.s.c.Log.Warn("templates", "error", err.Error())
		}
	}
	return mcpserve.New(cfg)
}

// joined keeps a session until it ends.
func (m *mcpServer) joined(ss *sdk.ServerSession) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[ss] = struct{}{}
	m.wg.Go(func() {
		ss.Wait() //nolint:errcheck // how it ended is the client's
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.sessions, ss)
	})
}

// close ends all sessions and waits for them.
func (m *mcpServer) close() {
	m.mu.Lock()
	var all []*sdk.ServerSession
	for ss := range m.sessions {
		all = append(all, ss)
	}
	m.mu.Unlock()
	for _, ss := range all {
		ss.Close() //nolint:errcheck // it ends in any case
	}
	m.wg.Wait()
}

// inward brings requests to the server's own routes, without a connection.
type inward struct {
	m    *mcpServer
	from string // the address of the client that it is done for
}

// RoundTrip implements http.RoundTripper.
func (t *inward) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.m.s.streams, cancel)
	q := r.Clone(ctx)
	q.RemoteAddr, q.Host = t.from, r.URL.Host
	if q.Body == nil {
		q.Body = http.NoBody
	}
	out, in := io.Pipe()
	w := &piped{to: in, header: http.Header{}, begun: make(chan int, 1)}
	t.m.wg.Go(func() {
		defer stop()
		defer cancel()
		defer func() {
			if recover() != nil { // it was cut off, as a connection would be
				in.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()
		t.m.routes.ServeHTTP(w, q)
		w.WriteHeader(http.StatusOK)
		in.Close()
	})
	select {
	case status := <-w.begun:
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, Body: &ending{out, cancel}, ContentLength: -1, Request: r}, nil
	case <-ctx.Done():
		out.Close()
		return nil, ctx.Err()
	}
}

// piped is an answer on its way to the one who asked.
type piped struct {
	to     *io.PipeWriter
	header http.Header
	sent   http.Header // as it was when the answer began
	begun  chan int    // capacity 1: its status
	once   sync.Once
}

// Header implements http.ResponseWriter.
func (p *piped) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *piped) WriteHeader(status int) {
	p.once.Do(func() {
		p.sent = p.header.Clone()
		p.begun <- status
	})
}

// Write implements http.ResponseWriter.
func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.to.Write(b)
}

// Flush implements http.Flusher: nothing is held back.
func (p *piped) Flush() { p.WriteHeader(http.StatusOK) }

// ending is a body whose request ends when it is closed.
type ending struct {
	*io.PipeReader
	end context.CancelFunc
}

// Close implements io.Closer.
func (e *ending) Close() error {
	e.end()
	return e.PipeReader.Close()
}

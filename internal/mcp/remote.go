package mcp

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/netdial"
)

// remote is the way to a server over HTTP.
type remote struct {
	base    http.RoundTripper
	to      *url.URL
	headers map[string]string
	refused atomic.Bool // it wants another authorization than it was given
}

// maxAnswer bounds an answer that isn't a stream, in bytes.
const maxAnswer = 64 << 20

// newRemote is the way to a server, and its transport.
func newRemote(s *manifest.Server) (*remote, sdk.Transport, error) {
	to, err := url.Parse(s.URL)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" || to.User != nil {
		return nil, nil, errors.New("its url isn't an address such as https://example.com/mcp")
	}
	if to.Scheme == "http" && !here(to.Hostname()) {
		return nil, nil, errors.New("its url is not encrypted: only servers of this machine are reached by http")
	}
	r := &remote{base: netdial.Transport(netdial.Rules{Loopback: here(to.Hostname()), Private: true}), to: to, headers: s.Headers}
	client := &http.Client{Transport: r, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if s.Type == "sse" {
		return r, &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: client}, nil
	}
	return r, &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxRetries: 2}, nil
}

// here reports whether a host names this machine.
func here(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// RoundTrip implements http.RoundTripper. What a person set is sent to the server's
// own address alone.
func (r *remote) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Scheme != r.to.Scheme || q.URL.Host != r.to.Host {
		return nil, &net.AddrError{Err: "the server sends its client elsewhere", Addr: q.URL.Host}
	}
	q = q.Clone(q.Context())
	for name, value := range r.headers {
		q.Header.Set(name, value)
	}
	a, err := r.base.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if a.StatusCode == http.StatusUnauthorized || a.StatusCode == http.StatusForbidden {
		r.refused.Store(true)
	}
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		a.Body = &bounded{a.Body, maxAnswer}
	}
	return a, nil
}

// bounded is a body that is an error when it is too long.
type bounded struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errors.New("the answer is too long")
	}
	return n, err
}

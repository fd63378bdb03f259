package mcp

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/netdial"
)

// remote is the way to a server over HTTP.
type remote struct {
	base    http.RoundTripper
	to      *url.URL
	headers map[string]string
	old     bool                         // it speaks over the predecessor of streamable HTTP, which begins with a stream
	login   *session                     // nil: its requests have no token, or one of the headers
	refusal atomic.Pointer[unauthorized] // the last; nil: it never wanted another authorization than it was given
}

// unauthorized is a request that a server doesn't answer to whoever sent it.
type unauthorized struct {
	status int
	header http.Header
}

// plainScope is a scope that may stand in a command that a person copies.
var plainScope = match.Lazy(`^[A-Za-z0-9][A-Za-z0-9:._/-]{0,99}$`)

// ownRefusal is the key of what a call's context has: whether the server refused the
// request of that call, which it didn't work on then.
type ownRefusal struct{}

// scopes are the rights that the server says are missing.
func (r *unauthorized) scopes() []string {
	all, err := oauthex.ParseWWWAuthenticate(r.header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range all {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			return slices.DeleteFunc(strings.Fields(c.Params["scope"]), func(s string) bool { return !plainScope.Match(s) })
		}
	}
	return nil
}

// maxAnswer bounds an answer that isn't a stream, in bytes.
const maxAnswer = 64 << 20

// newRemote is the way to a server, and its transport.
func newRemote(s *manifest.Server, grants *Grants) (*remote, sdk.Transport, error) {
	to, err := url.Parse(s.URL)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" || to.User != nil {
		return nil, nil, errors.New("its url isn't an address such as https://example.com/mcp")
	}
	if to.Scheme == "http" && !here(to.Hostname()) {
		return nil, nil, errors.New("its url is not encrypted: only servers of this machine are reached by http")
	}
	r := &remote{base: netdial.Transport(netdial.Rules{Loopback: here(to.Hostname()), Private: true}), to: to, headers: s.Headers, old: s.Type == "sse", login: grants.of(s)}
	client := &http.Client{Transport: r, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if r.old {
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

// RoundTrip implements http.RoundTripper. What a person set, and what a login gained, is
// sent to the server's own address alone. A request that a token isn't enough for is sent
// again when there is a newer one.
func (r *remote) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Scheme != r.to.Scheme || q.URL.Host != r.to.Host {
		return nil, &net.AddrError{Err: "the server sends its client elsewhere", Addr: q.URL.Host}
	}
	token := ""
	if r.login != nil {
		token = r.login.token(q.Context(), "", false)
	}
	a, err := r.send(q, q.Body, token)
	if err == nil && a.StatusCode == http.StatusUnauthorized && r.login != nil && (q.Body == nil || q.GetBody != nil) {
		if newer := r.login.token(q.Context(), token, true); newer != "" && newer != token {
			var body io.ReadCloser
			if q.GetBody != nil {
				if body, err = q.GetBody(); err != nil {
					return a, nil //nolint:nilerr // the first answer counts
				}
			}
			a.Body.Close()
			a, err = r.send(q, body, newer)
		}
	}
	if err != nil {
		return nil, err
	}
	if a.StatusCode == http.StatusUnauthorized || a.StatusCode == http.StatusForbidden {
		if q.Method == http.MethodGet && !r.old {
			a.StatusCode = http.StatusMethodNotAllowed // there is no stream of news; calls that are answered still are
		} else {
			r.refusal.Store(&unauthorized{a.StatusCode, a.Header})
		}
		if own, ok := q.Context().Value(ownRefusal{}).(*atomic.Bool); ok && q.Method == http.MethodPost {
			own.Store(true)
		}
	}
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		a.Body = &bounded{a.Body, maxAnswer}
	}
	return a, nil
}

func (r *remote) send(q *http.Request, body io.ReadCloser, token string) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Body = body
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range r.headers {
		q.Header.Set(name, value)
	}
	return r.base.RoundTrip(q)
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

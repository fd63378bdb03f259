package engine_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/anthropic"
	"github.com/belay-run/belay/internal/model/google"
	"github.com/belay-run/belay/internal/model/openai"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// adapters make a provider of each protocol that modelserver speaks.
var adapters = map[string]func(wire.Endpoint) model.Provider{
	"anthropic": func(e wire.Endpoint) model.Provider {
		return &anthropic.Messages{Service: wire.Service{Endpoint: e, Prefixes: wire.NewPrefixes(lru.New(1 << 20))}}
	},
	"google": func(e wire.Endpoint) model.Provider {
		return &google.Gemini{Service: wire.Service{Endpoint: e, Prefixes: wire.NewPrefixes(lru.New(1 << 20))}}
	},
	"openai": func(e wire.Endpoint) model.Provider {
		return &openai.Responses{Service: wire.Service{Endpoint: e, Prefixes: wire.NewPrefixes(lru.New(1 << 20))}}
	},
	"openai-chat": func(e wire.Endpoint) model.Provider {
		return &openai.Chat{Service: wire.Service{Endpoint: e, Prefixes: wire.NewPrefixes(lru.New(1 << 20))}}
	},
}

// protocols are the names of the adapters, in order. Every protocol of
// modelserver has one.
func protocols(t testing.TB) (names []string) {
	for _, p := range modelserver.Protocols {
		if adapters[p.Name] == nil {
			t.Errorf("protocol %s has no adapter in this test", p.Name)
			continue
		}
		names = append(names, p.Name)
	}
	sort.Strings(names)
	return names
}

// pipes is a listener whose connections are in memory: HTTP is real on them,
// and time may be virtual.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// farEnd is a network in memory with a vendor's host and a stranger's.
type farEnd struct {
	t       testing.TB
	client  *http.Client
	hosts   map[string]*pipes
	servers []*http.Server
	running sync.WaitGroup
}

// The hosts of the network. The first has a certificate, nobody serves the last.
const (
	vendorHost  = "example.com"
	strangeHost = "elsewhere.test"
	mirrorHost  = "mirror.test" // the vendor's, by a name that its certificate doesn't have
	nobodysHost = "nobody.test"
)

// certified is a certificate for vendorHost.
var certified = sync.OnceValue(func() *httptest.Server { s := httptest.NewTLSServer(nil); s.Close(); return s })

// newFarEnd serves the two hosts, the vendor's over TLS if asked to.
func newFarEnd(t testing.TB, vendor, stranger http.Handler, secure bool) *farEnd {
	f := &farEnd{t: t, client: netdial.Client(netdial.Rules{}), hosts: map[string]*pipes{}}
	transport := f.client.Transport.(*http.Transport)
	transport.Proxy = nil
	transport.DialContext = f.dial
	if secure {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AddCert(certified().Certificate())
	}
	f.serve(vendorHost, vendor, secure)
	f.hosts[mirrorHost] = f.hosts[vendorHost]
	f.serve(strangeHost, stranger, false)
	return f
}

func (f *farEnd) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if p := f.hosts[host]; p != nil && err == nil {
		return p.dial(ctx)
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
}

func (f *farEnd) serve(host string, h http.Handler, secure bool) {
	l := newPipes()
	f.hosts[host] = l
	s := &http.Server{Handler: h, ErrorLog: log.New(complaint{f.t}, "", 0), TLSConfig: &tls.Config{Certificates: certified().TLS.Certificates}}
	f.servers = append(f.servers, s)
	f.running.Go(func() {
		if secure {
			s.ServeTLS(l, "", "") //nolint:errcheck // it ends when it is closed
			return
		}
		s.Serve(l) //nolint:errcheck // likewise
	})
}

// close ends everything that newFarEnd began.
func (f *farEnd) close() {
	f.client.CloseIdleConnections()
	for _, s := range f.servers {
		s.Close() //nolint:errcheck // what is open is cut
	}
	f.running.Wait()
}

// complaint fails the test with what a server has to say, but for handshakes:
// some are to fail.
type complaint struct{ t testing.TB }

func (c complaint) Write(b []byte) (int, error) {
	if !strings.Contains(string(b), "TLS handshake error") {
		c.t.Errorf("the server: %s", b)
	}
	return len(b), nil
}

// endpoint is where adapters reach the vendor's host.
func (f *farEnd) endpoint(t testing.TB, base string) wire.Endpoint {
	u, err := netdial.ParseBase(base)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Endpoint{Name: "far", Base: u, Key: "sk-planted", Client: f.client, First: 2 * time.Minute, Idle: time.Minute}
}

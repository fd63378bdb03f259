//go:build linux

package sandbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// Guarantee: T54.
func TestHostsAreReachedThroughTheProxyOnly(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.Host) })
	plain, secure, other := httptest.NewServer(serve), httptest.NewTLSServer(serve), httptest.NewServer(serve)
	for _, s := range []*httptest.Server{plain, secure, other} {
		t.Cleanup(s.Close)
	}
	s := newSpace(t)
	s.b.Network, s.b.Hosts = belay.NetworkHosts, []string{plain.Listener.Addr().String(), secure.Listener.Addr().String(), ".example.com:443"}
	s.env = []string{"PLAIN=" + plain.URL, "SECURE=" + secure.URL, "OTHER=" + other.URL, "no_proxy=*"}
	const fetch = `python3 -c '
import os, ssl, sys, urllib.request as u
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "" # the far end is of this machine too
c = ssl._create_unverified_context()
o = u.build_opener(u.HTTPSHandler(context=c))
print(o.open(sys.argv[1], timeout=10).read().decode())' `
	for _, c := range []struct {
		line, says string
		ok         bool
	}{
		{fetch + `"$PLAIN/x"`, "hello 127.0.0.1", true},
		{fetch + `"$SECURE/x"`, "hello 127.0.0.1", true},
		{fetch + `"$OTHER/x"`, "403", false},
		{fetch + `"https://example.com/"`, "403", false}, // a suffix is what is below
		{fetch + `"https://evilexample.com/"`, "403", false},
		{fetch + `"http://169.254.169.254/latest"`, "403", false},
		{`python3 -c "import socket, urllib.parse as p, os; u = p.urlparse(os.environ['PLAIN']); socket.create_connection((u.hostname, u.port), 5)"`, "refused", false},
		{`python3 -c '
import os, socket, urllib.parse as p
u = p.urlparse(os.environ["http_proxy"])
s = socket.create_connection((u.hostname, u.port))
s.send(b"CONNECT evil.test\x00.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
a = s.recv(100).decode(); print(a); exit(" 200 " not in a)'`, "HTTP/1.1 4", false},
		{`echo "$no_proxy $NO_PROXY"`, "localhost,127.0.0.1,::1 localhost", true},
	} {
		r := s.sh(c.line)
		if (r.end.Code == 0) != c.ok || !strings.Contains(r.out, c.says) || r.applied.Network != belay.NetworkHosts || r.applied.Level != belay.L3 {
			t.Errorf("%s: got %+v", c.line, r)
		}
	}
}

// Guarantee: T54.
func TestRefusedHostsAreNamed(t *testing.T) {
	confined(t)
	needs.Program(t, "python3")
	s := newSpace(t)
	s.b.Network, s.b.Hosts = belay.NetworkHosts, []string{"example.com:443"}
	r := s.sh(`python3 -c "import urllib.request as u; u.urlopen('http://example.net/')"`)
	if r.end.Code == 0 || len(r.refused) != 1 || r.refused[0] != "example.net:80" {
		t.Errorf("got %+v", r)
	}
}

func TestHostThatIsNone(t *testing.T) {
	for _, host := range []string{"", "exa mple.com:443", "example.com:0", "example.com:https", "example.com.:443", "..com:443", "a\x00.example.com:443", "*:443"} {
		_, err := sandbox.New(belay.Boundary{Name: "own", Network: belay.NetworkHosts, Hosts: []string{host}}, sandbox.Options{Workspace: t.TempDir()})
		if belay.CodeOf(err) != belay.CodeBadBoundary {
			t.Errorf("%q: got %v", host, err)
		}
	}
}

// Guarantee: T54.
func TestNetworkThatNothingHolds(t *testing.T) {
	confined(t)
	for _, c := range []struct {
		disabled []string
		want     string
	}{
		{nil, belay.NetworkHosts},
		{[]string{boxinit.Net}, belay.NetworkNone},
		{[]string{boxinit.Net, boxinit.Seccomp}, belay.NetworkFull},
	} {
		s := newSpace(t)
		s.b.Network, s.b.Hosts, s.o.Disabled = belay.NetworkHosts, []string{"example.com:443"}, c.disabled
		if r := s.sh("true"); r.applied.Network != c.want {
			t.Errorf("without %v: got network %s, want %s", c.disabled, r.applied.Network, c.want)
		}
	}
}

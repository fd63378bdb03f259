package netdial

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

func TestAddressesThatMayBeReached(t *testing.T) {
	all := Rules{Loopback: true, Private: true}
	for addr, want := range map[string]struct{ none, all bool }{
		"8.8.8.8": {true, true}, "2001:4860:4860::8888": {true, true},
		"127.0.0.1": {false, true}, "::1": {false, true}, "::ffff:127.0.0.1": {false, true}, "127.8.9.1": {false, true},
		"10.1.2.3": {false, true}, "172.16.0.1": {false, true}, "192.168.1.1": {false, true}, "100.64.0.1": {false, true}, "fd00::1": {false, true},
		"64:ff9b::8.8.8.8": {true, true}, "64:ff9b::127.0.0.1": {false, true}, "64:ff9b::a01:203": {false, true}, "64:ff9b::169.254.169.254": {}, "2002:808:808::1": {true, true}, "2002:7f00:1::": {false, true}, "2002:a9fe:a9fe::": {}, "2002:0a01:0203::1": {false, true},
		"0.1.2.3": {}, "192.0.0.8": {}, "192.0.0.192": {}, "168.63.129.16": {}, "198.18.0.1": {}, "198.19.255.255": {}, "240.0.0.1": {}, "250.1.2.3": {}, "192.88.99.1": {}, "100::1": {}, "2001:db8::1": {}, "fec0::1": {}, "::127.0.0.2": {}, "::8.8.8.8": {},
		"::ffff:0:7f00:1": {}, "::ffff:0:808:808": {}, "2001::1": {}, "2001:0:7f00:1::": {}, "64:ff9b:1::7f00:1": {}, "64:ff9b:1::808:808": {}, "192.0.2.1": {}, "192.0.1.1": {true, true}, "168.63.129.17": {true, true}, "2001:4860::1": {true, true},
		"100.100.100.200": {}, "100.100.100.201": {false, true}, "fd00:ec2::254": {}, "fd20:ce::254": {}, "fd20:ce::255": {false, true}, "fd00:42::42": {}, "64:ff9b::6464:64c8": {},
		"2001:2::1": {}, "2001:20::1": {}, "2001:200::1": {true, true}, "3fff::1": {}, "5f00::1": {}, "100:0:0:1::1": {},
		"169.254.169.254": {}, "::ffff:169.254.169.254": {}, "fe80::1": {}, "0.0.0.0": {}, "::": {}, "224.0.0.1": {}, "ff02::1": {}, "255.255.255.255": {},
	} {
		a := netip.MustParseAddr(addr)
		if got := (Rules{}).refuses(a) == ""; got != want.none {
			t.Errorf("%s with no rules: %v", addr, got)
		}
		if got := all.refuses(a) == ""; got != want.all {
			t.Errorf("%s with all rules: %v", addr, got)
		}
	}
}

// A name is no way around the rules: what it resolves to is asked for.
func TestTheAddressBehindANameCounts(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	url := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	_, err := Client(Rules{}).Get(url)
	if err == nil || belay.CodeOf(err) != belay.CodeAddress {
		t.Errorf("this machine was reached: %v", err)
	}
	resp, err := Client(Rules{Loopback: true}).Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// Guarantee: E53.
func TestARedirectIsAnAnswer(t *testing.T) {
	var reached bool
	far := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer far.Close()
	srv := httptest.NewServer(http.RedirectHandler(far.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	resp, err := Client(Rules{Loopback: true}).Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || reached {
		t.Errorf("status %d, followed: %v", resp.StatusCode, reached)
	}
}

// TestABodyGoesOutThroughLentRoom counts what sending bodies allocates: not the
// room they go through.
func TestABodyGoesOutThroughLentRoom(t *testing.T) {
	got := make(chan int64)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got <- n
	}))
	defer srv.Close()
	c, err := Transport(Rules{Loopback: true}).DialContext(t.Context(), "tcp", strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const size, bodies = 200 << 10, 200
	if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size*bodies); err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("x"), size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range bodies {
		if n, err := io.Copy(c, io.LimitReader(bytes.NewReader(body), size)); n != size || err != nil {
			t.Fatal(n, err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := <-got; n != size*bodies {
		t.Errorf("%d bytes arrived, %d were sent", n, size*bodies)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) / bodies; n > 26<<10 { // the race detector has a pool lose a quarter of what it is given
		t.Errorf("a body allocated %d bytes", n)
	}
}

// A proxy from the environment would decide what is reached: none is asked.
func TestNoProxyOfTheEnvironmentIsAsked(t *testing.T) {
	asked := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	if Transport(Rules{}).Proxy != nil {
		t.Error("the transport has a proxy")
	}
	_, err := Client(Rules{}).Get("http://169.254.169.254/latest/meta-data")
	if err == nil || belay.CodeOf(err) != belay.CodeAddress || asked {
		t.Errorf("%v, the proxy was asked: %v", err, asked)
	}
}

package dial

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
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

package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/belay-run/belay/internal/lib/netdial"
)

// network is what the tools connect to in tests: names resolve as a table says, one
// answer after the other, and no connection is made but to this machine. What the
// dialer's rules let through is recorded.
type network struct {
	names map[string][]string // addresses of the first question, of the second …

	mu     sync.Mutex
	asked  map[string]int
	passed []string
}

var errNotHere = errors.New("not connected to: this is a test")

func (n *network) transport(t *testing.T, r netdial.Rules) func(*http.Transport) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go n.serve(server)
	d := netdial.Dialer(r)
	d.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	judge := d.ControlContext
	d.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		if err := judge(ctx, network, address, c); err != nil {
			return err
		}
		n.mu.Lock()
		n.passed = append(n.passed, address)
		n.mu.Unlock()
		if a, err := netip.ParseAddrPort(address); err != nil || !a.Addr().Unmap().IsLoopback() {
			return errNotHere
		}
		return nil
	}
	return func(t *http.Transport) { t.DialContext = d.DialContext }
}

// serve answers questions for names.
func (n *network) serve(c net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		size, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		name := strings.TrimSuffix(q.Name.String(), ".")
		n.mu.Lock()
		all, known := n.names[name]
		i := min(n.asked[name+q.Type.String()], len(all)-1)
		n.asked[name+q.Type.String()]++
		n.mu.Unlock()
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if !known {
			m.RCode = dnsmessage.RCodeNameError
		} else {
			for s := range strings.FieldsSeq(all[i]) {
				a := netip.MustParseAddr(s)
				h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				switch {
				case a.Is4() && q.Type == dnsmessage.TypeA:
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
				case a.Is6() && q.Type == dnsmessage.TypeAAAA:
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
				}
			}
		}
		if out, err := m.Pack(); err == nil {
			c.WriteTo(out, from) //nolint:errcheck // the one who asked asks again
		}
	}
}

// TestNoForbiddenAddressIsReached tries addresses in every spelling, names that resolve
// to them, also when they are asked for again, and redirects of servers that answer.
func TestNoForbiddenAddressIsReached(t *testing.T) {
	list, err := os.ReadFile("testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	var reached []string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = append(reached, r.Host)
		io.WriteString(w, "SECRET") //nolint:errcheck // it must not come
	}))
	defer far.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(far.URL, "http://"))
	n := &network{names: map[string][]string{}, asked: map[string]int{}}
	c := Config{transport: n.transport(t, netdial.Rules{})}
	b := newBench(t, c)
	forbidden, allowed, sequences := 0, 0, 0
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		text, want := strings.ReplaceAll(f[1], "PORT", port), f[0]
		if want == "dns" { // a name, and what it resolves to at each question
			sequences++
			text, want = fmt.Sprintf("http://n%d.test:%s/", sequences, port), f[1]
			for _, answer := range f[2:] {
				n.names[fmt.Sprintf("n%d.test", sequences)] = append(n.names[fmt.Sprintf("n%d.test", sequences)], strings.ReplaceAll(answer, ",", " "))
			}
		}
		n.mu.Lock()
		n.passed = nil
		n.mu.Unlock()
		var codes []string
		for range max(len(f)-2, 1) {
			r, err := b.fetch(at{"url": text})
			codes = append(codes, codeOf(err))
			if strings.Contains(r.Text, "SECRET") {
				t.Errorf("%s: the page of this machine was read", text)
			}
		}
		n.mu.Lock()
		passed := n.passed
		n.mu.Unlock()
		switch last := codes[len(codes)-1]; want {
		case "public":
			if allowed++; len(passed) == 0 || strings.HasPrefix(passed[0], "127.") {
				t.Errorf("%s: a public address isn't reached: %v", text, codes)
			}
		case "rebound": // it was public before, and the page isn't kept
			if forbidden++; len(passed) != len(codes)-1 || last != CodeAddress {
				t.Errorf("%s: %v was let through: %v", text, passed, codes)
			}
		default:
			if forbidden++; len(passed) != 0 || last != want {
				t.Errorf("%s: %v was let through: %v, want %s", text, passed, codes, want)
			}
		}
	}
	if forbidden < 120 || allowed < 12 || sequences < 12 {
		t.Errorf("%d forbidden, %d allowed, %d sequences", forbidden, allowed, sequences)
	}
	if len(reached) > 0 {
		t.Errorf("this machine was reached: %v", reached)
	}
	t.Logf("%d forbidden addresses, %d allowed ones, %d of them by name", forbidden, allowed, sequences)
}

// TestARedirectReachesNothingElse: the far end answers, and isn't asked.
func TestARedirectReachesNothingElse(t *testing.T) {
	asked := 0
	far := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer far.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(far.URL, "http://"))
	to := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Location"] = []string{to}
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	b := newBench(t, Config{Reach: ReachLoopback})
	for _, to = range []string{"http://localhost:" + port, "//localhost:" + port + "/x", "http://[::1]:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://127.0.0.2:" + port, "http://127.1:" + port, "http://user@127.0.0.1:" + port, "ftp://127.0.0.1:" + port, "http://127.0.0.1:22/"} {
		r, err := b.fetch(at{"url": srv.URL})
		if code := codeOf(err); asked != 0 || code != CodeBadRedirect && !strings.Contains(r.Text, "redirects to") {
			t.Errorf("%s: asked %d times, %q, %v", to, asked, r.Text, err)
		}
	}
	to = "http://127.0.0.1:" + port + "/"
	if _, err := b.fetch(at{"url": srv.URL + "/own"}); err != nil || asked != 1 {
		t.Errorf("the same host at another port: %d, %v", asked, err)
	}
}

// TestTheGateAndTheToolReadOneHost: what the gate judges is what is connected to, or
// the call is refused.
func TestTheGateAndTheToolReadOneHost(t *testing.T) {
	c := &Config{Reach: ReachPrivate}
	for text, want := range map[string]string{
		"https://Docs.Example.com./x": "docs.example.com", "http://a.example:8080": "a.example", "http://[2001:DB8::1]/": "2001:db8::1", "https://a_b.example/": "a_b.example",
		"https://ｅvil.example/": "", "https://evil。example/": "", "https://a.example\\@evil.example/": "", "https://a.example%2f@evil.example/": "", "http:a.example": "", "//a.example/": "", " https://a.example/": "", "https://a.example\t/": "",
	} {
		u, err := c.parseURL(text)
		got := ""
		if err == nil {
			got = plainHost(u)
		}
		if got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := c.parseURL("https://user:hunter22@a.example/"); codeOf(err) != CodeCredentials || strings.Contains(err.Error(), "hunter22") {
		t.Error(err)
	}
}

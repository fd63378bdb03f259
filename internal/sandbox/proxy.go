package sandbox

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/netdial"
)

// hostRule is a host that a boundary names.
type hostRule struct {
	name  string // in lower case; with a dot in front every name below it
	port  string // empty: 80 and 443
	rules netdial.Rules
}

// hostRules reads a boundary's hosts: host:port or host, the host a name, a
// suffix with a dot in front, or an address. Addresses of this machine and of
// private networks are reached only where they are named as such.
func hostRules(b belay.Boundary) ([]hostRule, error) {
	var all []hostRule
	for _, h := range b.Hosts {
		r := hostRule{name: strings.ToLower(h)}
		if host, port, err := net.SplitHostPort(h); err == nil {
			r.name, r.port = strings.ToLower(host), port
		}
		n, err := strconv.Atoi(r.port)
		if !plainName(strings.TrimPrefix(r.name, ".")) || r.port != "" && (err != nil || n < 1 || n > 65535) {
			return nil, belay.Errorf(belay.CodeBadBoundary, "%q of boundary %q is no host", h, b.Name).WithHint("host:port, or .domain:port for every name below a domain")
		}
		if a, err := netip.ParseAddr(r.name); err == nil {
			r.rules = netdial.Rules{Loopback: a.IsLoopback(), Private: a.IsPrivate()}
		}
		r.rules.Loopback = r.rules.Loopback || r.name == "localhost"
		all = append(all, r)
	}
	return all, nil
}

// plainName reports whether a host's name has only the characters that names and
// addresses have. It is compared as these bytes; nothing reads it another way.
func plainName(name string) bool {
	if name == "" || len(name) > 253 || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' && c != ':' {
			return false
		}
	}
	return true
}

// match is the rule that lets a program reach a host, if one does.
func match(rules []hostRule, host, port string) (hostRule, bool) {
	host = strings.ToLower(host)
	i := slices.IndexFunc(rules, func(r hostRule) bool {
		if r.port != port && (r.port != "" || port != "80" && port != "443") {
			return false
		}
		return r.name == host || strings.HasPrefix(r.name, ".") && strings.HasSuffix(host, r.name)
	})
	if i < 0 || !plainName(host) {
		return hostRule{}, false
	}
	return rules[i], true
}

// proxy lets one program reach the hosts of its boundary, and no other. It is
// the runtime that connects.
type proxy struct {
	rules  []hostRule
	server *http.Server
	joined sync.WaitGroup

	mu      sync.Mutex
	refused []string   // host:port, each once
	open    []net.Conn // both ends of tunnels
	over    bool
}

// maxRefused is how many refused hosts are kept.
const maxRefused = 32

// newProxy serves on a listener until it is closed.
func newProxy(l net.Listener, rules []hostRule) *proxy {
	p := &proxy{rules: rules}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
	p.joined.Go(func() { p.server.Serve(l) }) //nolint:errcheck // it ends when it is closed
	return p
}

// close ends every connection.
func (p *proxy) close() {
	if p == nil {
		return
	}
	p.server.Close()
	p.mu.Lock()
	p.over = true
	for _, c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.joined.Wait()
}

// ServeHTTP answers CONNECT with a tunnel, and passes on requests for http.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := r.Host
	if r.Method != http.MethodConnect {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			http.Error(w, "this is a proxy: it takes requests with a whole address, and CONNECT", http.StatusBadRequest)
			return
		}
		target = r.URL.Host
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		host, port = strings.Trim(target, "[]"), "80"
	}
	rule, ok := match(p.rules, host, port)
	if !ok {
		p.refuse(w, net.JoinHostPort(host, port))
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, net.JoinHostPort(host, port), rule)
		return
	}
	t := netdial.Transport(rule.rules)
	t.DisableKeepAlives = true
	pass := &httputil.ReverseProxy{Transport: t, Rewrite: func(pr *httputil.ProxyRequest) { pr.Out.Host = pr.In.URL.Host },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}}
	pass.ServeHTTP(w, r)
}

func (p *proxy) refuse(w http.ResponseWriter, target string) {
	p.mu.Lock()
	if len(p.refused) < maxRefused && !slices.Contains(p.refused, target) {
		p.refused = append(p.refused, target)
	}
	p.mu.Unlock()
	http.Error(w, fmt.Sprintf("the boundary doesn't let programs reach %q", target), http.StatusForbidden)
}

// hosts are the refused ones.
func (p *proxy) hosts() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// tunnel connects and moves bytes both ways until both are done.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request, target string, rule hostRule) {
	far, err := netdial.Dialer(rule.rules).DialContext(r.Context(), "tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer near.Close()
	if !p.keep(near, far) {
		return
	}
	defer p.forget(near, far)
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		io.Copy(near, far) //nolint:errcheck // an end is an end
		halfClose(near)
	}()
	io.Copy(far, buffered) //nolint:errcheck // as above; what was read ahead comes first
	halfClose(far)
	<-back
}

// halfClose says that nothing more comes.
func halfClose(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.CloseWrite() //nolint:errcheck // it may be closed
	}
}

// keep remembers a tunnel, so that the proxy's end is its end.
func (p *proxy) keep(near, far net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.joined.Add(1)
	p.open = append(p.open, near, far)
	return true
}

func (p *proxy) forget(near, far net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(c net.Conn) bool { return c == near || c == far })
	p.joined.Done()
}

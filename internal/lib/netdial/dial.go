// Package netdial makes the outgoing connections of the runtime: to providers now,
// to whatever else is reached later. It promises that no connection goes to an
// address that its rules exclude, whatever a name resolves to at that moment,
// and that no answer sends a request elsewhere: redirects aren't followed, so a
// key stays with the host it belongs to.
package netdial

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/belay-run/belay"
)

// Rules say which addresses may be reached besides public ones. Link-local
// (where clouds serve their machines' credentials), multicast and reserved
// addresses are never reached.
type Rules struct {
	Loopback bool // this machine
	Private  bool // the private networks it is in
}

// connectTimeout bounds the making of a connection, TLS included, each.
const connectTimeout = 15 * time.Second

// Client is an HTTP client that keeps to the rules. Its requests have no time
// limit of their own: their contexts have. It returns redirects as answers.
func Client(r Rules) *http.Client {
	return &http.Client{
		Transport:     Transport(r),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Dialer makes single connections. A name is resolved once, and each address it
// has is held against the rules before it is tried.
func Dialer(r Rules) *net.Dialer {
	return &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second, ControlContext: r.control}
}

// Transport is what a Client sends with. It asks no proxy: one from the environment
// would decide what is reached.
func Transport(r Rules) *http.Transport {
	d := Dialer(r)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := d.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: c}, nil
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    128, // a hundred sessions with one model server that speaks HTTP/1.1 each have one
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// control is asked for each address after names were resolved.
func (r Rules) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return belay.Errorf(belay.CodeAddress, "%s is no address of a network", address)
	}
	if why := r.refuses(ap.Addr()); why != "" {
		return belay.Errorf(belay.CodeAddress, "%s may not be reached: %s", ap.Addr(), why)
	}
	return nil
}

var shared = netip.MustParsePrefix("100.64.0.0/10") // carriers' address translation, RFC 6598

// reserved are addresses for special use: those of IANA's registries, and those by
// which clouds' machines reach their host and its credentials, which some clouds
// have put into private and shared networks.
var reserved = prefixes("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32", "100.100.100.200/32",
	"::/96", "::ffff:0:0:0/96", "100::/32", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10", "64:ff9b:1::/48", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128")

func prefixes(all ...string) (out []netip.Prefix) {
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// carried are the prefixes of addresses that hold one of IPv4, which is what is
// reached by them, and where in them it begins.
var carried = []struct {
	prefix netip.Prefix
	at     int
}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2}}

// refuses returns the reason why an address may not be reached; empty: it may.
func (r Rules) refuses(a netip.Addr) string {
	a = a.WithZone("").Unmap()
	for _, c := range carried {
		if b := a.As16(); c.prefix.Contains(a) {
			return r.refuses(netip.AddrFrom4([4]byte(b[c.at : c.at+4])))
		}
	}
	switch {
	case !a.IsValid() || a.IsUnspecified():
		return "it is nobody's"
	case a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "it is a group's"
	case a.IsLinkLocalUnicast():
		return "it is an address of this link"
	case a.IsLoopback() && !r.Loopback:
		return "it is this machine"
	case !a.IsLoopback() && slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) }):
		return "it is kept for special uses"
	case (a.IsPrivate() || shared.Contains(a)) && !r.Private:
		return "it is in a private network"
	}
	return ""
}

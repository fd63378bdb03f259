package web

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/belay-run/belay/internal/tool"
)

// maxURL bounds an address, in bytes.
const maxURL = 8 << 10

// parseURL reads the address of a page. It takes only spellings that the gate, which
// judged the host, and the one that connects can't read in two ways.
func (c *Config) parseURL(text string) (*url.URL, error) {
	bad := func(format string, args ...any) *tool.Error {
		return tool.Failf(tool.BadArguments, CodeBadURL, format, args...).WithHint("such as https://example.com/page")
	}
	if len(text) > maxURL {
		return nil, bad("the URL has %d bytes; %d are the most", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "": // the error would repeat what may be a password
		return nil, bad("this is no URL that can be read")
	case u.User != nil:
		return nil, tool.Failf(tool.BadArguments, CodeCredentials, "the URL has a user or a password in it").WithHint("leave them out: web_fetch signs in nowhere")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, bad("%q is neither http nor https", u.Scheme)
	}
	if err := c.checkHost(u, bad); err != nil {
		return nil, err
	}
	if p := u.Port(); p != "" {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > 65535 || p[0] == '0' {
			return nil, bad("%q is no port", p)
		}
		if n < 1024 && n != 80 && n != 443 {
			return nil, tool.Failf(tool.Denied, CodePort, "port %d is not for web pages", n).WithHint("80, 443 and those above 1023 can be reached")
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return nil, bad("the port is empty")
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func (c *Config) checkHost(u *url.URL, bad func(string, ...any) *tool.Error) error {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is6() || a.Zone() != "" {
			return bad("the address in brackets is none of IPv6")
		}
		return nil
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return bad("the host is no name")
		}
		return bad("the host must be written in its ASCII form").WithHint("that of this one is %s", ascii)
	}
	if len(host) > 253 {
		return bad("the host is too long")
	}
	name := strings.TrimSuffix(host, ".")
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.ContainsFunc(l, func(r rune) bool {
			return !(r == '-' || r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
		}) {
			return bad("the host is no name")
		}
	}
	last := labels[len(labels)-1]
	if number(last) {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is4() {
			return bad("the host is a number, but no address as it is usually written")
		}
		return nil
	}
	if len(labels) == 1 && !c.rules().Loopback {
		return tool.Failf(tool.Denied, CodeAddress, "%s is a name of this network, not of the web", name).WithHint("%s", reachHint)
	}
	return nil
}

// reachHint tells a person what would allow a refused address.
const reachHint = "only public addresses are reached; a person can set web-reach in their own belay.yaml"

// number reports whether a label can be read as a part of an address.
func number(label string) bool {
	l := strings.ToLower(label)
	if hex, ok := strings.CutPrefix(l, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(l, "0123456789") == ""
}

// sameHost reports whether two addresses name one host.
func sameHost(a, b *url.URL) bool { return plainHost(a) == plainHost(b) }

// plainHost is a host in one spelling.
func plainHost(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") }

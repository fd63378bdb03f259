package netdial

import (
	"net/url"
	"strings"

	"github.com/belay-run/belay"
)

// ParseBase reads the base URL of a server.
func ParseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, belay.Errorf(belay.CodeUsage, "%q is no base URL", s).WithHint("such as https://host/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, belay.Errorf(belay.CodeUsage, "a base URL has no user, query or fragment").WithHint("such as https://host/v1; a key has its own place")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

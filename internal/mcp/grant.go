package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/secret/vault"
)

// Grants are what logins to servers gained, kept with a person's secrets.
type Grants struct {
	Vault func() (vault.Vault, error)
	Hide  func(name, value string) // registers a secret that came into memory
	Now   func() time.Time
}

// grant lets its holder use a server, for as long as the server's issuer renews it.
type grant struct {
	Origin   string           `json:"origin"` // of the server: it is sent nowhere else
	TokenURL string           `json:"tokenUrl"`
	Near     bool             `json:"near,omitempty"` // server and issuer may be in a private network
	Client   string           `json:"client"`
	Secret   string           `json:"secret,omitempty"` // of the client
	Style    oauth2.AuthStyle `json:"style,omitempty"`  // how the client says who it is
	Scopes   []string         `json:"scopes,omitempty"`
	Access   string           `json:"access"`
	Refresh  string           `json:"refresh,omitempty"`
	Expires  time.Time        `json:"expires,omitzero"`
	Over     bool             `json:"over,omitempty"` // nothing renews it
}

// originOf is what a grant is bound to.
func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// grantName is what a server's grant is kept under: no other address of a server that
// is called the same finds it.
func grantName(server, origin string) string {
	digest := strings.TrimPrefix(string(belay.DigestOf([]byte(server+"\x00"+origin))), "sha256:")
	name := config.SayableName(server)
	return "mcp." + name[:min(len(name), 40)] + "." + digest[:12]
}

// read is the grant of a name; nil: there is none.
func (g *Grants) read(name, origin string) (*grant, error) {
	v, err := g.Vault()
	if err != nil || !v.Exists() {
		return nil, err
	}
	text, err := v.Get(name)
	if belay.CodeOf(err) == belay.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	has := new(grant)
	if err := json.Unmarshal([]byte(text), has); err != nil || has.Origin != origin {
		return nil, belay.Errorf(belay.CodeBadSecrets, "the secret %s is no login to %s", name, origin).WithHint("belay secret rm %s, and log in again", name)
	}
	g.hide(has)
	return has, nil
}

func (g *Grants) hide(has *grant) {
	for name, value := range map[string]string{"access token": has.Access, "refresh token": has.Refresh, "client secret": has.Secret} {
		if value != "" {
			g.Hide(name, value)
		}
	}
}

// change replaces the grant of a name by what edit makes of it, while nothing else
// changes it; nil: there is none.
func (g *Grants) change(ctx context.Context, name, origin string, edit func(has *grant) (*grant, error)) (*grant, error) {
	v, err := g.Vault()
	if err != nil {
		return nil, err
	}
	if v.Exists() {
		unlock, err := files.Lock(ctx, filepath.Join(v.Dir, "logins.lock"))
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	has, err := g.read(name, origin)
	if err != nil {
		return nil, err
	}
	next, err := edit(has)
	switch {
	case err != nil || next == has:
		return has, err
	case next == nil:
		return nil, v.Remove(ctx, name)
	}
	g.hide(next)
	text, err := json.Marshal(next)
	if err != nil {
		return has, err
	}
	return next, v.Set(ctx, name, string(text), g.Now())
}

// State says how far a server over HTTP is logged in to.
type State string

// States of logins.
const (
	NoLogin   State = ""
	LoggedIn  State = "logged_in"
	LoginOver State = "over" // it was, and has to be again
)

// State is that of a server.
func (g *Grants) State(s *manifest.Server) (State, error) {
	l := g.of(s)
	if l == nil {
		return NoLogin, nil
	}
	has, err := g.read(l.name, l.origin)
	switch {
	case err != nil || has == nil:
		return NoLogin, err
	case has.Over:
		return LoginOver, nil
	}
	return LoggedIn, nil
}

// Forget removes the login to a server and reports whether there was one.
func (g *Grants) Forget(ctx context.Context, s *manifest.Server) (had bool, err error) {
	l := g.of(s)
	if l == nil {
		return false, nil
	}
	_, err = g.change(ctx, l.name, l.origin, func(has *grant) (*grant, error) {
		had = has != nil
		return nil, nil
	})
	if belay.CodeOf(err) == belay.CodeNotFound {
		return false, nil
	}
	return had, err
}

// of is the login that a connection to a server uses; nil: it uses none, because it has
// another authorization, or can have none.
func (g *Grants) of(s *manifest.Server) *session {
	to, err := url.Parse(s.URL)
	if g == nil || err != nil || !s.Remote() || authorized(s) {
		return nil
	}
	origin := originOf(to)
	return &session{grants: g, name: grantName(s.Name, origin), origin: origin, here: here(to.Hostname())}
}

// authorized reports whether a server's headers have an authorization.
func authorized(s *manifest.Server) bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// session is the use that a connection makes of a grant.
type session struct {
	grants       *Grants
	name, origin string
	here         bool // the server is on this machine

	mu  sync.Mutex
	has *grant
	err error // why there is no grant that can be used; nil: there was no login
}

// Times of grants.
const (
	renewAhead = 10 * time.Second // before a grant expires
	renewTime  = 30 * time.Second // that an issuer may take
)

// token is what a request is sent with; empty: nothing. It is renewed if it is about to
// expire, or if, asked for again, it is the one that the server refused.
func (l *session) token(ctx context.Context, refused string, again bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.has == nil || again {
		l.has, l.err = l.grants.read(l.name, l.origin)
	}
	if l.has == nil || l.has.Over {
		return ""
	}
	if again && l.has.Access == refused || l.expired(l.has) {
		// What an issuer renewed counts, also when the call that wanted it is given up.
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
		defer stop()
		stale := l.has.Access
		l.has, l.err = l.grants.change(ctx, l.name, l.origin, func(has *grant) (*grant, error) {
			if has == nil || has.Over || has.Access != stale && !l.expired(has) {
				return has, nil // another process was faster
			}
			return has.renewed(ctx, l.here)
		})
	}
	if l.has == nil || l.has.Over {
		return ""
	}
	return l.has.Access
}

func (l *session) expired(has *grant) bool {
	return !has.Expires.IsZero() && l.grants.Now().Add(renewAhead).After(has.Expires)
}

// over reports whether there was a login that counts no more, and what is wrong with the
// one that there is.
func (l *session) over() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.has != nil && l.has.Over, l.err
}

// renewed is what the issuer gives for a grant; one that is over, where it refuses.
func (g *grant) renewed(ctx context.Context, here bool) (*grant, error) {
	next := *g
	if g.Refresh == "" {
		next.Over = true
		return &next, nil
	}
	c := oauth2.Config{ClientID: g.Client, ClientSecret: g.Secret, Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.Style}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, issuerClient(netdial.Rules{Loopback: here, Private: g.Near}))
	t, err := c.TokenSource(ctx, &oauth2.Token{RefreshToken: g.Refresh}).Token()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, refused.ErrorCode) {
		next.Over = true
		return &next, nil
	}
	if err != nil {
		return g, belay.Errorf(belay.CodeUnreachable, "the login can't be renewed: %s", issuerSays(err, "it answers what can't be read")).At(g.TokenURL).WithHint("try again later")
	}
	next.take(t)
	return &next, nil
}

// take puts a token into a grant.
func (g *grant) take(t *oauth2.Token) {
	g.Access, g.Refresh, g.Expires, g.Over = t.AccessToken, cmp.Or(t.RefreshToken, g.Refresh), t.Expiry.UTC(), false
}

// issuerClient speaks to an issuer.
func issuerClient(r netdial.Rules) *http.Client {
	c := netdial.Client(r)
	c.Transport = brief{c.Transport}
	return c
}

// brief bounds what an issuer answers.
type brief struct{ base http.RoundTripper }

// maxIssuer bounds an answer of an issuer, in bytes.
const maxIssuer = 1 << 20

// RoundTrip implements http.RoundTripper.
func (b brief) RoundTrip(q *http.Request) (*http.Response, error) {
	a, err := b.base.RoundTrip(q)
	if err == nil {
		a.Body = &bounded{a.Body, maxIssuer}
	}
	return a, err
}

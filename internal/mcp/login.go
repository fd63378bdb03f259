package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/tool"
)

// Asked is what a person says of a login.
type Asked struct {
	Redirect string   // an address of this machine, where the issuer sends the person back to
	Scopes   []string // rights besides those that the server names
	Client   string   // one that the person registered, or the https address of a description of one; empty: one is registered
	Secret   string   // of the client
}

// Login is a login that waits for a person.
type Login struct {
	Address string // where the person logs in

	redirect *url.URL
	state    string
	back     chan *auth.AuthorizationResult
	asks     chan struct{} // closed when Address is set
	done     chan struct{} // closed when it is over
	err      error         // set before done is closed
	stop     func()
}

// LoginTime is how long a login waits for a person.
const LoginTime = 10 * time.Minute

// Login begins a login to a server. The issuer is the one that the server names.
func (p *Pool) Login(ctx context.Context, s *manifest.Server, a Asked) (*Login, error) {
	if !s.Remote() {
		return nil, belay.Errorf(belay.CodeUsage, "MCP server %s is a program: it has no login", s.Name).WithHint("env: {NAME: secret:NAME} gives a program what it needs")
	}
	if authorized(s) {
		return nil, belay.Errorf(belay.CodeUsage, "MCP server %s has an authorization in its headers", s.Name).At(s.Where).WithHint("take it out of headers: to log in instead")
	}
	back, err := url.Parse(a.Redirect)
	if err != nil || back.Scheme != "http" || !here(back.Hostname()) {
		return nil, belay.Errorf(belay.CodeUsage, "%q is no address of this machine", a.Redirect).At("redirect").WithHint("such as http://127.0.0.1:4261/callback")
	}
	f := &flow{server: s, grants: p.Grants, asked: a}
	refused, err := f.meet(ctx, p.Environ)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), LoginTime)
	l := &Login{redirect: back, back: make(chan *auth.AuthorizationResult), asks: make(chan struct{}), done: make(chan struct{}), stop: stop}
	go func() {
		defer stop()
		defer close(l.done)
		l.err = f.run(ctx, l, refused)
	}()
	select {
	case <-l.asks:
		return l, nil
	case <-l.done:
		return nil, l.err
	}
}

// Cancel ends a login that wasn't finished.
func (l *Login) Cancel() { l.stop() }

// Finish ends a login with the address that the issuer sent the person back to.
func (l *Login) Finish(ctx context.Context, address string) error {
	to, err := url.Parse(strings.TrimSpace(address))
	if err != nil || to.Scheme != l.redirect.Scheme || to.Host != l.redirect.Host || to.Path != l.redirect.Path {
		return belay.Errorf(belay.CodeUsage, "that isn't the address that the browser was sent to").WithHint("it begins with %s", l.redirect)
	}
	q := to.Query()
	if q.Get("state") != l.state {
		return belay.Errorf(belay.CodeLoginState, "the address has another state than the login that was begun: it belongs to another login, or someone made it up").WithHint("begin again, and log in at the address that is shown then")
	}
	if why := q.Get("error"); why != "" {
		l.stop()
		return belay.Errorf(belay.CodeLoginRefused, "the issuer refuses the login: %s", event.CutText(visible(strings.TrimSpace(why+" "+q.Get("error_description"))), 300))
	}
	select {
	case l.back <- &auth.AuthorizationResult{Code: q.Get("code"), State: l.state, Iss: q.Get("iss")}:
	case <-l.done:
		return belay.Errorf(belay.CodeExpired, "the login is over").WithHint("begin again")
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flow is a login on its way: its steps are those of the go-sdk.
type flow struct {
	server *manifest.Server
	grants *Grants
	asked  Asked

	near  bool   // the server is in a private network, or on this machine
	open  bool   // the server answers without a login
	sent  bool   // the person was sent to the issuer
	posts int    // requests that change something there, before or after that
	says  string // the status of its last answer
	got   grant
}

// meet asks the server without a login and returns how it refuses that.
func (f *flow) meet(ctx context.Context, environ []string) (*http.Response, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if at, err := netip.ParseAddrPort(i.Conn.RemoteAddr().String()); err == nil {
			f.near = f.near || at.Addr().Unmap().IsPrivate() || at.Addr().IsLoopback()
		}
	}})
	n := newConnection(f.server, lookCall("/", &lookSink{looked: &Looked{}}))
	err := n.open(ctx, surroundings{environ: environ})
	if f.open = err == nil; f.open { // perhaps it wants a login for its calls alone
		n.finish("closed")
	}
	answer := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody}
	switch {
	case n.remote == nil:
		return nil, err
	case n.remote.refusal.Load() != nil:
		answer.Header = n.remote.refusal.Load().header
	case err != nil:
		return nil, err
	}
	return answer, nil
}

// run logs in, and keeps what that gained.
func (f *flow) run(ctx context.Context, l *Login, refused *http.Response) error {
	to, err := url.Parse(f.server.URL)
	if err != nil {
		return err
	}
	near := here(to.Hostname())
	client := issuerClient(netdial.Rules{Loopback: near, Private: f.near})
	client.Transport = &steps{f, client.Transport}
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: f.asked.Redirect, Client: client, RequestRefreshToken: true,
		ScopeFilter: func(named []string) []string { return union(named, f.asked.Scopes) },
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return f.send(ctx, l, args.URL)
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			f.got = grant{Origin: originOf(to), TokenURL: c.Endpoint.TokenURL, Near: f.near, Client: c.ClientID, Secret: c.ClientSecret, Style: c.Endpoint.AuthStyle, Scopes: c.Scopes}
			f.got.take(t)
			return oauth2.StaticTokenSource(t), nil
		},
	}
	switch {
	case strings.HasPrefix(f.asked.Client, "https://"):
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: f.asked.Client}
	case f.asked.Client != "":
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: f.asked.Client}
		if f.asked.Secret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: f.asked.Secret}
		}
	}
	if c.PreregisteredClient == nil {
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Belay", RedirectURIs: []string{f.asked.Redirect}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	h, err := auth.NewAuthorizationCodeHandler(c)
	if err != nil {
		return belay.Errorf(belay.CodeUsage, "the login can't begin: %v", err)
	}
	if err := h.Authorize(ctx, &http.Request{URL: to}, refused); err != nil {
		return f.failure(ctx, err)
	}
	own := f.grants.of(f.server)
	_, err = f.grants.change(ctx, own.name, own.origin, func(*grant) (*grant, error) { return &f.got, nil })
	return err
}

// send has the person log in at an address, and waits for them to come back.
func (f *flow) send(ctx context.Context, l *Login, address string) (*auth.AuthorizationResult, error) {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "https" && !(to.Scheme == "http" && here(to.Hostname())) {
		return nil, belay.Errorf(belay.CodeNoLogin, "the issuer of MCP server %s has no encrypted address where a person logs in", f.server.Name)
	}
	l.Address, l.state = address, to.Query().Get("state")
	f.sent, f.posts = true, 0
	close(l.asks)
	select {
	case r := <-l.back:
		return r, nil
	case <-ctx.Done():
		return nil, belay.Errorf(belay.CodeExpired, "no login within %s", LoginTime).WithHint("begin again")
	}
}

// failure says which step of the login failed. It repeats nothing that an issuer
// answered but its words for errors.
func (f *flow) failure(ctx context.Context, err error) error {
	name := f.server.Name
	if told, ok := errors.AsType[*belay.Error](err); ok {
		return told
	}
	byHand := "register a client there, and name it with --client-id"
	_, unregistered := errors.AsType[*oauthex.ClientRegistrationError](err)
	switch {
	case ctx.Err() != nil:
		return belay.Errorf(belay.CodeExpired, "the login is over").WithHint("begin again")
	case !f.sent && f.open:
		return belay.Errorf(belay.CodeNoLogin, "MCP server %s answers without a login, and names no issuer of one", name).WithHint("belay mcp test %s", name)
	case unregistered || !f.sent && f.posts > 0:
		return belay.Errorf(belay.CodeLoginRefused, "the issuer of MCP server %s registers no client: %s", name, issuerSays(err, f.says)).WithHint("%s", byHand)
	case !f.sent:
		return belay.Errorf(belay.CodeNoLogin, "MCP server %s has no login that can be used: %s", name, event.CutText(visible(err.Error()), 500)).WithHint("%s; or headers: {Authorization: Bearer secret:NAME}", byHand)
	case f.posts == 0:
		return belay.Errorf(belay.CodeLoginIssuer, "who sent the person back is not the issuer that MCP server %s names", name).WithHint("nothing was kept; what the browser showed may have been another's page")
	}
	return belay.Errorf(belay.CodeLoginRefused, "the issuer of MCP server %s gives no token: %s", name, issuerSays(err, f.says))
}

// issuerSays is what an issuer says of an error. Its answer as a whole may have secrets.
func issuerSays(err error, status string) string {
	text := status
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" {
		text = refused.ErrorCode + " " + refused.ErrorDescription
	} else if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		text = refused.ErrorCode + " " + refused.ErrorDescription
	} else if failed, ok := errors.AsType[net.Error](err); ok {
		text = failed.Error()
	}
	return event.CutText(visible(strings.TrimSpace(text)), 300)
}

// steps are the requests of a flow to the issuer.
type steps struct {
	flow *flow
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s *steps) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodPost {
		s.flow.posts++
	}
	a, err := s.base.RoundTrip(q)
	if err == nil {
		s.flow.says = fmt.Sprintf("%s answers %s", q.URL.Redacted(), a.Status)
	}
	return a, err
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// needs is the error of a server that wants a person to log in, or more than it was given.
func (r *remote) needs(name string) *tool.Error {
	refused := r.refusal.Load()
	if r.login == nil {
		return tool.Failf(tool.Denied, CodeNeedsLogin, "MCP server %s wants an authorization that it isn't given", name).
			WithHint("headers: {Authorization: Bearer secret:NAME} in the file that describes it, after belay secret set NAME")
	}
	over, err := r.login.over()
	scopes := refused.scopes()
	switch {
	case err != nil:
		e := tool.Failf(tool.Denied, CodeNeedsLogin, "MCP server %s: the login can't be used: %s", name, err)
		return e.WithHint("belay mcp login %s", name)
	case len(scopes) > 0:
		hint := "belay mcp login " + name
		for _, s := range scopes {
			hint += " --scope " + s
		}
		return tool.Failf(tool.Denied, CodeNeedsLogin, "MCP server %s wants more than the login to it allows: %s", name, event.CutText(strings.Join(scopes, " "), 300)).WithHint("%s", event.CutText(hint, 500))
	case over:
		return tool.Failf(tool.Denied, CodeNeedsLogin, "the login to MCP server %s is over: nothing renews it", name).WithHint("belay mcp login %s", name)
	}
	return tool.Failf(tool.Denied, CodeNeedsLogin, "MCP server %s needs a login", name).WithHint("belay mcp login %s", name)
}

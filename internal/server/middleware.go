package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
)

// admit is what every request passes before anything looks at it: its host is
// this server, no page of another site sent it, it doesn't come too often, and
// its token is good. What has no token is only answered where open says so.
func (s *Server) admit(next http.Handler) http.Handler {
	return s.guarded(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if s.console.has(r.URL) {
			h.Set("Content-Security-Policy", pagePolicy)
			h.Set("Cache-Control", "no-cache")
		}
		p, err := s.check(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		if p.TokenID != "" {
			r = r.WithContext(auth.With(r.Context(), p))
		}
		next.ServeHTTP(w, r)
	})
}

// guarded answers for a handler that panics: with a problem or, when an answer has begun,
// by cutting that off. It is the server's fault, so its log and its figures have it.
func (s *Server) guarded(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &begunWriter{ResponseWriter: w}
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if fault == http.ErrAbortHandler {
				panic(fault) // it is cut off on purpose
			}
			s.metrics.panicked()
			s.c.Log.Error("panic", "method", r.Method, "path", input.Shown(r.URL.Path), "error", fmt.Sprint(fault), "stack", string(debug.Stack()))
			if out.begun {
				panic(http.ErrAbortHandler)
			}
			input.WriteProblem(w, r, fmt.Errorf("the handler panicked: %v", fault))
		}()
		h(out, r)
	})
}

// begunWriter knows whether an answer has begun.
type begunWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *begunWriter) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *begunWriter) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *begunWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) check(r *http.Request) (auth.Principal, error) {
	if err := s.checkHost(r.Host); err != nil {
		return auth.Principal{}, err
	}
	if err := s.checkOrigin(r); err != nil {
		return auth.Principal{}, err
	}
	if s.open(r.URL) {
		return auth.Principal{}, nil
	}
	p, err := s.principal(r)
	if err != nil {
		if !s.strangers.take(addressOf(r), s.c.Now()) {
			return p, tooManyStrangers()
		}
		return p, err
	}
	if !s.callers.take(p.TokenID, s.c.Now()) {
		return p, input.After(time.Second, belay.Errorf(belay.CodeTooMany, "the token makes more than %d requests in a second", s.c.Rate).WithHint("wait a second; belay serve --rate N allows more"))
	}
	return p, nil
}

// open are the paths that need no token: whether the process lives, and nothing
// about what it does; what trades a code for a token; and the page, which has no data.
func (s *Server) open(at *url.URL) bool {
	return slices.Contains([]string{"/healthz", "/readyz", loginRoute}, at.EscapedPath()) || s.console.has(at)
}

// checkHost refuses requests that name another host. A page whose name was made
// to lead here sends its own.
func (s *Server) checkHost(host string) error {
	if slices.Contains(s.hosts, strings.ToLower(host)) {
		return nil
	}
	return input.At("header Host", belay.Errorf(belay.CodeHost, "this server isn't %q", input.Shown(host)).WithHint("belay serve --host NAME:PORT names another"))
}

// checkOrigin refuses what a browser sends on behalf of a page that isn't named.
func (s *Server) checkOrigin(r *http.Request) error {
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if !slices.Contains(s.origins, strings.ToLower(origin)) {
			return input.At("header Origin", belay.Errorf(belay.CodeOrigin, "pages of %q may not use this server", input.Shown(origin)).WithHint("belay serve --origin URL lets a page in"))
		}
	}
	if len(origins) > 0 {
		return nil
	}
	if s.console.has(r.URL) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil // a link was followed; what it leads to has no data, and no frame shows it
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return input.At("header Sec-Fetch-Site", belay.Errorf(belay.CodeOrigin, "a page of another site may not use this server").WithHint("belay serve --origin URL lets a page in"))
	}
	return nil
}

// principal is who sent a request.
func (s *Server) principal(r *http.Request) (auth.Principal, error) {
	token, err := bearer(r)
	if err != nil {
		return auth.Principal{}, err
	}
	p, err := s.c.Tokens.Principal(token)
	return p, input.At("header Authorization", err)
}

// bearer is the token of a request, as its one Authorization header says, or its
// offer where a WebSocket begins. A token anywhere else counts for nothing.
func bearer(r *http.Request) (string, error) {
	if token, err := offered(r); token != "" || err != nil {
		return token, err
	}
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", input.At("header Authorization", auth.Check(r.Context(), auth.Read))
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if len(values) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", input.At("header Authorization", belay.Errorf(belay.CodeUnauthorized, "the header isn't one Bearer TOKEN").WithHint("send the header Authorization: Bearer TOKEN, once"))
	}
	return token, nil
}

// refuse answers a request that wasn't let in, and records that it came.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.metrics.refused(string(belay.CodeOf(err)))
	s.audit.stranger(r.Context(), entry{principal: "address:" + addressOf(r), command: r.Method + " " + input.Shown(r.URL.Path), code: belay.CodeOf(err), at: s.c.Now()})
	input.WriteProblem(w, r, err)
}

func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "unknown"
	}
	return host
}

// names are the hosts and origins that are this server: its address, the names
// of the loopback if it listens there, and those that were given.
func names(addr net.Addr, tls bool, hosts, origins []string) (h, o []string) {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		host, port = addr.String(), ""
	}
	own := []string{host}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		own = []string{"127.0.0.1", "::1", "localhost"}
	}
	for _, name := range own {
		h = append(h, strings.ToLower(net.JoinHostPort(name, port)))
		if port == "80" && !tls || port == "443" && tls {
			h = append(h, strings.ToLower(name))
		}
	}
	for _, name := range hosts {
		h = append(h, strings.ToLower(name))
	}
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	for _, name := range h {
		o = append(o, scheme+name)
	}
	for _, origin := range origins {
		o = append(o, strings.ToLower(strings.TrimSuffix(origin, "/")))
	}
	return h, o
}

// CheckOrigin reports whether a text names the origin of pages: scheme and host,
// nothing else.
func CheckOrigin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || CheckHost(u.Host) != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
		return belay.Errorf(belay.CodeUsage, "%q is no origin", s).At("--origin").WithHint("--origin https://console.example.org")
	}
	return nil
}

// CheckHost reports whether a text is what requests name as their host: a name or an
// address, with a port or, where it is the usual one, without.
func CheckHost(s string) error {
	u, err := url.Parse("http://" + s)
	if err != nil || s == "" || u.Host != s || u.Hostname() == "" || strings.ContainsAny(s, " \t") {
		return belay.Errorf(belay.CodeUsage, "%q is no host", s).At("--host").WithHint("--host belay.example.org:4260")
	}
	return nil
}

// within runs a handler with a deadline for writing its answer; streams have none.
// A body that announces more than most commands take gets the time of a document,
// to arrive and to be answered: a slow connection needs minutes for it.
func within(d time.Duration, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, c := d, http.NewResponseController(w)
		if r.ContentLength > app.MaxBody {
			d = documentWithin
			c.SetReadDeadline(time.Now().Add(d)) //nolint:errcheck // a connection that can't have one is a test's
		}
		c.SetWriteDeadline(time.Now().Add(d)) //nolint:errcheck // as above
		ctx, cancel := context.WithTimeout(r.Context(), d)
		defer cancel()
		h(w, r.WithContext(ctx))
	}
}

// scoped lets a request through whose principal has a scope.
func (s *Server) scoped(scope auth.Scope, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := auth.Check(r.Context(), scope); err != nil {
			s.forbid(w, r, err)
			return
		}
		h(w, r)
	}
}

// forbid refuses a request of an authenticated account that isn't allowed to
// make it. Each command is recorded by itself, reads of a kind together.
func (s *Server) forbid(w http.ResponseWriter, r *http.Request, err error) {
	p, _ := auth.From(r.Context())
	s.metrics.refused(string(belay.CodeOf(err)))
	e := entry{principal: p.String(), command: r.Method + " " + input.Shown(r.URL.Path), code: input.ProblemOf(err).Code, at: s.c.Now()}
	if t, terr := s.tenant(r.Context(), p.Tenant); terr != nil {
		s.c.Log.Warn("audit", "error", terr.Error())
	} else if class := s.readOf(r); class != "" {
		t.audit.reader(r.Context(), e, class)
	} else if aerr := t.audit.record(r.Context(), e); aerr != nil {
		s.c.Log.Warn("audit", "error", aerr.Error())
	}
	input.WriteProblem(w, r, err)
}

// Package server is the runtime over HTTP: commands, reads and streams for all
// clients that share it. It promises that nothing is done for a request without
// a token that may do it, that a command which was answered is durable, that a
// repeated command is done once, and that it drives whatever has something to
// do, after a restart too, without being asked.
//
// middleware.go is what every request passes, commands.go what calls a command of the table,
// dispatcher.go chooses which sessions run.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Config is what a server is made of. Open, Tokens, Log and the tables must be set.
type Config struct {
	Open     func(ctx context.Context, tenant string) (TenantConfig, error) // called once for each tenant
	Tokens   *auth.Tokens
	Commands []app.Command // the table of commands
	Reads    []app.Read    // the table of reads
	Log      *slog.Logger
	Now      func() time.Time // nil is time.Now
	TLS      *tls.Config      // nil serves without
	Hosts    []string         // NAME:PORT that requests may name besides the address
	Origins  []string         // of pages that may use the server besides its own
	Version  string
	Console  fs.FS // the page and what belongs to it; nil: there is none

	ConsoleAgain func(context.Context) (fs.FS, error) // makes Console anew for each load of the page; nil: it stays

	MCPApprover bool // clients of /mcp may answer what agents ask, if their role may

	Rate        int           // requests of a token in a second; 2000
	Connections int           // at once; 4096
	Streams     int           // of a token at once, attachments to programs among them; 256
	Sessions    int           // that run at once, of all tenants; 256
	PerTenant   int           // that run at once, of one tenant; Sessions
	Drain       time.Duration // how long running sessions may go on when the server ends; 10 s
}

// Server serves.
type Server struct {
	c         Config
	hosts     []string
	origins   []string
	callers   *rateLimiter
	strangers *rateLimiter
	slots     chan struct{}
	metrics   *metrics
	mcp       *mcpServer
	console   *console
	streams   context.Context // of answers without an end
	audit     *auditor        // of the default tenant: sessions without another
	started   time.Time

	life context.Context // of everything; ends last
	work context.Context // of the sessions
	park context.CancelCauseFunc
	hold chan struct{} // closed: no session begins any more

	described func() ([]byte, error) // the description of the API, made once

	pace     attachTimings // of attachments
	attached sync.WaitGroup

	mu          sync.Mutex
	tenants     map[string]*tenant
	attachedNow int
	streaming   map[string]int // answers without an end, by token
}

// errParked is why sessions stop when the server ends before they rest.
var errParked = errors.New("the server ends; the session continues with the next one")

// New checks the configuration.
func New(c Config) (*Server, error) {
	if c.Open == nil || c.Tokens == nil || c.Log == nil || app.Find(c.Commands, "submit_turn") == nil {
		return nil, errors.New("server: open, tokens, log and the tables must be set")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Rate, c.Connections, c.Sessions = cmp.Or(max(c.Rate, 0), 2000), cmp.Or(max(c.Connections, 0), 4096), cmp.Or(max(c.Sessions, 0), 256)
	c.Streams = cmp.Or(max(c.Streams, 0), 256)
	c.PerTenant, c.Drain = cmp.Or(max(c.PerTenant, 0), c.Sessions), cmp.Or(max(c.Drain, 0), 10*time.Second)
	page, err := newConsole(c.Console, c.ConsoleAgain)
	if err != nil {
		return nil, err
	}
	return &Server{c: c, console: page, callers: newRates(c.Rate, 2*c.Rate), strangers: newRates(10, 50), slots: make(chan struct{}, c.Sessions),
		metrics: newMetrics(), hold: make(chan struct{}), pace: usualPace, tenants: map[string]*tenant{}, streaming: map[string]int{},
		described: sync.OnceValues(func() ([]byte, error) { return OpenAPI(c.Commands, c.Reads) })}, nil
}

// Timeouts of connections. A body and its answer have a minute; streams, which
// are answers without an end, have none for the answer.
const (
	headerWithin   = 5 * time.Second
	bodyWithin     = 30 * time.Second
	answerWithin   = 30 * time.Second
	documentWithin = 10 * time.Minute // it can be as long as a session, and so can a body
	idleWithin     = 2 * time.Minute
	maxHeader      = 16 << 10 // net/http takes up to 8 KiB more: what it has read ahead
)

// Run serves on a listener until ctx ends, then lets running sessions finish or
// parks them, and returns when everything it started has ended. ready is called
// once requests are answered and unfinished work continues.
func (s *Server) Run(ctx context.Context, l net.Listener, ready func()) (err error) {
	s.started = s.c.Now()
	s.hosts, s.origins = names(l.Addr(), s.c.TLS != nil, s.c.Hosts, s.c.Origins)
	var end context.CancelFunc
	s.life, end = context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s.work, s.park = context.WithCancelCause(s.life)
	defer s.park(nil)
	t, err := s.tenant(ctx, auth.DefaultTenant)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.audit = t.audit
	if err := s.others(ctx); err != nil {
		s.shut()
		return errors.Join(err, l.Close())
	}
	var cut context.CancelFunc
	s.streams, cut = context.WithCancel(s.life)
	defer cut()
	h := &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: headerWithin, ReadTimeout: bodyWithin, IdleTimeout: idleWithin, MaxHeaderBytes: maxHeader,
		TLSConfig: s.c.TLS, ErrorLog: slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug), Protocols: protocols(),
		BaseContext: func(net.Listener) context.Context { return s.streams },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connection{}, c) },
	}
	var serving sync.WaitGroup
	failed := make(chan error, 1)
	serving.Go(func() {
		at := net.Listener(newBounded(l, s.c.Connections))
		if s.c.TLS != nil {
			at = tls.NewListener(at, s.c.TLS)
		}
		failed <- h.Serve(at)
	})
	ready()
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.drain(ctx)
	cut() // streams end; clients come back with a cursor
	closing, stop := context.WithTimeout(s.life, time.Second)
	if h.Shutdown(closing) != nil {
		h.Close() //nolint:errcheck // what is left is cut
	}
	stop()
	s.mcp.close()
	s.attached.Wait() // they aren't the HTTP server's any more
	serving.Wait()
	s.shut()
	return err
}

// protocols are HTTP/1.1 alone: nothing here needs more, and what isn't spoken
// can't be abused.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// others opens the tenants that tokens name, so that their work continues too.
func (s *Server) others(ctx context.Context) error {
	all, err := s.c.Tokens.List()
	if err != nil {
		return err
	}
	for _, t := range all {
		if !t.Revoked.IsZero() {
			continue
		}
		if _, err := s.tenant(ctx, t.Tenant); err != nil {
			return err
		}
	}
	return nil
}

// drain takes no more work, and waits until the sessions that run have ended, or
// the time is over: then they are parked where they stand.
func (s *Server) drain(ctx context.Context) {
	close(s.hold)
	all := s.all()
	s.c.Log.Info("draining", "because", context.Cause(ctx))
	rested := make(chan struct{})
	go func() {
		defer close(rested)
		for _, t := range all {
			t.drives.Wait()
		}
	}()
	timer := time.NewTimer(s.c.Drain)
	defer timer.Stop()
	select {
	case <-rested:
	case <-timer.C:
		for _, t := range all {
			for _, id := range t.drives.Sessions() {
				s.c.Log.Info("parked", "session", string(id))
			}
		}
		s.park(errParked)
		<-rested
	}
}

// draining reports whether the server is about to end.
func (s *Server) draining() bool {
	select {
	case <-s.hold:
		return true
	default:
		return false
	}
}

// all are the tenants.
func (s *Server) all() []*tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.tenants))
}

// shut gives back what the tenants have.
func (s *Server) shut() {
	s.park(errParked)
	for _, t := range s.all() {
		t.stop()
		t.drives.Wait()
		t.audit.close()
		t.wg.Wait()
		if err := t.config.Close(); err != nil {
			s.c.Log.Error("close", "tenant", t.name, "error", err.Error())
		}
	}
}

// working refuses work while the server is about to end.
func (s *Server) working() error {
	if s.draining() {
		return belay.Errorf(belay.CodeDraining, "the server is about to end").WithHint("repeat the request when it is back")
	}
	return nil
}

// Suspend stops running sessions where they stand; the next server continues with them.
func (s *Server) Suspend() {
	s.mu.Lock()
	park := s.park
	s.mu.Unlock()
	if park != nil {
		park(errParked)
	}
}

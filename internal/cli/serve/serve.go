// Package serve has the command that serves the runtime over HTTP, and those about the
// tokens of its clients.
package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/host"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/app/storage"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/template"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/server"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	hubs "github.com/belay-run/belay/internal/view/feed"
	"github.com/belay-run/belay/web"
)

// ServeCmd is the command "belay serve".
type ServeCmd struct {
	Listen   string        `default:"127.0.0.1:4260" placeholder:"ADDR" help:"Where to listen: an address and a port, 0 for any (default 127.0.0.1:4260)."`
	TLSCert  string        `name:"tls-cert" placeholder:"FILE" help:"Certificate chain in PEM; with --tls-key it is served over TLS."`
	TLSKey   string        `name:"tls-key" placeholder:"FILE" help:"Its key in PEM."`
	NoTLS    bool          `name:"no-tls" help:"Listen beyond this machine without TLS: tokens travel in the clear."`
	Host     []string      `placeholder:"NAME:PORT" help:"A name under which it is reached besides its address; may be repeated."`
	Origin   []string      `placeholder:"URL" help:"A page that may use it from a browser, such as https://console.example.org; may be repeated."`
	Root     []string      `placeholder:"DIR" help:"Sessions may work in this folder and below, besides the workspace; may be repeated."`
	Sessions int           `default:"256" placeholder:"N" help:"How many sessions run at once (default 256)."`
	Tenants  int           `name:"per-tenant" placeholder:"N" help:"How many of one tenant (default as --sessions)."`
	Rate     int           `default:"2000" placeholder:"N" help:"Requests that one token may make in a second (default 2000)."`
	Streams  int           `default:"256" placeholder:"N" help:"Streams that one token may have at once, attachments to programs among them (default 256)."`
	Drain    time.Duration `default:"10s" placeholder:"TIME" help:"The time that running sessions get when it stops; then they are parked (default 10s)."`

	MCPApprover bool `name:"mcp-approver" help:"Clients of /mcp may answer what agents ask, with a token of role approver or owner. A model that drives such a client could answer its own questions."`

	NoConsole bool   `name:"no-console" help:"Don't serve the page."`
	Web       string `placeholder:"DIR" help:"Serve the page of sources in this folder, bundled when it is loaded; go must be there."`

	pair certificate
}

// Help describes the command, with what its flags don't say.
func (*ServeCmd) Help() string {
	return "New sessions take their model from the request, else from BELAY_PROVIDER and BELAY_MODEL (BELAY_SCRIPT plays a file), else from provider and model in belay.yaml, " +
		"which belay config set writes. The server chooses none by itself. Keys are read from its environment, or from what belay login keeps."
}

// Served is what serve says when it is ready, as JSON.
type Served struct {
	URL   string `json:"url"`
	PID   int    `json:"pid"`
	Store string `json:"store"`
	Token string `json:"token,omitempty"` // made at the first start, and shown this once
	Model string `json:"model,omitempty"` // provider and model of new sessions; empty: each has to name them
}

// Run implements command.Command.
func (c *ServeCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	ws, err := a.CheckedWorkspace()
	if err != nil {
		return 0, err
	}
	roots, err := roots(a, ws, c.Root)
	if err != nil {
		return 0, err
	}
	cfg, err := c.config(a)
	if err != nil {
		return 0, err
	}
	if cfg.Tokens, err = a.ServerTokens(true); err != nil {
		return 0, err
	}
	dir, err := a.StoreDir()
	if err != nil {
		return 0, err
	}
	if err := alone(dir); err != nil {
		return 0, err
	}
	all := &tenants{a: a, ws: ws, roots: roots, pair: &c.pair}
	cfg.Open = all.openTenant
	token, _, err := cfg.Tokens.First(auth.DefaultTenant)
	if err != nil {
		return 0, err
	}
	s, err := server.New(cfg)
	if err != nil {
		return 0, err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return 0, belay.Errorf(belay.CodeUsage, "it can't listen there: %s", err).At(c.Listen).WithHint("--listen 127.0.0.1:0 takes any port")
	}
	url := "http://" + l.Addr().String()
	if cfg.TLS != nil {
		url = "https://" + l.Addr().String()
	}
	model, note := modelOf(ctx, a)
	file := filepath.Join(dir, "server.json")
	defer os.Remove(file) //nolint:errcheck // readers check whether the process lives
	ctx, stop := c.untilSignals(ctx, a, s)
	defer stop()
	var settle func()
	defer func() {
		if settle != nil {
			settle()
		}
	}()
	return belay.ExitOK, s.Run(ctx, l, func() {
		settle = reloading(ctx, s, all.readAgain)
		if err := writeRunning(file, command.Running{Owner: store.ThisProcess(), URL: url, Started: a.Now().UTC(), Version: command.BuildVersions().Version}); err != nil {
			cfg.Log.Error("server.json", "error", err.Error())
		}
		sayServed(&a.Env, Served{URL: url, PID: os.Getpid(), Store: dir, Token: token, Model: model}, note)
		if !c.NoConsole && !a.JSON && a.IsTerminal(a.Out) {
			sayConsole(a, cfg.Tokens, url)
		}
	})
}

// untilSignals ends a context with the first signal; the second parks at once.
func (c *ServeCmd) untilSignals(ctx context.Context, a *command.Program, s *server.Server) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := onSignals(a.Signals, func(sig os.Signal) {
		if ctx.Err() != nil {
			s.Suspend()
		}
		cancel(fmt.Errorf("signal: %s", sig))
	})
	return ctx, func() { stop(); cancel(nil) }
}

// onSignals calls do with each signal until the function that it returns is called.
func onSignals(signals <-chan os.Signal, do func(os.Signal)) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case sig := <-signals:
				do(sig)
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// modelOf is the provider and the model of new sessions that name none, or why there
// is none. A server doesn't choose: it would spend without being asked.
func modelOf(ctx context.Context, a *command.Program) (model, note string) {
	p, err := a.EnterHere(ctx)
	var l *config.Layers
	if err == nil {
		l, err = a.Layers(p, nil)
	}
	var s config.Settings
	if err == nil {
		s, err = l.Checked()
	}
	switch {
	case belay.CodeOf(err) == belay.CodeNoProvider && s.Provider == "":
		return "", "no model is set, so each session has to name one: BELAY_PROVIDER and BELAY_MODEL, or belay config set, name it for all"
	case err != nil:
		return "", "new sessions can't begin: " + a.Explained(err).Error()
	}
	model = strings.TrimSpace(s.Provider + " " + s.Model)
	return model, "model: " + model
}

// sayServed tells a person, or a program, where the server is.
func sayServed(e *term.Env, s Served, note string) {
	e.Show(s, func() {
		fmt.Fprintf(e.Out, "serving %s\n", s.URL)
		fmt.Fprintln(e.Out, term.Line(note))
		if s.Token != "" {
			fmt.Fprintf(e.Out, "the owner's token, shown this once: %s\n", s.Token)
			fmt.Fprintf(e.Out, "more: belay token create --role operator%s\n", e.StoreFlag)
		}
	})
}

// config checks the flags.
func (c *ServeCmd) config(a *command.Program) (server.Config, error) {
	level := slog.LevelInfo
	if a.Verbose {
		level = slog.LevelDebug
	}
	cfg := server.Config{Commands: a.Build.Commands, Reads: a.Build.Reads, Log: slog.New(slog.NewJSONHandler(scrubbed{a}, &slog.HandlerOptions{Level: level})), Now: a.Now, Hosts: c.Host, Origins: c.Origin, Version: command.BuildVersions().Version,
		Rate: c.Rate, Streams: c.Streams, Sessions: c.Sessions, PerTenant: c.Tenants, Drain: c.Drain, MCPApprover: c.MCPApprover}
	if err := c.check(); err != nil {
		return cfg, err
	}
	if !c.NoConsole {
		cfg.Console = web.Dist()
	}
	if c.Web != "" {
		var err error
		cfg.ConsoleAgain = bundled(a.Environment().Abs(c.Web))
		if cfg.Console, err = cfg.ConsoleAgain(context.Background()); err != nil {
			return cfg, err
		}
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return cfg, belay.Errorf(belay.CodeUsage, "%q is no address with a port", c.Listen).At("--listen").WithHint("--listen 127.0.0.1:4260")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return cfg, belay.Errorf(belay.CodeUsage, "a certificate and its key go together").At("--tls-cert").WithHint("--tls-cert FILE --tls-key FILE")
	}
	if c.TLSCert != "" {
		c.pair.cert, c.pair.key = a.Environment().Abs(c.TLSCert), a.Environment().Abs(c.TLSKey)
		if err := c.pair.load(); err != nil {
			return cfg, err
		}
		cfg.TLS = c.pair.config()
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) && cfg.TLS == nil && !c.NoTLS {
		return cfg, belay.Errorf(belay.CodeUsage, "%s is reached from other machines, and tokens would travel in the clear", cmp.Or(host, "every address")).At("--listen").
			WithHint("--tls-cert FILE --tls-key FILE; or --no-tls behind something that does TLS")
	}
	return cfg, nil
}

// check refuses flags without an effect rather than guess their purpose.
func (c *ServeCmd) check() error {
	for _, o := range c.Origin {
		if err := server.CheckOrigin(o); err != nil {
			return err
		}
	}
	for _, h := range c.Host {
		if err := server.CheckHost(h); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name         string
		value, least int
		usual        string
	}{{"--sessions", c.Sessions, 1, "256"}, {"--per-tenant", c.Tenants, 0, "64; without it, as --sessions"}, {"--rate", c.Rate, 1, "2000"}, {"--streams", c.Streams, 1, "256"}} {
		if f.value < f.least {
			return belay.Errorf(belay.CodeUsage, "%d is too few; from %d on it can be", f.value, f.least).At(f.name).WithHint("%s %s", f.name, f.usual)
		}
	}
	if c.Drain <= 0 {
		return belay.Errorf(belay.CodeUsage, "%s is no time to wait", c.Drain).At("--drain").WithHint("--drain 10s; --drain 1ms parks at once")
	}
	return nil
}

// roots are the real paths of the folders that sessions may work in.
func roots(a *command.Program, ws string, more []string) ([]string, error) {
	out := []string{ws}
	for _, dir := range more {
		real, err := config.CheckWorkspace(a.Environment().Abs(dir))
		if e, ok := errors.AsType[*belay.Error](err); ok {
			return nil, belay.Errorf(e.Code, "%s", e.Message).At("--root " + dir).WithHint("--root DIR, a directory that you can read")
		}
		if err != nil {
			return nil, err
		}
		out = append(out, real)
	}
	return out, nil
}

// alone refuses a second server of a store.
func alone(dir string) error {
	r := command.ServerOf(dir)
	if r == nil {
		return nil
	}
	return belay.Errorf(belay.CodeOwned, "process %d on %s serves this store at %s", r.Owner.PID, r.Owner.Host, r.URL).At(dir).WithHint("use that one, or --store DIR")
}

func writeRunning(file string, r command.Running) error {
	return files.WriteWhole(files.System{}, file, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
}

// scrubbed is where the log goes, without registered secrets.
type scrubbed struct{ a *command.Program }

func (s scrubbed) Write(b []byte) (int, error) {
	if _, err := s.a.Err.Write(s.a.Secrets().Bytes(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// openTenant opens a tenant's store and wires an engine onto it.
func (s *tenants) openTenant(ctx context.Context, tenant string) (server.TenantConfig, error) {
	a, ws := s.a, s.ws
	b := &command.Program{Sys: a.Sys, Build: a.Build, Location: command.Location{Store: a.Store, Workspace: ws}, WrapProvider: a.WrapProvider, Extra: a.Extra, Serves: true, Tenant: tenant}
	b.JSON = true // no person is there to be asked
	b.Host = b.Build.NewHost(b)
	st, err := b.Open(ctx, false)
	if err != nil {
		return server.TenantConfig{}, err
	}
	if _, err := b.Enter(ctx, ws); err != nil {
		return server.TenantConfig{}, errors.Join(err, st.Close())
	}
	views := view.NewFollower(st)
	hub, err := hubs.New(ctx, st, hubs.Options{Snapshot: read.Snapshot(st, views)})
	if err != nil {
		return server.TenantConfig{}, errors.Join(err, st.Close())
	}
	r, err := b.Runtime(st, hub.Show)
	if err != nil {
		return server.TenantConfig{}, errors.Join(err, st.Close())
	}
	w := r.Workspaces.(*host.Workspaces)
	w.WorkIn(ws, s.roots)
	s.mu.Lock()
	s.open = append(s.open, w)
	s.mu.Unlock()
	t := server.TenantConfig{Close: r.Close, Templates: func() (*template.Catalog, error) { return a.Environment().Templates(ws) }, Runtime: &app.Runtime{Store: st, Engine: r.Engine, Attachable: r.Attachable, Workspaces: w, Doctor: b.Doctor,
		Reads: read.New(st, hub, views)}}
	b.Performs(t.Runtime)
	if db, ok := st.(store.Admin); ok {
		t.Retain = (&storage.Retainer{DB: db, Now: a.Now}).Round
	}
	return t, nil
}

package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/config/template"
	"github.com/belay-run/belay/internal/view"
)

// TenantConfig is what a tenant has.
type TenantConfig struct {
	*app.Runtime                                                 // without scheduler, recorder and clock, which are the server's; the server runs the hub of its reads
	Retain       func(ctx context.Context) (app.Retained, error) // a round of retention, called by one goroutine; nil: it keeps everything
	Templates    func() (*template.Catalog, error)               // those of its workspace; nil: there are none
	Close        func() error
}

// dispatcher runs a tenant's sessions that have something to do.
type dispatcher interface {
	app.Scheduler
	Loop(ctx, work context.Context, hold <-chan struct{})
	Wait()
	Sessions() []belay.SessionID
	Counts() (ready, running, asleep int, oldest time.Duration)
}

// tenant is a tenant that is in use.
type tenant struct {
	*app.Runtime
	name   string
	drives dispatcher
	audit  *auditor
	log    *slog.Logger
	config TenantConfig
	stop   context.CancelFunc // of the loop
	wg     sync.WaitGroup
}

// tenant is a tenant, opened with the first request of it.
func (s *Server) tenant(ctx context.Context, name string) (*tenant, error) {
	if err := auth.CheckTenant(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tenants[name]; t != nil {
		return t, nil
	}
	if s.draining() {
		return nil, belay.Errorf(belay.CodeDraining, "the server is about to end").WithHint("repeat the request when it is back")
	}
	c, err := s.c.Open(context.WithoutCancel(ctx), name)
	if err != nil {
		return nil, err
	}
	log := s.c.Log.With("tenant", name)
	t := &tenant{name: name, log: log, config: c, audit: newAuditor(c.Store, s.c.Now, log)}
	t.Runtime = c.Runtime
	t.drives = t.Engine.NewDispatcher(s.slots, s.c.PerTenant, t.Drive, log)
	t.Drives, t.Recorder, t.Now, t.Tokens = t.drives, t.audit, s.c.Now, s.c.Tokens
	loop, stop := context.WithCancel(s.life)
	t.stop = stop
	t.wg.Go(func() { t.audit.run(s.life) })
	t.wg.Go(func() { t.drives.Loop(loop, s.work, s.hold) })
	t.wg.Go(func() {
		if err := c.Reads.Hub.Run(loop); err != nil && loop.Err() == nil {
			t.log.Error("streams", "error", err.Error())
		}
	})
	t.wg.Go(func() { t.keepUp(loop, c.Reads.Views) })
	t.wg.Go(func() { t.keepUp(loop, c.Reads.Words) })
	t.wg.Go(func() { t.keepUp(loop, c.Reads.Sums) })
	t.wg.Go(func() { t.warn(loop, "channels", t.DisconnectStale(loop)) })
	t.wg.Go(func() { t.retain(loop) })
	t.wg.Go(func() { t.watchAgents(loop) })
	c.Reads.Given = func(ctx context.Context, kind string, data []byte) { t.warn(ctx, "channel", t.Given(ctx, kind, data)) }
	s.tenants[name] = t
	return t, nil
}

// caller is the account that sent a request, and its tenant.
func (s *Server) caller(r *http.Request) (*tenant, auth.Principal, error) {
	p, _ := auth.From(r.Context())
	t, err := s.tenant(r.Context(), p.Tenant)
	return t, p, err
}

// viewsAgain is how long a view isn't followed after the store has refused;
// reads bring it up meanwhile.
const viewsAgain = 5 * time.Second

// keepUp keeps a view up until ctx ends.
func (t *tenant) keepUp(ctx context.Context, view *view.Follower) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		if err := view.Run(ctx); err != nil && ctx.Err() == nil {
			t.log.Error("views", "error", err.Error())
		}
		again.Reset(viewsAgain)
	}
}

// warn logs an error, unless the context has ended.
func (t *tenant) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		t.log.Warn(what, "error", err.Error())
	}
}

// follows answers a stream that a channel follows.
func (t *tenant) follows(w http.ResponseWriter, r *http.Request, id string, stream http.HandlerFunc) {
	p, _ := auth.From(r.Context())
	ctx, err := (&app.Call{Runtime: t.Runtime, By: p, Remote: true}).Follow(r.Context(), id)
	if err != nil {
		input.WriteProblem(w, r, err)
		return
	}
	defer func() {
		ctx := context.WithoutCancel(r.Context())
		t.warn(ctx, "channel", t.Unfollow(ctx, id))
	}()
	stream(w, r.WithContext(ctx))
}

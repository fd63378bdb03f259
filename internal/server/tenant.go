package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/view"
)

// TenantConfig is what a tenant has: a store and what drives its sessions.
type TenantConfig struct {
	Store      store.Store
	Engine     *engine.Engine
	Attachable func(belay.ProcessID) (tool.Attachable, bool) // a program in the background of this process
	Workspaces app.Workspaces
	Reads      *read.Reads                                 // its hub is run by the server
	Retain     func(ctx context.Context) (Retained, error) // a round of retention, called by one goroutine; nil: it keeps everything
	Close      func() error
}

// tenant is a tenant that is in use.
type tenant struct {
	app.Runtime
	name   string
	drives *Dispatcher
	audit  *auditor
	log    *slog.Logger
	config TenantConfig
	stop   context.CancelFunc // of the loop
	wg     sync.WaitGroup
}

// drive runs a session until it rests: it claims it, settles how it uses its
// workspace, and gives it back.
func (t *tenant) drive(ctx context.Context, id belay.SessionID) (err error) {
	epoch, release, err := t.Engine.Own(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := t.Engine.Settle(ctx, id); err != nil {
		return err
	}
	s, err := t.Session(ctx, id)
	if err != nil {
		return err
	}
	if s.Session == "" { // refused commands of a session that never was
		return nil
	}
	if err := t.claimWriter(ctx, s, epoch); err != nil {
		return err
	}
	return t.Engine.Session(ctx, id, func([]store.LaneRow) bool { return t.programsWait(context.WithoutCancel(ctx), s.Session) })
}

// programsWait reports whether a turn that waits for an answer has programs in
// the background: they end with the drive, so it continues. It costs a place to
// run.
func (t *tenant) programsWait(ctx context.Context, id belay.SessionID) bool {
	s, err := t.Session(ctx, id)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(s.Threads, func(id belay.ThreadID) bool {
		th, err := t.Thread(ctx, id)
		return err == nil && th.Turn != nil && slices.ContainsFunc(th.Procs, func(p thread.Proc) bool { return p.Left && !p.Over })
	})
}

// claimWriter makes the session its workspace's writer, if its rules allow changes
// and there is no other writer; its threads know before they are driven.
func (t *tenant) claimWriter(ctx context.Context, s *session.State, epoch int64) error {
	var more []policy.Grant
	for _, th := range s.Threads {
		state, err := t.Thread(ctx, th)
		if err != nil {
			return err
		}
		more = append(more, state.Grants...)
	}
	changes, err := t.Workspaces.MayChange(ctx, s, more)
	if err != nil {
		return err
	}
	var use belay.WorkspaceUse
	if changes {
		err := t.Store.ClaimWriter(ctx, s.Session, epoch, t.Workspaces.Root(s.Workspace), s.Settings.Share)
		other, taken := errors.AsType[*store.WriterError](err)
		switch {
		case taken:
			use = belay.WorkspaceUse{Use: belay.UseReader, Writer: other.Writer.Session, Path: other.Writer.Path}
		case err != nil:
			return err
		case s.Settings.Share:
			use.Use = belay.UseShared
		default:
			use.Use = belay.UseWriter
		}
	}
	if use == s.Use {
		return nil
	}
	order := belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: "runtime", Time: t.Now().UTC(),
		Session: s.Session, Stream: s.Session.Stream(), Command: belay.UseWorkspace{Use: &use}}
	if err := t.Store.Enqueue(ctx, order); err != nil {
		return err
	}
	return t.Engine.Settle(ctx, s.Session)
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
	t := &tenant{name: name, log: log, config: c, audit: newAuditor(c.Store, s.c.Now, log), drives: newDrives(c.Store, s.slots, s.c.PerTenant, s.c.Now, log)}
	t.Runtime = app.Runtime{Store: c.Store, Engine: c.Engine, Workspaces: c.Workspaces, Reads: c.Reads, Drives: t.drives, Recorder: t.audit, Now: s.c.Now}
	t.drives.run, t.drives.busy = t.drive, c.Engine.HasPendingSubmit
	loop, stop := context.WithCancel(s.life)
	t.stop = stop
	t.wg.Go(func() { t.audit.run(s.life) })
	t.wg.Go(func() { t.drives.loop(loop, s.work, s.hold) })
	t.wg.Go(func() {
		if err := c.Reads.Hub.Run(loop); err != nil && loop.Err() == nil {
			t.log.Error("streams", "error", err.Error())
		}
	})
	t.wg.Go(func() { t.keepUp(loop, c.Reads.Views) })
	t.wg.Go(func() { t.keepUp(loop, c.Reads.Words) })
	t.wg.Go(func() { t.warn(loop, "channels", t.DisconnectStale(loop)) })
	t.wg.Go(func() { t.retain(loop) })
	c.Reads.Given = func(ctx context.Context, kind string, data []byte) { t.warn(ctx, "channel", t.Given(ctx, kind, data)) }
	s.tenants[name] = t
	return t, nil
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
	ctx, err := (&app.Call{Runtime: &t.Runtime, By: p, Remote: true}).Follow(r.Context(), id)
	if err != nil {
		problem.Write(w, r, err)
		return
	}
	defer func() {
		ctx := context.WithoutCancel(r.Context())
		t.warn(ctx, "channel", t.Unfollow(ctx, id))
	}()
	stream(w, r.WithContext(ctx))
}

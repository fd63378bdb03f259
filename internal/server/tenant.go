package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/simulate"
	"github.com/belay-run/belay/internal/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// SettingsInput are what a caller may set for a session's turns; what is empty stays
// what it is, or becomes what the server's settings say.
type SettingsInput struct {
	Mode       string   `json:"mode,omitempty" jsonschema:"how far it may go without asking: default, plan, accept_edits, auto, on_request, on_failure, untrusted, never, bypass"`
	Allow      []string `json:"allow,omitempty" jsonschema:"tools that need no question in this session"`
	Tools      string   `json:"tools,omitempty" jsonschema:"which tools there are: sets, group:NAME, names, separated by commas"`
	Provider   string   `json:"provider,omitempty" jsonschema:"who serves the model"`
	Model      string   `json:"model,omitempty" jsonschema:"the model"`
	Fallback   string   `json:"fallback,omitempty" jsonschema:"who is asked when the model gives no answer: PROVIDER/MODEL, separated by commas"`
	MaxSteps   string   `json:"maxSteps,omitempty" jsonschema:"steps of a turn; 0 is no limit"`
	MaxTime    string   `json:"maxTime,omitempty" jsonschema:"active time of a turn, such as 30m"`
	MaxCalls   string   `json:"maxCalls,omitempty" jsonschema:"tool calls of a turn; 0 is no limit"`
	Completion string   `json:"completion,omitempty" jsonschema:"what ends a turn well: required or conversational"`
	Effort     string   `json:"effort,omitempty" jsonschema:"how much the model reasons: low, medium, high"`
	AskTimeout string   `json:"askTimeout,omitempty" jsonschema:"how long a question waits before it is denied"`
	Share      bool     `json:"share,omitempty" jsonschema:"write also where another session does"`
}

// Wiring is what the server asks of the program that holds it: everything that
// depends on files, settings and tools of a tenant. Its methods may be called at
// the same time.
type Wiring interface {
	// Workspace is the real path of a folder to work on; empty is the server's
	// own. Folders outside of those that the server was given are refused.
	Workspace(ctx context.Context, dir string) (string, error)
	// Settings are a session's settings: have with the choices over them, or,
	// when have is nil, those of a new session in a workspace.
	Settings(ctx context.Context, workspace string, have *belay.Settings, c SettingsInput) (belay.Settings, error)
	// Rules keeps, as content, what a turn under these settings is decided by.
	Rules(ctx context.Context, by, workspace string, s belay.Settings) (belay.Ref, error)
	// MayChange reports whether a session's rules allow changes of its workspace,
	// and makes the workspace's tools known. more are allowances given by answers.
	MayChange(ctx context.Context, s *session.State, more []policy.Grant) (bool, error)
	// Tools are the tools of a workspace under the settings.
	Tools(ctx context.Context, workspace string, s belay.Settings) ([]belay.ToolSpec, error)
	// Explain returns the verdict of a workspace's current rules on a call, and
	// notes on it. Nothing is recorded.
	Explain(ctx context.Context, workspace string, s belay.Settings, q Question) (simulate.Explanation, []string, error)
	// Root is where claims of a workspace are made: its repository, or itself.
	Root(workspace string) string
	// Clean takes registered secrets out of a text.
	Clean(text string) string
}

// Question is a hypothetical call, as evaluate_permission asks about it.
type Question struct {
	Tool   string
	Args   json.RawMessage // an object
	Grants []policy.Grant
	Taint  []policy.Taint
	Use    belay.WorkspaceUse
}

// TenantConfig is what a tenant has: a store and what drives its sessions.
type TenantConfig struct {
	Store  store.Store
	Engine *engine.Engine
	Wiring Wiring
	Reads  *read.Reads                                 // its hub is run by the server
	Retain func(ctx context.Context) (Retained, error) // a round of retention, called by one goroutine; nil: it keeps everything
	Close  func() error
}

// tenant is a house that is in use.
type tenant struct {
	TenantConfig
	name   string
	drives *Dispatcher
	audit  *auditor
	peers  peers
	now    func() time.Time
	log    *slog.Logger
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
	s, err := t.session(ctx, id)
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
	s, err := t.session(ctx, id)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(s.Threads, func(id belay.ThreadID) bool {
		th, err := t.thread(ctx, id)
		return err == nil && th.Turn != nil && slices.ContainsFunc(th.Procs, func(p thread.Proc) bool { return p.Left && !p.Over })
	})
}

// wakeSession makes a session run soon if it has something to do, as far as its lanes
// tell.
func (t *tenant) wakeSession(ctx context.Context, id belay.SessionID, priority int) {
	rows, err := t.Store.Lanes(ctx, id)
	if err == nil && !slices.ContainsFunc(rows, func(r store.LaneRow) bool { return r.Runnable || r.Inbox > 0 }) {
		t.drives.applyLanes(rows)
		return
	}
	t.drives.enqueue(id, priority)
}

// claimWriter makes the session its workspace's writer, if its rules allow changes
// and there is no other writer; its threads know before they are driven.
func (t *tenant) claimWriter(ctx context.Context, s *session.State, epoch int64) error {
	var more []policy.Grant
	for _, th := range s.Threads {
		state, err := t.thread(ctx, th)
		if err != nil {
			return err
		}
		more = append(more, state.Grants...)
	}
	changes, err := t.Wiring.MayChange(ctx, s, more)
	if err != nil {
		return err
	}
	var use belay.WorkspaceUse
	if changes {
		err := t.Store.ClaimWriter(ctx, s.Session, epoch, t.Wiring.Root(s.Workspace), s.Settings.Share)
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
	order := belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: "runtime", Time: t.now().UTC(),
		Session: s.Session, Stream: s.Session.Stream(), Command: belay.UseWorkspace{Use: &use}}
	if err := t.Store.Enqueue(ctx, order); err != nil {
		return err
	}
	return t.Engine.Settle(ctx, s.Session)
}

// session folds a session; its Session is empty when there is none.
func (t *tenant) session(ctx context.Context, id belay.SessionID) (*session.State, error) {
	d, _, _, err := engine.Load(ctx, t.Store, id.Stream())
	if err != nil {
		return nil, err
	}
	return d.(*session.Decider).State(), nil
}

// seen is session for one that gets many commands.
func (t *tenant) seen(ctx context.Context, id belay.SessionID) (s *session.State, err error) {
	err = t.Engine.Look(ctx, id, id.Stream(), func(d core.Decider) { s = d.(*session.Decider).State().Copy() })
	return s, err
}

func (t *tenant) thread(ctx context.Context, id belay.ThreadID) (*thread.State, error) {
	d, _, _, err := engine.Load(ctx, t.Store, id.Stream())
	if err != nil {
		return nil, err
	}
	return d.(*thread.Decider).State(), nil
}

// content is a text as facts hold it: without secrets, in a blob when it is long.
func (t *tenant) content(ctx context.Context, text string) (belay.Content, error) {
	clean := t.Wiring.Clean(text)
	if len(clean) <= maxInline {
		return belay.Content{Text: clean}, nil
	}
	ref, err := t.Store.Put(ctx, []byte(clean), "text/plain")
	return belay.Content{Text: cut(clean, 200), Ref: &ref}, err
}

// maxInline is how much of a text a fact holds itself, in bytes.
const maxInline = 4 << 10

// rulesOf are the rules that a turn of a thread was begun under last.
func (t *tenant) rulesOf(ctx context.Context, ref belay.Ref) (*thread.Rules, error) {
	raw, err := t.Store.Get(ctx, ref.Digest)
	if err != nil {
		return nil, err
	}
	var r thread.Rules
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, belay.Errorf(belay.CodeRequires, "the rules can't be read").At(string(ref.Digest)).Wrap(err)
	}
	return &r, nil
}

// tenant is the house of a tenant, opened with the first request of it.
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
	house, err := s.c.Open(context.WithoutCancel(ctx), name)
	if err != nil {
		return nil, err
	}
	t := &tenant{TenantConfig: house, name: name, now: s.c.Now, log: s.c.Log.With("tenant", name)}
	t.audit = newAuditor(house.Store, t.now, t.log)
	t.drives = newDrives(house.Store, s.slots, s.c.PerTenant, s.c.Now, t.log)
	t.drives.run, t.drives.busy = t.drive, house.Engine.HasPendingSubmit
	loop, stop := context.WithCancel(s.life)
	t.stop = stop
	t.wg.Go(func() { t.audit.run(s.life) })
	t.wg.Go(func() { t.drives.loop(loop, s.work, s.hold) })
	t.wg.Go(func() {
		if err := house.Reads.Hub.Run(loop); err != nil && loop.Err() == nil {
			t.log.Error("streams", "error", err.Error())
		}
	})
	t.wg.Go(func() { t.keepUp(loop, house.Reads.Views) })
	t.wg.Go(func() { t.keepUp(loop, house.Reads.Words) })
	t.wg.Go(func() { t.forget(loop) })
	t.wg.Go(func() { t.retain(loop) })
	house.Reads.Given = t.given
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

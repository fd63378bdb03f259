// Package host is what one process has of a store: the workspaces it works in, with
// their settings, rules and tools, and the engine wired onto the store. It promises
// that terminal and server read the same files by the same code, and that what a
// process was told once counts until it is read again.
package host

import (
	"cmp"
	"context"
	"errors"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/providers"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/mcp"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/workspace/git"
	"slices"
	"sync"
	"time"
)

// Config is what a Host is made of.
type Config struct {
	Env         config.Env
	Now         func() time.Time
	Principal   string                                       // the person who runs this process
	Serves      bool                                         // it is a tenant of a server: it works in many workspaces
	Interactive bool                                         // a person can be asked
	Tools       func(*config.Workspace) ([]tool.Tool, error) // of a workspace, besides those that are declared; of none: all that there can be
	Commands    []app.Command                                // that calls of models may perform
	Models      *providers.Providers
	Shell       func() *belay.Shell // of new sessions

	StoreDir  func() (string, error)
	HasStore  func(dir string) bool                                                 // reports whether a folder holds a store
	OpenStore func(ctx context.Context, dir string, make bool) (store.Store, error) // one that need not be made may be opened to be read only
	Say       func([]config.Ignored)                                                // prints what doesn't count in files of a workspace

	Boundary func() thread.Boundary // what this machine can confine programs with
	Memory   func() int64           // of this machine, in bytes; 0: nobody knows
	Confine  effect.Confine
	Inspect  effect.Inspect
	Check    effect.Check
	Keeper   history.Snapshots
	Git      git.Git
	Keepable func(ctx context.Context, workspace string) error // refuses a workspace that can't be kept
	Point    func(kind string)                                 // passed to the engine; for crash tests
}

// Host is the process's side of a store.
type Host struct {
	c Config

	mu       sync.Mutex
	places   places             // the workspaces that were read: use At
	here     *app.Place         // the one that was entered last: use Current
	opened   store.Store        // the open store
	perform  *effect.Performers // of the runtime
	runtime  *app.Runtime       // that calls of models are performed by: use Performs
	bookMu   sync.Mutex
	trusted  *config.TrustBook // as it was read: use book
	logins   logins            // to MCP servers, that wait
	learning chan struct{}     // holds one token while MCP servers are looked at
	tried    trials            // of MCP servers
	system   sync.Mutex        // while facts about agents are appended: one of a process may at a time
	servers  *mcp.Pool
	origin   map[string]string // of worktrees: the workspace they were made of
	hosts    config.Hosts
}

// places are the workspaces that a process used last. A workspace that it doesn't keep
// is read again when it is used.
type places = lru.Part[string, *app.Place]

// maxPlaces bounds them.
const maxPlaces = 64

func newPlaces() places { return lru.Of[string, *app.Place](lru.New(maxPlaces)) }

// New makes a host.
func New(c Config) *Host {
	h := &Host{c: c, places: newPlaces(), learning: make(chan struct{}, 1), servers: &mcp.Pool{Environ: c.Env.Vars}}
	h.servers.Grants = h.grants()
	h.servers.Seen = func(s *manifest.Server, defs []mcp.Definition) {
		h.pin(context.Background(), s, defs) //nolint:errcheck // the call holds its tool against the accepted one itself
	}
	return h
}

// Models are the providers of models, and the catalogue.
func (h *Host) Models() *providers.Providers { return h.c.Models }

// Keeper keeps whole workspaces as they are.
func (h *Host) Keeper() history.Snapshots { return h.c.Keeper }

// Input is what a workspace is read with.
func (h *Host) Input(ws string) config.Input {
	var specs []belay.ToolSpec
	if all, err := h.c.Tools(nil); err == nil {
		for _, t := range all {
			specs = append(specs, t.Spec())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return config.Input{
		Env: h.c.Env, Workspace: ws, Origin: h.origin[ws], Tools: specs, Agents: builtIn(), Secrets: h.c.Models.Secrets, Hosts: &h.hosts, Now: h.c.Now, Trust: h.book, Kept: h.kept,
		Usable: func(w *config.Workspace, s belay.Settings) error {
			_, err := h.c.Models.Provider(w, s)
			return err
		},
		Interactive: h.c.Interactive, Shell: h.c.Shell(), Flags: !h.c.Serves,
	}
}

// furnish makes the tools of a workspace.
func (h *Host) furnish(ctx context.Context, w *config.Workspace) (*app.Place, error) {
	all, err := w.Commands()
	if err != nil {
		return nil, err
	}
	own, err := h.c.Tools(w)
	if err != nil {
		return nil, err
	}
	return h.equip(ctx, &app.Place{Workspace: w, Own: slices.Concat(own, declaredTools(all, h.c.Env.Vars))})
}

// equip adds the tools of MCP servers.
func (h *Host) equip(ctx context.Context, p *app.Place) (*app.Place, error) {
	more, err := h.offered(ctx, p.Workspace, p.Own)
	if err != nil || p.Tools != nil && len(more) == 0 && len(p.Tools.Specs()) == len(p.Own) {
		return p, err // a schema takes its time to read
	}
	var specs []belay.ToolSpec
	for _, t := range more {
		specs = append(specs, t.Spec())
	}
	p.Workspace = p.With(specs)
	p.Tools, err = tool.NewSet(slices.Concat(p.Own, more)...)
	return p, err
}

// read returns a workspace as it was read before.
func (h *Host) read(ws string) (*app.Place, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.places.Get(ws)
}

// At reads a workspace, unless it is one of those that were used last: a run is
// decided by what was there.
func (h *Host) At(ctx context.Context, ws string) (*app.Place, error) {
	if p, ok := h.read(ws); ok {
		return p, nil
	}
	p, err := h.furnish(ctx, config.Resolve(ctx, h.Input(ws)))
	if err == nil {
		h.keep(ws, p)
	}
	return p, err
}

func (h *Host) keep(ws string, p *app.Place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.places.Put(ws, p, 1)
	if mb, err := p.CacheMB(); err == nil { // else whoever needs the settings meets the error
		h.c.Models.Cache.Resize(mb << 20)
	}
}

// Again reads a workspace's settings, rules and MCP servers again, and what is trusted.
// Its other tools and its providers stay what they were.
func (h *Host) Again(ctx context.Context, ws string) (*app.Place, error) {
	h.forgetTrust()
	p, ok := h.read(ws)
	if !ok {
		return h.At(ctx, ws)
	}
	p, err := h.equip(ctx, &app.Place{Workspace: p.Again(ctx, h.Input(ws)), Tools: p.Tools, Own: p.Own})
	if err == nil {
		h.keep(ws, p)
	}
	return p, err
}

// Enter makes a workspace the one that this process works in, and says which files
// of tools are ignored.
func (h *Host) Enter(ctx context.Context, ws string) (*app.Place, error) {
	p, err := h.At(ctx, ws)
	if err != nil {
		return nil, err
	}
	h.c.Say(p.IgnoredTools())
	h.settle(p)
	return p, nil
}

func (h *Host) settle(p *app.Place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.here = p
}

// Current is the workspace that was entered last; nil: none was.
func (h *Host) Current() *app.Place {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.here
}

// toolsIn are the tools of a workspace; nil, if it can't be read.
func (h *Host) toolsIn(ctx context.Context, ws string) *tool.Set {
	p, err := h.At(ctx, ws)
	if err != nil {
		return nil
	}
	return p.Tools
}

// TrustAsOrigin records that a workspace is a worktree of another: what is trusted
// there is trusted here, as long as its content is the same.
func (h *Host) TrustAsOrigin(worktree, ws string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.origin == nil {
		h.origin = map[string]string{}
	}
	h.origin[worktree] = ws
}

// book is what is trusted in the store, read once per process; nothing, if there
// is no store yet.
func (h *Host) book(ctx context.Context) (*config.TrustBook, error) {
	h.bookMu.Lock()
	defer h.bookMu.Unlock()
	if h.trusted != nil {
		return h.trusted, nil
	}
	st, release, err := h.borrow(ctx)
	if st == nil || err != nil {
		return nil, err
	}
	defer release()
	h.trusted, err = config.ReadTrust(ctx, st)
	return h.trusted, err
}

// borrow is the open store, or one that is open until release; nil: there is none yet.
func (h *Host) borrow(ctx context.Context) (st store.Store, release func(), err error) {
	if h.opened != nil {
		return h.opened, func() {}, nil
	}
	dir, err := h.c.StoreDir()
	if err != nil || !h.c.HasStore(dir) {
		return nil, nil, err
	}
	if st, err = h.Open(ctx, false); err != nil {
		return nil, nil, err
	}
	h.opened = nil
	return st, func() { st.Close() }, nil //nolint:errcheck // it was only read
}

// kept reads content of the store.
func (h *Host) kept(ctx context.Context, d belay.Digest) ([]byte, error) {
	st, release, err := h.borrow(ctx)
	if st == nil || err != nil {
		return nil, cmp.Or(err, store.ErrNotFound)
	}
	defer release()
	return st.Get(ctx, d)
}

func (h *Host) forgetTrust() {
	h.bookMu.Lock()
	defer h.bookMu.Unlock()
	h.trusted = nil
}

// Layers lays the settings of a new session over each other, and says what of
// files doesn't count.
func (h *Host) Layers(p *app.Place, g config.Given) (*config.Layers, error) {
	l, err := p.Layers(g)
	if err == nil {
		h.c.Say(l.Ignored())
	}
	return l, err
}

// Fresh are the settings of a new session.
func (h *Host) Fresh(p *app.Place, g config.Given) (config.Settings, error) {
	l, err := h.Layers(p, g)
	if err != nil {
		return config.Settings{}, err
	}
	s, err := l.Settings()
	if err == nil {
		err = h.priced(p, s)
	}
	if s.Mode == belay.ModeBypass || s.Boundary != "" {
		h.c.Say(p.IgnoredRules())
	}
	return s, err
}

// Over are the settings of a session that there is, with those given laid over them.
func (h *Host) Over(p *app.Place, have belay.Settings, g config.Given) (config.Settings, error) {
	s, err := p.Over(have, g)
	if err == nil && len(g) > 0 { // else it is what the session has been told already
		err = h.priced(p, s)
	}
	return s, err
}

// RulesOf are the rules that count in a workspace; it says which don't.
func (h *Host) RulesOf(w *config.Workspace) (*config.Rules, error) {
	h.c.Say(w.IgnoredRules())
	return w.Rules()
}

// settingError names the part of a request that an error about a setting is about.
func settingError(err error) error {
	if e, ok := errors.AsType[*config.SettingError](err); ok {
		return input.At("settings."+e.Setting, e.Err)
	}
	return err
}

// Package engine drives streams: it appends what deciders decide, performs what
// they want, and hands the outcome back as facts. It promises that nothing is
// performed before the facts that announce it are durable, that one goroutine
// owns a stream's state, and that when a call returns its goroutines are gone.
//
// Drive is the loop of one stream; Session runs the streams of a session until
// they rest; Submit brings a command to whoever owns the session.
package engine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// Lease is how long a session stays owned without a sign of life.
const Lease = 15 * time.Second

// Config is what an engine is made of. Store, Owner and Tools must be set.
type Config struct {
	Store    store.Run
	Owner    store.Owner
	Provider func(ctx context.Context, workspace string, s belay.Settings) (model.Provider, error) // that these settings name in a workspace
	Tools    *tool.Set
	ToolsIn  func(workspace string) *tool.Set // those of a workspace; nil is Tools everywhere
	Secrets  *secret.Scrubber                 // values that never reach the store; nil knows none
	ArgsKey  []byte                           // key of the digests that distinguish secrets in arguments; none: only their names do
	Now      func() time.Time                 // nil is time.Now
	Live     func(event.Delta)                // receives text between facts; may be nil. Must return at once
	Recorded Recorded                         // receives what this engine has recorded; may be nil. Must return at once
	Point    func(kind string)                // called before and after every append and effect; for crash tests
	Check    Check                            // asks checkers about calls; nil can't, which is what their failure means
	Stall    time.Duration                    // how long an effect whose time is up may hold its thread; 0 is DefaultStall
	Keeper   history.Snapshots                // keeps whole workspaces; nil can't
	Confine  Confine                          // confines what calls start; nil can't, which refuses what must be confined
	Inspect  Inspect                          // looks at the files that they leave; may be nil

	// Price returns the cost of an answer in millionths of a US dollar; false:
	// unknown.
	Price func(s belay.Settings, u belay.Usage) (int64, bool)

	// Counts is how a model counts tokens; nil: requests aren't counted.
	Counts func(s belay.Settings) tokens.Profile
}

// Check asks a checker about a call of a workspace. It returns soon after ctx
// ends; any error means that the checker gave no verdict.
type Check func(ctx context.Context, c policy.Checker, workspace string, question []byte) (policy.Answer, error)

// Recorded receives facts that are durable now: of one append, in their order,
// without a gap between their positions, the last of which is end. Their
// payloads are shared and must not be changed.
type Recorded func(end store.Position, facts []event.Envelope)

// Engine drives sessions of one store.
type Engine struct {
	c     Config
	convs *history.Cache

	corrections tokens.Corrections // of how models count, from what they reported

	stuck atomic.Int64 // effects that were given up

	mu      sync.Mutex
	drives  map[belay.StreamID]*drive // running drives
	owned   map[belay.SessionID]*ownership
	roots   map[string]*os.Root
	kept    rulesCache
	keeper  *leaseRenewer // while a session runs
	leased  leased
	left    []backgroundProcess // processes that outlived their calls, the oldest first
	resting stateCache
	coming  map[belay.SessionID]int // commands that Submit is about to bring
}

// New checks the configuration.
func New(c Config) (*Engine, error) {
	if c.Store == nil || c.Tools == nil || c.Owner.ID == "" {
		return nil, fmt.Errorf("engine: store, tools and owner must be set")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Secrets == nil {
		c.Secrets = &secret.Scrubber{}
	}
	if c.Live == nil {
		c.Live = func(event.Delta) {}
	}
	if c.Point == nil {
		c.Point = func(string) {}
	}
	return &Engine{c: c, convs: history.NewCache(c.Store), drives: map[belay.StreamID]*drive{},
		owned: map[belay.SessionID]*ownership{}, roots: map[string]*os.Root{}, kept: newKept(), resting: newResting(), coming: map[belay.SessionID]int{}}, nil
}

// tools are the tools of a turn's workspace.
func (e *Engine) tools(r *thread.Rules) *tool.Set {
	if e.c.ToolsIn != nil {
		if set := e.c.ToolsIn(r.Workspace); set != nil {
			return set
		}
	}
	return e.c.Tools
}

// Close releases the workspaces. It must not be called while sessions run.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var first error
	for dir, r := range e.roots {
		if err := r.Close(); err != nil && first == nil {
			first = err
		}
		delete(e.roots, dir)
	}
	return first
}

// root is the workspace as the only door to its files.
func (e *Engine) root(dir string) (*os.Root, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.roots[dir]; r != nil {
		return r, nil
	}
	r, err := os.OpenRoot(dir)
	if err == nil {
		e.roots[dir] = r
	}
	return r, err
}

// NewDecider is the empty decider of a stream's kind, and the version of its cached state.
func NewDecider(s belay.StreamID) (core.Decider, string, error) {
	switch s.Kind() {
	case belay.KindSession:
		return session.New(s), session.Version, nil
	case belay.KindThread:
		return thread.New(s), thread.Version, nil
	case belay.KindTask:
		return task.New(s), task.Version, nil
	}
	return nil, "", belay.Errorf(belay.CodeRequires, "this build has no decider for streams of kind %q", s.Kind()).At(string(s))
}

// Load folds a stream: the cached state and what came after it.
func Load(ctx context.Context, st store.Run, s belay.StreamID) (core.Decider, int64, time.Time, error) {
	at, err := load(ctx, st, s)
	return at.d, at.seq, at.last, err
}

// load is a stream as its facts say it is.
func load(ctx context.Context, st store.Run, s belay.StreamID) (at streamState, err error) {
	d, version, err := NewDecider(s)
	if err != nil {
		return streamState{}, err
	}
	var seq, saved int64
	cached, err := st.LoadState(ctx, s, version)
	if err != nil {
		return streamState{}, err
	}
	if cached != nil {
		if d.Load(cached.Data) == nil {
			seq, saved = cached.Seq, cached.Seq
		} else if d, _, err = NewDecider(s); err != nil { // an unreadable cache is no cache
			return streamState{}, err
		}
	}
	var last time.Time
	for ev, err := range st.Read(ctx, s, max(seq-1, 0)) {
		if err != nil {
			return streamState{}, err
		}
		if ev.Requires > requiresKnown {
			return streamState{}, belay.Errorf(belay.CodeRequires, "event %d needs a newer belay (level %d, this one knows %d)", ev.Seq, ev.Requires, requiresKnown).
				At(string(s)).WithHint("update belay; nothing was changed")
		}
		if ev.Seq > seq+1 {
			return streamState{}, store.Damaged(store.RowName(s, seq+1), "facts are not there")
		}
		if ev.Seq > seq {
			d.Apply(ev)
		}
		seq, last = max(seq, ev.Seq), ev.Time
	}
	return streamState{d: d, vers: version, seq: seq, last: last, saved: saved}, nil
}

// requiresKnown is the newest level of Envelope.Requires this build can act on.
const requiresKnown = 1

// Package effect performs what deciders want: it asks models and checkers, runs
// tools, keeps and restores files. It promises that a call runs only if what was
// judged is still so, that content which it keeps holds no registered secret, and
// that what it started is over, or handed to another effect, when it returns.
//
// Performers is what all effects share; Of gives the performer of one stream.
package effect

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/lib/keyed"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// Config is what effects are performed with. Store and Tools must be set.
type Config struct {
	Store    store.Run
	Provider func(ctx context.Context, workspace string, s belay.Settings) (model.Provider, error) // that these settings name in a workspace
	Tools    *tool.Set
	ToolsIn  func(ctx context.Context, workspace string) *tool.Set // those of a workspace; nil is Tools everywhere
	Secrets  *secret.Scrubber                                      // values that never reach the store; nil knows none
	Cache    *lru.Cache                                            // of conversations and of chunks of texts; nil: the effects have one of their own
	ArgsKey  []byte                                                // key of the digests that distinguish secrets in arguments; none: only their names do
	Now      func() time.Time                                      // nil is time.Now
	Live     func(event.Delta)                                     // receives text between facts; may be nil. Must return at once
	Check    Check                                                 // asks checkers about calls; nil can't, which is what their failure means
	Keeper   history.Snapshots                                     // keeps whole workspaces; nil can't
	Confine  Confine                                               // confines what calls start; nil can't, which refuses what must be confined
	Inspect  Inspect                                               // looks at the files that they leave; may be nil

	// TaskPrompt is what the instructions of every sub-agent begin with.
	TaskPrompt string

	// Agent narrows rules to an agent that is kept as a file. CodeNotFound: there is none of
	// that name, and the hint names the nearest. nil knows none.
	Agent func(ctx context.Context, rules *thread.Rules, name string) error

	// Team is the team of a name that is kept as a file, with its agents in the order in which
	// they begin; nil: there is none of that name, or it is one agent. May be nil.
	Team func(ctx context.Context, parent *thread.Rules, name string) (*agentfile.Agent, []*agentfile.Part, error)

	// Command performs a command of the runtime for a call of a model, once however often
	// the call is attempted; nil can't.
	Command func(ctx context.Context, call belay.IDs, name string, body []byte) ([]byte, error)

	// Admit tells whether the agent of a turn, which is kept as a file, may work now, as a
	// pause that is admitted, paused or refused, and why. nil admits all.
	Admit func(ctx context.Context, agent string, turn belay.IDs) (p event.Pause, why string, err error)

	// Trees makes worktrees for sub-agents; nil can't.
	Trees Trees

	// Surroundings are what models are told of workspaces; nil: little.
	Surroundings Surroundings

	// Counts is how a model counts tokens; nil: no request is refused for its length.
	Counts func(s belay.Settings) tokens.Profile
}

// Check asks a checker about a call of a workspace. It returns soon after ctx
// ends; any error means that the checker gave no verdict.
type Check func(ctx context.Context, c policy.Checker, workspace string, question []byte) (policy.Answer, error)

// Performers perform the effects of one engine's streams.
type Performers struct {
	c          Config
	convs      *history.Cache
	rules      rulesCache
	background backgroundPrograms
	decide     Decide
	trees      keyed.Mutexes // by repository: its worktrees are made and removed one at a time
}

var _ engine.Performers = (*Performers)(nil)

// New checks the configuration.
func New(c Config) (*Performers, error) {
	if c.Store == nil || c.Tools == nil {
		return nil, fmt.Errorf("effect: store and tools must be set")
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
	if c.Cache == nil {
		c.Cache = lru.New(belay.DefaultCacheMB << 20)
	}
	return &Performers{c: c, convs: history.NewCache(c.Store, c.Cache), rules: rulesCache{all: map[belay.Digest]*sharedRules{}, byTools: map[belay.Digest]*sharedRules{}}}, nil
}

// Decide lets a stream that all sessions share handle a command, as
// engine.Engine.Decide does.
type Decide func(ctx context.Context, o belay.Order) (core.Decider, []event.Envelope, error)

// UseQuotas names what decides on quotas. It is called before the first effect of a
// session that has some.
func (e *Performers) UseQuotas(d Decide) { e.decide = d }

// root opens the workspace as the only door to its files; the caller closes it.
func (e *Performers) root(ctx context.Context, dir string) (*os.Root, error) {
	if err := e.ready(ctx, dir); err != nil {
		return nil, err
	}
	return files.OpenRoot(dir)
}

// tools are the tools of a workspace, as they are configured now.
func (e *Performers) tools(ctx context.Context, r *thread.Rules) *tool.Set {
	if e.c.ToolsIn != nil {
		if set := e.c.ToolsIn(ctx, r.Configured()); set != nil {
			return set
		}
	}
	return e.c.Tools
}

// Recorded continues the conversation of a thread, so that its next request reads
// nothing that this process wrote.
func (e *Performers) Recorded(ctx context.Context, s belay.StreamID, facts []event.Envelope) {
	e.convs.Feed(ctx, s, facts)
}

// Of returns the performer of a stream.
func (e *Performers) Of(session belay.SessionID, s belay.StreamID) engine.Performer {
	return &performer{e: e, session: session, stream: s}
}

// performer performs the effects of one stream.
type performer struct {
	e       *Performers
	session belay.SessionID
	stream  belay.StreamID
	pins    pinned
}

// Perform makes one attempt of an effect and returns what came of it.
func (v *performer) Perform(ctx context.Context, run *engine.Run, eff core.Effect) []core.Fact {
	return v.work(run, eff).perform(ctx)
}

package engine_test

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// config is what an engine and its performers are made of.
type config struct {
	Store    store.Run
	Owner    store.Owner
	Secrets  *secret.Scrubber
	Now      func() time.Time
	Point    func(kind string)
	Stall    time.Duration
	Provider func(ctx context.Context, workspace string, s belay.Settings) (model.Provider, error)
	Tools    *tool.Set
	ToolsIn  func(ctx context.Context, workspace string) *tool.Set
	ArgsKey  []byte
	Live     func(event.Delta)
	Check    effect.Check
	Keeper   history.Snapshots
	Confine  effect.Confine
	Inspect  effect.Inspect
	Counts   func(s belay.Settings) tokens.Profile
	Around   effect.Surroundings
	Trees    effect.Trees
	Team     team
	Hangs    func(core.Effect) bool // effects that hear nothing and never end; nil: none
	Let      chan struct{}          // closed: they end
}

// team finds the team of a name.
type team = func(context.Context, *thread.Rules, string) (*agentfile.Agent, []*agentfile.Part, error)

// system is an engine with its performers.
type system struct {
	*engine.Engine
	*effect.Performers
}

func newEngine(c config) (*system, error) {
	p, err := effect.New(effect.Config{Store: c.Store, Provider: c.Provider, Tools: c.Tools, ToolsIn: c.ToolsIn, Secrets: c.Secrets, ArgsKey: c.ArgsKey, Now: c.Now, Live: c.Live,
		Check: c.Check, Keeper: c.Keeper, Confine: c.Confine, Inspect: c.Inspect, Counts: c.Counts, Surroundings: c.Around, Trees: c.Trees, Team: c.Team})
	if err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Config{Store: c.Store, Owner: c.Owner,
		Performers: hanging{p, c.Hangs, c.Let}, Secrets: c.Secrets, Now: c.Now, Point: c.Point, Stall: c.Stall})
	if err == nil {
		p.UseQuotas(e.Decide)
	}
	return &system{e, p}, err
}

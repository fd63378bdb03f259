package effect

import (
	"context"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/tool"
)

// pinned is what a turn found when it first asked for it. A configuration that is
// read again while the turn runs counts for the next one, and for this one when
// it continues after a rest.
type pinned struct {
	mu        sync.Mutex
	turn      belay.TurnID
	tools     *tool.Set
	providers map[served]model.Provider
}

// served is what a provider is asked for by.
type served struct{ provider, base, model string }

// of forgets what another turn found. The lock is held.
func (p *pinned) of(turn belay.TurnID) {
	if p.turn != turn || p.providers == nil {
		p.turn, p.tools, p.providers = turn, nil, map[served]model.Provider{}
	}
}

// provider is who serves a turn's model, by what its workspace calls providers.
func (v *performer) provider(ctx context.Context, turn belay.TurnID, workspace string, s belay.Settings) (model.Provider, error) {
	v.pins.mu.Lock()
	defer v.pins.mu.Unlock()
	v.pins.of(turn)
	key := served{s.Provider, s.BaseURL, s.Model}
	if p := v.pins.providers[key]; p != nil {
		return p, nil
	}
	p, err := v.e.provider(ctx, workspace, s)
	if err == nil {
		v.pins.providers[key] = p
	}
	return p, err
}

// tools are the tools of a turn's workspace.
func (v *performer) tools(ctx context.Context, turn belay.TurnID, r *thread.Rules) *tool.Set {
	v.pins.mu.Lock()
	defer v.pins.mu.Unlock()
	v.pins.of(turn)
	if v.pins.tools == nil {
		v.pins.tools = v.e.tools(ctx, r)
	}
	return v.pins.tools
}

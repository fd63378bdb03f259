package app

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

// Allowed is what an agent may use at most; what of it is zero isn't limited.
type Allowed struct {
	Limits   belay.Limits  `json:"allowed,omitzero"`         // of its turn
	Memory   int64         `json:"declaredMemory,omitempty"` // bytes, as its file says
	Programs view.Programs `json:"programs,omitzero"`        // what they used, beside their limit
}

// AllowedBy is what an agent may use under rules.
func AllowedBy(r *thread.Rules, programs view.Programs) Allowed {
	return Allowed{Limits: r.Settings.Limits, Memory: r.Memory().Declared, Programs: programs}
}

// AgentWork is a turn of an agent that hasn't ended, with what it used and what it may.
type AgentWork struct {
	view.AgentTurn
	Allowed
}

// WorkOf are the turns of an agent that have begun and not ended.
func WorkOf(ctx context.Context, r *Runtime, agent string) (all []AgentWork, err error) {
	turns, err := view.TurnsOf(ctx, r.Store, agent)
	for _, t := range turns {
		th, err := r.Thread(ctx, t.Thread)
		if err != nil {
			return nil, err
		}
		w := AgentWork{AgentTurn: t}
		if th.Turn != nil {
			rules, err := r.RulesOf(ctx, th.Turn.Rules)
			if err != nil {
				return nil, err
			}
			w.Allowed = AllowedBy(rules, t.Programs)
			w.Limits = th.Turn.Limits
		}
		all = append(all, w)
	}
	return all, err
}

// LifeOf is the life of an agent, as facts tell of it: of its file, and of its runs in those
// sessions in which it ended last or works.
func LifeOf(ctx context.Context, r *Runtime, called, path string, ends []view.AgentEnd, works []AgentWork) (*story.AgentLife, error) {
	fold := story.NewLifeFold(called, path)
	sessions := []belay.SessionID{belay.SystemSession}
	for _, e := range ends {
		sessions = append(sessions, e.Session)
	}
	for _, w := range works {
		sessions = append(sessions, w.Session)
	}
	seen := map[belay.SessionID]bool{}
	for _, s := range sessions {
		if seen[s] || s == "" {
			continue
		}
		seen[s] = true
		for rec, err := range r.Store.Window(ctx, store.Window{Session: s}) {
			if err != nil {
				return nil, err
			}
			if _, file := rec.Event.Data.(event.ArtifactChanged); file == (s == belay.SystemSession) {
				fold.Apply(rec.Event)
			}
		}
	}
	return fold.Sum(), ctx.Err()
}

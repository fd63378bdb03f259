package app

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/quota"
	"github.com/belay-run/belay/internal/engine"
)

// QuotaShown is what a quota has left in its window: limit = spent + lent + left.
type QuotaShown struct {
	Of     string           `json:"of"` // tenant, user
	User   string           `json:"user,omitempty"`
	Kind   belay.BudgetKind `json:"kind"`           // cost, tokens, calls, time
	Unit   string           `json:"unit"`           // microUsd: millionths of a US dollar; tokens, calls, ms
	Per    string           `json:"per"`            // hour, day, week, month
	Zone   string           `json:"zone,omitempty"` // left out: UTC
	Action string           `json:"action"`         // block, warn
	Limit  int64            `json:"limit"`
	Spent  int64            `json:"spent"`
	Lent   int64            `json:"lent"` // to sessions, which may give some of it back
	Left   int64            `json:"left"`
	From   time.Time        `json:"from"`
	Until  time.Time        `json:"until"`
}

// QuotaState is what was counted and lent of quotas.
func (r *Runtime) QuotaState(ctx context.Context) (*quota.State, error) {
	d, _, _, err := engine.Load(ctx, r.Store, quota.Stream)
	if err != nil {
		return nil, err
	}
	return d.(*quota.Decider).State(), nil
}

// Quotas are the quotas that work has met, in the windows that they count in now.
func (r *Runtime) Quotas(ctx context.Context) ([]QuotaShown, error) {
	s, err := r.QuotaState(ctx)
	if err != nil {
		return nil, err
	}
	all := []QuotaShown{}
	for _, met := range s.Windows {
		w := quota.Current(met.Quota, r.Now())
		shown := QuotaShown{Of: w.Of, User: met.User, Kind: w.Kind, Unit: UnitOf(w.Kind), Per: w.Per, Zone: w.Zone, Action: "block", From: w.From, Until: w.Until}
		if w.Warn {
			shown.Action = "warn"
		}
		lent := s.Lent(w, met.User)
		left := s.Left(met.User, []belay.QuotaWindow{w})[0].Left
		shown.Limit, shown.Lent, shown.Left, shown.Spent = InUnit(w.Kind, w.Limit), InUnit(w.Kind, lent), InUnit(w.Kind, left), InUnit(w.Kind, w.Limit-left-lent)
		all = append(all, shown)
	}
	return all, nil
}

// UnitOf is the unit in which amounts of a kind are shown to programs.
func UnitOf(k belay.BudgetKind) string {
	switch k {
	case belay.BudgetCost:
		return "microUsd"
	case belay.BudgetTime:
		return "ms"
	}
	return string(k)
}

// InUnit is an amount of a kind in that unit.
func InUnit(k belay.BudgetKind, n int64) int64 {
	if k == belay.BudgetTime {
		return time.Duration(n).Milliseconds()
	}
	return n
}

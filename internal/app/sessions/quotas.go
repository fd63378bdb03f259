package sessions

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/core/quota"
)

// QuotasShown are the quotas that work has met.
type QuotasShown struct {
	app.Fresh
	Quotas []QuotaShown `json:"quotas"`
}

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

func quotas(ctx context.Context, c *app.Call, f app.Fresh, _ app.Query) (*QuotasShown, error) {
	return Quotas(ctx, c.Runtime, f)
}

// Quotas are the quotas that work has met, in the windows that they count in now.
func Quotas(ctx context.Context, r *app.Runtime, f app.Fresh) (*QuotasShown, error) {
	s, err := r.Quotas(ctx)
	if err != nil {
		return nil, err
	}
	out := &QuotasShown{Fresh: f, Quotas: []QuotaShown{}}
	for _, met := range s.Windows {
		w, err := quota.WindowOf(met.Quota, r.Now())
		if err != nil { // of a zone that this machine doesn't know
			w = met.QuotaWindow
		}
		shown := QuotaShown{Of: w.Of, User: met.User, Kind: w.Kind, Unit: unitOf(w.Kind), Per: w.Per, Zone: w.Zone, Action: "block", From: w.From, Until: w.Until}
		if w.Warn {
			shown.Action = "warn"
		}
		lent := s.Lent(w, met.User)
		left := s.Left(met.User, []belay.QuotaWindow{w})[0].Left
		shown.Limit, shown.Lent, shown.Left, shown.Spent = inUnit(w.Kind, w.Limit), inUnit(w.Kind, lent), inUnit(w.Kind, left), inUnit(w.Kind, w.Limit-left-lent)
		out.Quotas = append(out.Quotas, shown)
	}
	return out, nil
}

// unitOf is the unit in which amounts of a kind are shown to programs.
func unitOf(k belay.BudgetKind) string {
	switch k {
	case belay.BudgetCost:
		return "microUsd"
	case belay.BudgetTime:
		return "ms"
	}
	return string(k)
}

// inUnit is an amount of a kind in that unit.
func inUnit(k belay.BudgetKind, n int64) int64 {
	if k == belay.BudgetTime {
		return time.Duration(n).Milliseconds()
	}
	return n
}

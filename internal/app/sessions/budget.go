package sessions

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/core/budget"
	"github.com/belay-run/belay/internal/core/grant"
)

// SetBudget is what set_budget takes.
type SetBudget struct {
	Session belay.SessionID `json:"sessionId"`
	Budget  string          `json:"budget" jsonschema:"a limit such as 2usd,300calls, or a raise such as +5usd; kinds that it doesn't name stay as they are"`
}

// ChangeBudget changes what a session may spend.
func ChangeBudget(ctx context.Context, r *app.Call, in *SetBudget) (*app.Result, error) {
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	l, err := budget.Parse(in.Budget)
	if err != nil {
		return nil, input.At("budget", err)
	}
	c := belay.SetBudget{Budget: l.Amounts, Raise: l.Raise}
	if c.Spent, err = spentBefore(ctx, r, s); err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), c)
	switch belay.CodeOf(err) {
	case belay.CodeBadCommand, belay.CodeBadState:
		err = input.At("budget", err)
	}
	return told, err
}

// spentBefore is what a session without a budget has spent; of a command that gave
// it one, and is repeated, what it had spent then.
func spentBefore(ctx context.Context, r *app.Call, s *app.SessionState) (belay.Amounts, error) {
	if s.Budget.Limit == (belay.Amounts{}) {
		return r.Spent(ctx, s.Session)
	}
	if r.Key == "" {
		return belay.Amounts{}, nil
	}
	id := belay.CommandID(r.Keyed(belay.PrefixCommand))
	for ev, err := range r.Store.Read(ctx, s.Session.Stream(), 0) {
		if err != nil {
			return belay.Amounts{}, err
		}
		if p, ok := ev.Data.(event.LimitChanged); ok && ev.IDs.Request == id {
			return p.Spent, nil
		}
	}
	return belay.Amounts{}, nil
}

// BudgetShown is what a session may spend, and what it has spent.
type BudgetShown struct {
	app.Fresh
	Session belay.SessionID `json:"sessionId"`
	BudgetState
}

// BudgetState is how much of a budget there is.
type BudgetState struct {
	Limited bool          `json:"limited"` // false: there is no budget
	Kinds   []KindShown   `json:"kinds"`
	Threads []ThreadShare `json:"threads"` // that have a part of the budget, or ask for one
}

// RoutingShown is the routing_limit_summary.
type RoutingShown struct {
	read.RoutingLimits
	Budget BudgetState `json:"budgetState"`
}

// KindShown is what there is of one kind: limit = spent + reserved + left.
type KindShown struct {
	Kind     belay.BudgetKind `json:"kind"`               // cost, tokens, calls, time
	Unit     string           `json:"unit"`               // microUsd: millionths of a US dollar; tokens, calls, ms
	Limit    *int64           `json:"limit,omitempty"`    // left out: it isn't limited
	Spent    *int64           `json:"spent,omitempty"`    // left out: it isn't known
	AtLeast  bool             `json:"atLeast,omitempty"`  // more was spent than is known
	Granted  int64            `json:"granted,omitempty"`  // that threads have
	Reserved int64            `json:"reserved,omitempty"` // of it, for requests that are out
	Left     *int64           `json:"left,omitempty"`     // that can still be spent
}

// ThreadShare is what a thread has of its session's budget.
type ThreadShare struct {
	Thread   belay.ThreadID `json:"threadId"`
	Has      belay.Amounts  `json:"has"`               // of it, for requests that are out too
	Reserved belay.Amounts  `json:"reserved,omitzero"` // for requests that are out
	Asks     belay.Amounts  `json:"asks,omitzero"`     // that it waits for, at least
	Refused  bool           `json:"refused,omitempty"` // it gets nothing as things are

	spent belay.Amounts // of what it was given
}

func sessionBudget(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*BudgetShown, error) {
	id := belay.SessionID(q.ID)
	s, err := c.Session(ctx, id)
	if err == nil && s.Session == "" {
		err = app.NoSession(id)
	}
	if err != nil {
		return nil, input.At("path id", err)
	}
	b, err := Budget(ctx, c.Runtime, s)
	return &BudgetShown{f, id, b}, err
}

func routingLimits(ctx context.Context, c *app.Call, _ app.Fresh, q app.Query) (*RoutingShown, error) {
	l, err := read.OfFold(read.RoutingOf)(c.Reads, ctx, q)
	if err != nil {
		return nil, err
	}
	s, err := c.Session(ctx, l.Session)
	if err != nil {
		return nil, err
	}
	b, err := Budget(ctx, c.Runtime, s)
	return &RoutingShown{*l, b}, err
}

// Budget is what a session may spend, and what it has spent.
func Budget(ctx context.Context, r *app.Runtime, s *app.SessionState) (out BudgetState, err error) {
	row, err := r.Row(ctx, s.Session)
	if err != nil {
		return out, err
	}
	l := s.Budget
	out = BudgetState{Limited: l.Limit != belay.Amounts{}, Kinds: []KindShown{}}
	spent, all := l.Spent, row.Spent()
	if out.Threads, err = shares(ctx, r, l.Grants); err != nil {
		return out, err
	}
	var granted, reserved belay.Amounts
	for _, t := range out.Threads {
		granted, reserved, spent = granted.Add(t.Has), reserved.Add(t.Reserved), spent.Add(t.spent)
	}
	for _, k := range belay.BudgetKinds() {
		shown := KindShown{Kind: k, Unit: app.UnitOf(k)}
		in := func(a belay.Amounts) *int64 { return new(app.InUnit(k, *a.Of(k))) }
		shown.Spent, shown.Granted, shown.Reserved = in(all), *in(granted), *in(reserved)
		shown.AtLeast = k == belay.BudgetCost && row.Cost.Unpriced > 0
		switch {
		case *l.Limit.Of(k) > 0:
			shown.Limit, shown.Left, shown.Spent = in(l.Limit), in(l.Limit.Sub(spent).Sub(reserved)), in(spent)
		case shown.AtLeast && row.Cost.State() == "unknown", k == belay.BudgetTokens && row.Counts.Steps > 0 && row.Tokens == 0:
			shown.Spent, shown.AtLeast = nil, false
		}
		out.Kinds = append(out.Kinds, shown)
	}
	return out, nil
}

// shares are what threads have of grants now, and ask for.
func shares(ctx context.Context, r *app.Runtime, all grant.Book[belay.ThreadID]) ([]ThreadShare, error) {
	out := []ThreadShare{}
	for _, g := range all {
		i := slices.IndexFunc(out, func(t ThreadShare) bool { return t.Thread == g.To })
		if i < 0 {
			th, err := r.Thread(ctx, g.To)
			if err != nil {
				return nil, err
			}
			t := ThreadShare{Thread: g.To, spent: th.Purse.Spent}
			for _, o := range th.Purse.Open {
				t.Reserved = t.Reserved.Add(o.Amount)
			}
			t.Has = t.Has.Sub(t.spent)
			i, out = len(out), append(out, t)
		}
		if t := &out[i]; g.Given {
			t.Has = t.Has.Add(g.Amount)
		} else {
			t.Asks, t.Refused = t.Asks.Add(g.Least), g.Refused
		}
	}
	return out, nil
}

package sessions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

// BudgetCmd is the command "belay budget".
type BudgetCmd struct {
	Show budgetShowCmd `cmd:"" use:"getSessionBudget" default:"withargs" help:"Show what a session may spend, and what it has spent."`
	Set  budgetSetCmd  `cmd:"" use:"set_budget" help:"Change what a session may spend."`
}

type budgetShowCmd struct {
	ID string `arg:"" optional:"" help:"The session; the last one of this workspace."`
}

func (c *budgetShowCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	id, err := a.SessionID(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	s, err := app.StateOf(ctx, st, id)
	if err != nil {
		return 0, err
	}
	r := a.Reader(st)
	f, err := r.Fresh(ctx, 0)
	if err != nil {
		return 0, err
	}
	b, err := sessions.Budget(ctx, r, s)
	if err != nil {
		return 0, err
	}
	return a.Show(&sessions.BudgetShown{Fresh: f, Session: id, BudgetState: b}, func() {
		term.WriteTable(a.Out, b.Kinds, "KIND\tLIMIT\tSPENT\tGRANTED\tRESERVED\tLEFT", func(k sessions.KindShown) []any { //nolint:errcheck // nobody is left to tell
			spent := amountOf(k, k.Spent, "unknown")
			if k.AtLeast {
				spent = "at least " + spent
			}
			return []any{k.Kind, amountOf(k, k.Limit, "none"), spent, amountOf(k, &k.Granted, ""), amountOf(k, &k.Reserved, ""), amountOf(k, k.Left, "-")}
		})
		for _, t := range b.Threads {
			if t.Asks != (belay.Amounts{}) {
				fmt.Fprintf(a.Out, "%s waits for %s at least\n", t.Thread, t.Asks)
			}
		}
		if !b.Limited {
			fmt.Fprintf(a.Out, "it has no budget; belay budget set %s 5usd%s gives it one\n", id, a.StoreFlag)
		}
	})
}

// amountOf is an amount of a kind as people write it; without one it is what none says.
func amountOf(k sessions.KindShown, n *int64, none string) string {
	if n == nil {
		return none
	}
	var a belay.Amounts
	if *a.Of(k.Kind) = *n; k.Kind == belay.BudgetTime {
		a.Time = belay.Duration((time.Duration(*n) * time.Millisecond).Round(time.Second))
	}
	if a == (belay.Amounts{}) {
		return "0"
	}
	return a.String()
}

type budgetSetCmd struct {
	Args []string `arg:"" name:"[ID] BUDGET" help:"The session, or the beginning of its id (default the last of this workspace); then a limit of each kind that is named, such as 2usd,500ktok,300calls,4h, or a raise, such as +5usd."`
}

func (c *budgetSetCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	if len(c.Args) > 2 {
		return 0, belay.Errorf(belay.CodeUsage, "%d arguments; a session and a budget are the most", len(c.Args)).WithHint("belay budget set %s %s", c.Args[0], strings.Join(c.Args[1:], ","))
	}
	session, limit := "", c.Args[len(c.Args)-1]
	if len(c.Args) == 2 {
		session = c.Args[0]
	}
	id, err := a.SessionID(ctx, r.Store, session)
	if err != nil {
		return 0, err
	}
	res, err := sessions.ChangeBudget(ctx, r.Call("set_budget"), &sessions.SetBudget{Session: id, Budget: limit})
	if err != nil {
		return 0, err
	}
	s, err := app.StateOf(ctx, r.Store, id)
	if err != nil {
		return 0, err
	}
	if n := len(s.Threads); n > 0 {
		res.Thread = s.Threads[n-1]
	}
	return a.Tell(ctx, r, res, "the budget is "+s.Budget.Limit.String())
}

// QuotaCmd is the command "belay quota".
type QuotaCmd struct{}

// Read shows the quotas.
func (c *QuotaCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	r := a.Reader(st)
	f, err := r.Fresh(ctx, 0)
	if err != nil {
		return 0, err
	}
	q, err := sessions.Quotas(ctx, r, f)
	if err != nil {
		return 0, err
	}
	return a.Show(q, func() {
		if len(q.Quotas) == 0 {
			fmt.Fprintln(a.Out, "no work has met a quota; belay.yaml of the user or the machine describes them (docs/budgets.md)")
			return
		}
		term.WriteTable(a.Out, q.Quotas, "OF\tKIND\tPER\tLIMIT\tSPENT\tLENT\tLEFT\tUNTIL", func(q app.QuotaShown) []any { //nolint:errcheck // nobody is left to tell
			of, in := q.Of, sessions.KindShown{Kind: q.Kind}
			if q.User != "" {
				of += " " + q.User
			}
			return []any{of, q.Kind, q.Per, amountOf(in, &q.Limit, ""), amountOf(in, &q.Spent, ""), amountOf(in, &q.Lent, ""), amountOf(in, &q.Left, ""), q.Until.Local().Format(time.DateTime)}
		})
	})
}

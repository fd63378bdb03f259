package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/story"
)

type agentsStatsCmd struct {
	Since time.Duration `placeholder:"TIME" help:"Only runs that ended in this time until now, such as 24h."`
}

// Read implements command.Reader.
func (c *agentsStatsCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	if c.Since < 0 {
		return 0, belay.Errorf(belay.CodeUsage, "%s lies in the future", c.Since).At("--since").WithHint("--since 24h")
	}
	var since time.Time
	if c.Since > 0 {
		since = a.Now().Add(-c.Since)
	}
	all, err := agents.Stats(ctx, a.Reader(st), since)
	if err != nil {
		return 0, err
	}
	return term.PrintRows(&a.Env, all, "no agent has ended a run", "AGENT\tRUNS\tCOMPLETED\tP50\tP95\tTOKENS\tCOST\tRETRIES\tRED\tCONTEXT\tTHIS WEEK\tLAST WEEK", func(x story.AgentStats) []any {
		use := "unknown"
		if x.Context != nil {
			use = fmt.Sprintf("%.0f%%", *x.Context*100)
		}
		tokens := "unknown"
		if x.Tokens != nil {
			tokens = term.TokenText(*x.Tokens, belay.Usage{Reported: true}, x.Unknown)
		} else if x.Unknown == 0 {
			tokens = "0"
		}
		return []any{term.Line(x.Agent), x.Runs, percentOf(x.Ends[belay.Completed], x.Runs), term.Millis(x.P50MS), term.Millis(x.P95MS), tokens, term.Money(x.Cost), x.Retries, x.GateReds, use, week(x.Week), week(x.Before)}
	})
}

func percentOf(n, all int) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", n*100/all)
}

// week is a week of an agent in words.
func week(w story.AgentWeek) string {
	if w.Runs == 0 {
		return "-"
	}
	return fmt.Sprintf("%d runs, %s", w.Runs, percentOf(w.Completed, w.Runs))
}

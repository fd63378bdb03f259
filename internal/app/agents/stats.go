package agents

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

// StatsShown is what the runs of agents add up to.
type StatsShown struct {
	app.Fresh
	Agents []story.AgentStats `json:"agents"`
}

// Stats counts the runs of agents that ended since a time; zero: all.
func Stats(ctx context.Context, r *app.Runtime, since time.Time) ([]story.AgentStats, error) {
	if err := r.Reads.Sums.Catchup(ctx); err != nil {
		return nil, err
	}
	now := r.Now()
	fold := story.NewAgentsFold(since, now)
	err := view.EachAgentRun(ctx, r.Store, func(run view.AgentRun) bool {
		fold.Ended(run.At, run.Stats)
		return true
	})
	return fold.Sum(), err
}

func stats(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*StatsShown, error) {
	var since time.Time
	if text := q.Values.Get("since"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return nil, input.At("query since", belay.Errorf(belay.CodeUsage, "%q is no length of time", input.Shown(text)).WithHint("such as 24h"))
		}
		since = c.Now().Add(-d)
	}
	all, err := Stats(ctx, c.Runtime, since)
	if all == nil {
		all = []story.AgentStats{}
	}
	return &StatsShown{f, all}, err
}

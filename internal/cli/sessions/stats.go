package sessions

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
)

// StatsCmd is the command "belay stats".
type StatsCmd struct {
	ID    string        `arg:"" optional:"" help:"Only of this session."`
	All   bool          `short:"a" help:"Of all workspaces."`
	Since time.Duration `placeholder:"TIME" help:"Only what happened in this time until now, such as 24h."`
}

// Read implements command.Reader.
func (c *StatsCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	if c.Since < 0 {
		return 0, belay.Errorf(belay.CodeUsage, "%s lies in the future", c.Since).At("--since").WithHint("--since 24h")
	}
	wanted, err := c.wanted(ctx, a, st)
	if err != nil {
		return 0, err
	}
	fold := story.NewStats()
	var threads []belay.ThreadID // in the order in which they began
	seen := map[belay.ThreadID]bool{}
	from := a.Now().Add(-c.Since)
	for r, err := range st.Scan(ctx, 0) {
		if err != nil {
			return 0, err
		}
		if wanted(r.Event.IDs.Session) && (c.Since == 0 || r.Event.Time.After(from)) {
			fold.Apply(r.Event)
			if id := r.Event.IDs.Thread; id != "" && !seen[id] {
				threads, seen[id] = append(threads, id), true
			}
		}
	}
	use, err := app.UseOf(ctx, st, threads)
	if err != nil {
		return 0, err
	}
	return term.PrintStats(&a.Env, fold.Sum(), use)
}

// wanted returns the filter for the sessions that count.
func (c *StatsCmd) wanted(ctx context.Context, a *command.Program, st store.Store) (func(belay.SessionID) bool, error) {
	if c.ID != "" {
		id, err := a.SessionID(ctx, st, c.ID)
		return func(s belay.SessionID) bool { return s == id }, err
	}
	if c.All {
		return func(belay.SessionID) bool { return true }, nil
	}
	ws, err := a.WorkspaceDir()
	if err != nil {
		return nil, err
	}
	all, err := app.ListSessions(ctx, st, view.Filter{Workspace: ws})
	if err != nil {
		return nil, err
	}
	ids := map[belay.SessionID]bool{}
	for _, s := range all {
		ids[s.ID] = true
	}
	return func(s belay.SessionID) bool { return ids[s] }, nil
}
